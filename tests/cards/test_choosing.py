"""Decks are found under the names that people give them."""

import pytest

from disttutor.cards import Card, Face
from disttutor.cards.choosing import UnknownDeck, choose, title


def card(id: str, deck: str, *also: str) -> Card:
    return Card(id=id, deck=deck, also=also, faces={"en": Face("?", "!")})


CARDS = [card("a", "disttutor/03-data-parallelism"), card("b", "disttutor/13-choosing"), card("c", "flashcards/ai-ml"),
         card("d", "flashcards/AI-ML/ring", "flashcards/more"), card("e", "flashcards/13"), card("f", "3d/cubes")]


@pytest.mark.parametrize(("names", "ids"), [
    ([], "abcdef"), (["disttutor/03-data-parallelism"], "a"), (["03-data-parallelism"], "a"), (["03"], "a"),
    (["3"], "a"), (["13"], "be"), (["disttutor/13"], "b"), (["disttutor"], "ab"), (["ai-ml"], "cd"),
    (["AI-ML/ring"], "d"),
    (["#flashcards/ai-ml"], "cd"), (["disttutor::03-data-parallelism"], "a"), (["more"], "d"), (["ring", "3"], "ad"),
    (["disttutor/"], "ab"), (["3", "03"], "a"),
])
def test_a_name_finds_its_decks(names, ids):
    assert "".join(card.id for card in choose(CARDS, names)) == ids


@pytest.mark.parametrize("name", ["", "/", "data", "03/disttutor", "disttutor/ai-ml", "²"])
def test_what_fits_no_deck_is_said_with_those_that_there_are(name):
    with pytest.raises(UnknownDeck) as caught:
        choose(CARDS, [name, "03"])
    assert f"There is no deck {name!r}." in str(caught.value)
    assert "There are: 3d/cubes, disttutor/03-data-parallelism, disttutor/13-choosing, " in str(caught.value)


def test_a_slip_is_guessed():
    with pytest.raises(UnknownDeck, match="Is 03-data-parallelism meant?"):
        choose(CARDS, ["03-data-paralelism"])


def test_of_no_cards_there_is_no_deck():
    assert choose([], []) == []
    with pytest.raises(UnknownDeck, match="there are no cards at all"):
        choose([], ["03"])


@pytest.mark.parametrize(("part", "words"), [
    ("08-pipeline-parallelism", "08 Pipeline parallelism"), ("06-zero", "06 ZeRO"), ("ai-ml", "ai-ml"),
    ("2024-notes", "2024-notes"), ("00-", "00-"), ("", ""),
])
def test_only_decks_of_the_course_get_a_heading(part, words):
    assert title(part) == words
