"""Every formula of the course's cards can be shown: as MathML in a browser and as a line of letters elsewhere."""

import random
import re

import pytest

from disttutor.cards.card import Card
from disttutor.cards.decks import our_cards
from disttutor.cards.rendering import html, plain

CODE = re.compile(r"(`+).+?\1", re.DOTALL)


def texts(card: Card) -> list[str]:
    """All that a learner may read of this card, in both languages; of a number card, what three draws give."""
    shown = [card.faces] if card.draw is None else [card.draw(random.Random(seed)).faces for seed in range(3)]
    return [text for faces in shown for face in faces.values()
            for text in (face.question, face.answer, *face.steps,
                         *(said for option in face.options for said in (option.text, option.why)))]


def formulas(text: str) -> int:
    """How many formulas were written, by their dollar signs."""
    return len(re.findall(r"\$\$?", CODE.sub("", text))) // 2


@pytest.mark.parametrize("card", our_cards(), ids=lambda card: card.id)
def test_every_formula_is_shown_as_one(card):
    for text in texts(card):
        page = html(text)
        assert page.count("<math") == formulas(text), text
        assert 'class="tex"' not in page, f"this TeX cannot be converted: {text}"
        assert not re.search(r"\\[a-z]", CODE.sub("", plain(text))), f"TeX is left in the plain text: {plain(text)}"


def test_the_count_of_formulas_is_that_of_a_reader():
    assert formulas("of $a$ and $b$, not `$HOME` and `$PATH`") == 2
    assert formulas("no formula") == 0
