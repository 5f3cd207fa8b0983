"""Orders as a learner may type them."""

import pytest

from disttutor.plans import parse_order


@pytest.mark.parametrize(("text", "words"), [
    ("F" + "9" * 5000, "word 1, 'F9999999999999999999'...: an action is F or B and a micro-batch, such as F0"),
    ("F0 " + "F0" * 50_000, "word 2, 'F0F0F0F0F0F0F0F0F0F0'...: an action is F or B"),
    ("F0 \N{GRINNING FACE}", "word 2, '\N{GRINNING FACE}': an action is F or B"),
    ("F\N{ARABIC-INDIC DIGIT THREE}", "word 1, .*: an action is F or B"),
    ("F-1", "word 1, 'F-1': an action is F or B"),
    ("F999999999", "word 1, 'F999999999': there is no micro-batch 999999999; there are 0 to 3"),
    ("0" * 30 + "F0", "word 1, '00000000000000000000'...: an action is"),
])
def test_words_that_are_no_action_are_told_in_one_line(text, words):
    with pytest.raises(ValueError, match=words) as error:
        parse_order(text, [0], 4)
    assert len(str(error.value)) < 120
