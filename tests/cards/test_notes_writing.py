"""What is written is read again as the same cards, whatever they hold; cards of the course become notes too."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from note_fuzz import EXAMPLES

from disttutor.cards import our_cards
from disttutor.cards.card import ENGLISH, HINGLISH, Card, Face, Option
from disttutor.cards.notes import parse
from disttutor.cards.notes.writing import as_markdown

WORDS = st.sampled_from([
    "rank", "the sum", "`a::b`", "``x ` :: y``", "$a == b$", "**bold**", "[docs](u::v)", "[[p::q]]", "x^2", "a_b",
    "₹5", "$5", "हिन्दी", "🚀", "\\:\\:", "1. one", "- item", "#tag", "100%", "<b>", "a | b", "if x == y", "^up",
    "> more", "e\u0301",
    "[...]", "{{x}}", "https://example.org/a::b", "<!-- aside -->", "~~no~~",
])
TEXT = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
CODE = st.sampled_from([
    "```py\na::b\n\nc :: d\n```", "~~~\n?\n\n==x==\n~~~", "- a\n  - b", "| a | b |\n|---|---|\n| c | d |"])
LINES = st.lists(TEXT, min_size=1, max_size=3).map("\n".join)
PLACE = st.one_of(
    st.builds("{} :: {}".format, TEXT, TEXT), st.builds("{}:::{}".format, TEXT, TEXT),
    st.builds("- {} :: {} ^id-1".format, TEXT, TEXT), st.builds("> {}\n> ?\n> {}".format, TEXT, TEXT),
    st.builds("{}\n{}\n{}".format, LINES, st.sampled_from(["?", "??"]), LINES),
    st.builds("{}\n?\n{}\n{}".format, TEXT, TEXT, CODE), st.builds("{} =={}== {}".format, TEXT, st.just("x y"), TEXT),
    st.builds("==1;;a;;hint== {} ==2;;b==\n{} ==1;;c==".format, TEXT, TEXT),
    st.sampled_from(["#flashcards/b #flashcards/c/d", "# Hinglish", "# Why", "Prose.", "## Notes {lang=de}"]),
)


def without_lines(text):
    return [dataclasses.replace(card, line=0) for card in parse(text).cards]


@given(st.lists(PLACE, max_size=6))
def test_parse_write_parse_is_the_identity(places):
    read = without_lines("#flashcards/a\n\n" + "\n\n".join(places))
    assert without_lines(as_markdown(read)) == read


@pytest.mark.parametrize("note", EXAMPLES)
def test_the_examples_too(note):
    read = without_lines(note)
    assert without_lines(as_markdown(read)) == read


def test_the_note_reads_well():
    note = "#flashcards/a\n- Q :: A\nR ::: B #flashcards/b\n\nS\n?\nC\n"
    ids = {card.front: card.id for card in parse(note).cards}
    assert as_markdown(parse(note).cards) == (
        f"#flashcards/a\n\nQ :: A ^{ids['Q']}\n\n#flashcards/b\n\nR ::: B ^{ids['R']}\n\n"
        f"#flashcards/a\n\nS\n?\nC\n\n^{ids['S']}\n")
    assert as_markdown([]) == ""


@pytest.mark.parametrize("card", [
    "Tensor :: सिंक का मतलब", "x :: सिंक", "```x :: y", "<pre>x :: y", "| x :: y"])
def test_languages_and_openings_of_blocks_survive(card):
    read = without_lines(f"# Hindi\n#flashcards/a #flashcards/b\n- #flashcards/c {card}\n\n# Why\nQ :: {card}\n")
    assert [one.language for one in read] == ["hi", "en"] and without_lines(as_markdown(read)) == read


def test_an_edited_note_that_was_written_keeps_its_ids():
    written = as_markdown(parse("#flashcards/a\nQ ::: A\n").cards)
    before, after = ([card.id for card in parse(text).cards] for text in (written, written.replace("Q", "Other")))
    assert before == after


def test_cards_of_the_course():
    choice = Card(id="which", deck="disttutor/02", kind="choice", faces={
        ENGLISH: Face("Which?", "Because.", options=(Option("this", True), Option("that", why="it is not"))),
        HINGLISH: Face("Kaun?", "Kyunki.", options=(Option("ye", True), Option("wo", why="nahin")))})
    order = Card(id="steps", deck="disttutor/02", kind="order",
                 faces={ENGLISH: Face("Order?", "Why.", steps=("b", "a"))})
    tricky = Card(id="tricky", deck="d", faces={ENGLISH: Face("What is a::b?", "Two.\n\nParagraphs.")})
    drawn = Card(id="drawn", deck="d", kind="number")
    cards = parse(as_markdown([choice, order, tricky, drawn])).cards
    assert [(card.id, card.deck) for card in cards] == [
        ("^which", "flashcards/disttutor/02"), ("^steps", "flashcards/disttutor/02"), ("^tricky", "flashcards/d")]
    assert (cards[0].front, cards[0].back) == ("Which?\n- this\n- that", "this\nBecause.\n- not that: it is not")
    assert (cards[1].front, cards[1].back) == ("Order?\n- a\n- b", "1. b\n2. a\nWhy.")
    assert (cards[2].front, cards[2].back) == (r"What is a\:\:b?", "Two.\nParagraphs.")
    hinglish = parse(as_markdown([choice], HINGLISH)).cards[0]
    assert hinglish.front == "Kaun?\n- ye\n- wo" and hinglish.language == HINGLISH


@pytest.mark.parametrize("language", [ENGLISH, HINGLISH])
def test_no_card_of_the_course_is_lost(language):
    with_faces = [card for card in our_cards() if card.faces]
    read = parse(as_markdown(our_cards(), language))
    assert [card.id for card in read.cards] == [f"^{card.id}" for card in with_faces]
    assert {card.language for card in read.cards} == {language}
