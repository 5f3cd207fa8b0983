"""Guessing first, attended and not."""

import pytest

from disttutor.labs import Guess


def guess() -> Guess:
    return Guess("Two and two?", ["three", "four"], right="four", why="Count them.")


def test_unattended_it_is_text_and_the_answer():
    bundle = guess()._repr_mimebundle_()
    assert bundle["text/plain"] == "Two and two?\n  ( ) three\n  ( ) four"
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert repr(guess().reveal()) == "The answer: four.\nCount them."


@pytest.mark.parametrize(("choice", "verdict"), [("four", "That is right."), ("three", "It is: four.")])
def test_the_guess_stands_beside_the_answer(choice, verdict):
    g = guess()
    g._repr_mimebundle_()
    g._options.value, g._sure.value = choice, 90
    assert g.choice is None                                  # chosen, not yet committed
    g._commit()
    assert repr(g.reveal()) == f"You said: {choice}, 90 % sure. {verdict}\nCount them."


def test_the_button_asks_for_a_choice():
    g = guess()
    g._repr_mimebundle_()
    g._commit()
    assert g.choice is None and "Choose one first" in g._said.value


def test_the_right_answer_must_be_a_choice():
    with pytest.raises(ValueError, match="'five' is not among the choices"):
        Guess("?", ["four"], right="five", why="")
