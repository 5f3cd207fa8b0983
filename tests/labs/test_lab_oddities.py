"""What a learner may type and click in the labs: a sentence under the button, never an error of Python's."""

import pytest

from disttutor.labs.schedule_editor import from_orders
from disttutor.plans import build_schedule

BASE = build_schedule("1F1B", 3, 2)
ROW = "F0 F1 B0 B1"


@pytest.mark.parametrize(("text", "words"), [
    ("\n".join([ROW] * 4), "there are 4 lines, and 3 ranks: it takes one line for each rank"),
    (f"{ROW}\n{ROW}\nF0 F1 B0 B7", "rank 2, word 4, 'B7': there is no micro-batch 7"),
    (f"{ROW}\n\N{PILE OF POO}", "rank 1, word 1, '\N{PILE OF POO}': an action is F or B"),
    ("F" * 100_000, "rank 0, word 1, 'FFFFFFFFFFFFFFFFFFFF'...: an action is F or B"),
    ("\x00", "rank 0, word 1, .*: an action is F or B"),
])
def test_orders_that_are_none(text, words):
    with pytest.raises(ValueError, match=words) as error:
        from_orders(text, BASE)
    assert len(str(error.value)) < 150


@pytest.mark.parametrize("text", ["", ROW, f"{ROW}\n", f"{ROW}\n\n\n\n", f"{ROW}\n \n"])
def test_lines_without_an_action_at_the_end_may_be_left_out_or_too_many(text):
    assert [len(order) for order in from_orders(text, BASE).orders] == [4 if text else 0, 0, 0]
