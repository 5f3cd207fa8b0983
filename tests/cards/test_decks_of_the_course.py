"""The decks of the course: two languages, a home in a lesson, known concepts, fair choices, the errors of the note."""

import re
from collections import Counter
from importlib import resources
from pathlib import Path

import nbformat
import pytest

from disttutor.cards.card import ENGLISH, HINGLISH, Card
from disttutor.cards.concepts import CONCEPTS
from disttutor.cards.decks import our_cards, read_deck

DECKS = {file.name: read_deck(file.read_text(encoding="utf-8"), file.name)
         for file in (resources.files("disttutor.cards") / "decks").iterdir() if file.name.endswith(".toml")}
CARDS = {card.id: card for cards in DECKS.values() for card in cards}
CHOICES = [card for card in CARDS.values() if card.kind == "choice"]
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

# The note's one card, as it stands there.
OF_THE_NOTE = ("What is the main goal of distributed training? :: Speed up training and enable models larger than "
               "single-device memory by paralelizing computation across multiple GPUs/TPUs.")

# Where the note is wrong or loose, by the numbers of the curriculum: the cards that set it right.
ERRATA = {
    1: ("tp-stacked-is-a-sum", "tp-column-joined", "tp-row-joined"),
    2: ("dp-which-batch", "dp-own-batch"),
    3: ("dp-why-linear", "dp-needs"),
    4: ("talk-deterministic", "talk-associative", "dp-tolerance", "mnemonic-d-deterministic"),
    5: ("dp-sync-end",),
    6: ("talk-tcomm", "dp-35", "dp-half-efficiency", "dp-overlap-speedup", "speedup-limit", "speedup-which-term"),
    7: ("dp-superlinear", "why-smaller-set", "speedup-super-linear-baseline"),
    8: ("why-10b-40gb", "why-checkpointing-touches", "zero-10b", "ac-when-it-helps", "choose-ten-billion-ways"),
    9: ("why-100b-64", "why-100b-zero1", "zero-100b", "mesh-what-divides", "choose-what-is-left"),
    10: ("pp-transfers", "pp-gpt3-does-not-fit", "pp-not-the-only-way"),
    11: ("pp-batches-or-micro-batches", "async-pipedream"),
    12: ("ga-note-1k", "ga-divisor", "mnemonic-b-batch"),
    13: ("fw-torch-three", "fw-jax-xmap", "fw-jax-pmap", "fw-horovod-last-release", "fw-pipedream-what"),
    14: ("choose-model-parallelism-better", "choose-bytes-that-grow"),
    15: ("ga-other-training", "ga-linear-rule", "ga-warm-up"),
}


def texts(card: Card, language: str) -> list[str]:
    """All that a learner may read of this card in this language."""
    face = card.faces[language]
    return [face.question, face.answer, *face.steps,
            *(text for option in face.options for text in (option.text, option.why))]


def right_is_longest(choice: Card) -> bool:
    """Whether a guesser who takes the longest option is right."""
    options = choice.faces[ENGLISH].options
    (right,) = (option for option in options if option.right)
    return all(len(right.text) > len(option.text) for option in options if option is not right)


def test_at_least_220_cards_and_each_lesson_has_a_deck():
    assert sum(map(len, DECKS.values())) >= 220
    assert len(CARDS) == sum(map(len, DECKS.values())), "an id is used in two decks"
    assert sorted(int(name[:2]) for name in DECKS) == list(range(17))
    for name, cards in DECKS.items():
        decks = {card.deck for card in cards} - {"flashcards/ai-ml"}
        assert decks == {f"disttutor/{name.removesuffix('.toml')}"}


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_a_card_has_two_faces_a_home_and_known_concepts(card):
    assert list(card.faces) == [ENGLISH, HINGLISH]
    assert card.lesson in range(17)
    assert card.section
    assert card.source
    assert card.concepts
    assert set(card.concepts) <= {concept.id for concept in CONCEPTS}


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_the_texts_of_a_card_are_sound(card):
    for language in (ENGLISH, HINGLISH):
        for text in texts(card, language):
            assert text.count("$") % 2 == 0, f"a dollar sign without its partner: {text}"
            assert not re.search(r" {2,}|\n\n\n", text), text
            assert "==" not in re.sub(r"`[^`]*`", "", text), f"a gap's marks are left: {text}"
    assert all(text.isascii() for text in texts(card, HINGLISH))


def test_the_gap_of_a_cloze_is_a_word_or_two_that_can_be_typed():
    gaps = {card.id: face.missing for card in CARDS.values() if card.kind == "cloze" for face in card.faces.values()}
    assert {id: gap for id, gap in gaps.items() if not re.fullmatch(r"[A-Za-z0-9]+([ -][A-Za-z0-9]+)?", gap)} == {}


@pytest.mark.parametrize("card", CHOICES, ids=lambda card: card.id)
def test_a_choice_has_unlike_options_and_a_reason_for_each_wrong_one(card):
    for face in card.faces.values():
        assert len(face.options) in (3, 4)
        assert len({option.text for option in face.options}) == len(face.options)
        assert all(option.why.strip() for option in face.options if not option.right)
    assert len({[option.right for option in face.options].index(True) for face in card.faces.values()}) == 1


def test_the_right_option_cannot_be_told_by_its_place_or_length():
    places = Counter([option.right for option in card.faces[ENGLISH].options].index(True) for card in CHOICES)
    assert all(0.15 <= places[place] / len(CHOICES) <= 0.45 for place in range(3)), places
    assert places[3] / sum(len(card.faces[ENGLISH].options) == 4 for card in CHOICES) >= 0.15, places
    assert sum(map(right_is_longest, CHOICES)) / len(CHOICES) < 0.45


@pytest.mark.parametrize("language", [ENGLISH, HINGLISH])
def test_no_question_is_asked_twice(language):
    asked = Counter(" ".join(card.faces[language].question.casefold().split()) for card in CARDS.values())
    assert [question for question, times in asked.items() if times > 1] == []


def test_the_card_of_the_note_stands_as_it_was_written():
    card = CARDS["note-main-goal"]
    assert f"{card.faces[ENGLISH].question} :: {card.faces[ENGLISH].answer}" == OF_THE_NOTE
    assert (card.deck, card.lesson, card.kind) == ("flashcards/ai-ml", 1, "basic")


@pytest.mark.parametrize("number", range(1, 16))
def test_every_error_of_the_note_has_cards(number):
    assert ERRATA[number]
    assert set(ERRATA[number]) <= set(CARDS)


@pytest.mark.parametrize("lesson", sorted(int(file.name[:2]) for file in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")))
def test_the_sections_are_headings_of_the_lesson(lesson):
    (notebook,) = NOTEBOOKS.glob(f"{lesson:02}_*.ipynb")
    cells = nbformat.read(notebook, as_version=4).cells
    headings = {heading for cell in cells if cell.cell_type == "markdown"
                for heading in re.findall(r"^##+ +(.+?) *$", cell.source, re.MULTILINE)}
    assert {card.section for card in our_cards() if card.lesson == lesson} <= headings
