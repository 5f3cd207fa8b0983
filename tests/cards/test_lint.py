"""Lint says what is wrong, where, and how bad it is; it never ends in a traceback."""

import pytest

from disttutor.cards.card import HINGLISH
from disttutor.cards.decks import DeckError, our_cards, read_deck
from disttutor.cards.hinglish import SPELLINGS, misspelled, not_ascii
from disttutor.cards.lint import lint_file

GOOD = '''
deck = "disttutor/03-data-parallelism"
lesson = 3

[[card]]
id = "first"
en = ["What is copied?", "The model."]
hi = ["Kya copy hota hai?", "Model."]
concepts = ["data-parallelism"]
source = "Lesson 03"
'''


@pytest.fixture
def lint(tmp_path):
    def of(text, name="cards.md"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return [(finding.line, finding.level, finding.text) for finding in lint_file(file)]

    return of


def test_a_good_deck_and_a_good_note_have_no_findings(lint):
    assert lint(GOOD, "deck.toml") == []
    assert lint("#flashcards/a\nWhat does an all-reduce leave? :: The same sum on every rank\n") == []


@pytest.mark.parametrize(("line", "level", "words"), [
    ("Q ::", "error", "no text after the separator"),
    ("Use `a::b` here", "note", "code span"),
    ("What is $x :: y", "error", "partner is missing"),
    ("What is $\\frac{1$? :: y", "error", "brace without its partner"),
    ("Goal? :: Speed up training and enable models larger than a device", "note", "could be two cards"),
    ("GPU::graphics unit", "note", "no spaces"),
    ("Q :: " + "a " * 200, "note", "more than one idea"),
    ("<!-- open", "error", "never closed"),
])
def test_a_line_of_a_note(lint, line, level, words):
    (finding,) = lint(f"#flashcards/a\n{line}\n")
    assert finding[:2] == (2, level) and words in finding[2]


@pytest.mark.parametrize("line", [
    "Costs $5 or $6? :: \\$7", "What is $\\{x\\}$? :: y", "Which two? :: Split the batch here and copy the model there",
    "When? :: The time between the first step and the last of the steps", "What is `$x`? :: `$`",
])
def test_no_false_alarm(lint, line):
    assert lint(f"#flashcards/a\n{line}\n") == []


def test_hinglish_is_spelled_as_the_house_does(lint):
    text = "---\nlang: hi-Latn\n---\n#flashcards/a\nKya `nahi` hai? :: Nahi, yeh $mai$ mein hai, café nahin\n"
    assert [finding[2] for finding in lint(text)] == [
        "'Nahi' is spelled 'nahin' here", "'yeh' is spelled 'ye' here", "'café' is not plain ASCII; Hinglish is"]
    assert lint(text.replace("hi-Latn", "en")) == []
    assert list(misspelled("Model poora pura hai, Mai ne kaha")) == [("pura", "poora"), ("kaha", "kahan")]
    assert list(not_ascii("β × ₹5 — सिंक")) == ["सिंक"]


def test_the_house_list_agrees_with_itself():
    others = [other for spellings in SPELLINGS.values() for other in spellings]
    assert len(set(others)) == len(others) and not set(others) & set(SPELLINGS)
    assert all(word.isascii() for word in [*others, *SPELLINGS])
    asked = "nahi nai hei mai kyu kyonki jyada pahle woh yeh toh sath zyaada pura"
    assert set(asked.split()) <= set(others)


@pytest.mark.parametrize(("change", "line", "words"), [
    (("lesson = 3", "lesson = 17"), 6, "no lesson 17"),
    (('"data-parallelism"]', '"data-paralelism"]'), 6, "no concept 'data-paralelism'"),
    (("[[card]]", "[[card]"), 5, "not TOML"),
    (('hi = ["Kya copy hota hai?", "Model."]\n', ""), 5, "hi must be two texts"),
    (('"The model."', '"The $model."'), 6, "first: a dollar sign"),
    (('en = [', 'answer = ['), 5, "unknown answer"),
])
def test_errors_of_a_deck(lint, change, line, words):
    findings = lint(GOOD.replace(*change), "deck.toml")
    assert [(finding[0], finding[1]) for finding in findings] == [(line, "error")] and words in findings[0][2]


@pytest.mark.parametrize(("change", "words"), [
    (('"Model."', '"Model yeh hai."'), "'yeh' is spelled 'ye'"),
    (('source = "Lesson 03"', ""), "names no source"),
    (('concepts = ["data-parallelism"]', ""), "names no concept"),
    (('"The model."', '"' + "word " * 80 + '"'), "more than one idea"),
])
def test_notes_on_a_deck(lint, change, words):
    (finding,) = lint(GOOD.replace(*change), "deck.toml")
    assert finding[:2] == (6, "note") and finding[2].startswith("first: ") and words in finding[2]


@pytest.mark.parametrize("deck", [
    "card = 3", 'card = "x"', "card = [3]", "[card]\nid = 3", "lesson = 'three'", "lesson = true", "deck = 5",
    "x" + "[" * 100_000, "lesson = " + "1" * 5000, "[[card]]", "[[card]]\nid = 3", "[[card]]\nid = []",
    *(GOOD + line for line in (
        'option = "x"', "option = [1]", "option = {}", "step = 3", "step = ['a', 'b']",
        "section = 3", "family = []", "kind = ['basic']", "kind = {}", "deck = 1", "lesson = 3.5", "lesson = []",
    )),
    GOOD.replace('["data-parallelism"]', "5"), GOOD.replace('["data-parallelism"]', "[5]"),
    GOOD.replace('["data-parallelism"]', '"data-parallelism"'), GOOD.replace('"Lesson 03"', "3"),
    GOOD.replace('["What is copied?", "The model."]', "3"), GOOD.replace('"The model."', "3"),
    *(GOOD + "kind = 'choice'\n" + options for options in (
        "option = [{en = 'a', hi = 'a', right = 'yes'}, {en = 'b', hi = 'b', why = ['a', 'b']}]",
        "option = [{en = 'a', hi = 'a', right = true}, {en = 'b', hi = 'b', why = 3}]",
        "option = [{en = 'a', hi = 'a', right = true}, {en = 'b', hi = 'b', why = 'ab'}]",
        "option = [{en = 'a', hi = 'a', right = true}, {en = 'b', hi = 'b', why = [1, 2]}]",
        "option = [{en = 'a', hi = 'a', right = true, why = ['x']}, {en = 'b', hi = 'b', why = ['a', 'b']}]",
        "option = [{en = 1, hi = 'a', right = true}, {en = 'b', hi = 'b', why = ['a', 'b']}]",
        "option = [{en = 'a', hi = 'a', right = true}, {en = 'b', hi = 'a', why = ['a', 'b']}]",
    )),
    GOOD + "kind = 'order'\nstep = [{en = 'a'}, {en = 'b'}]", GOOD + "kind = 'order'\nstep = [{en = 1, hi = 2}, 3]",
])
def test_a_deck_of_wrong_types_is_a_finding_and_no_other_exception(lint, deck):
    with pytest.raises(DeckError):
        read_deck(deck)
    (finding,) = lint(deck, "deck.toml")
    assert finding[1] == "error" and finding[0] >= 1 and finding[2]


def test_files_that_cannot_be_read(lint, tmp_path):
    ((_, level, text),) = lint(b"\xff\xfe#\x00", "note.md")
    assert level == "error" and text == "the file is not UTF-8 text (at byte 0): save it as UTF-8"
    assert lint(b"\xff", "deck.toml")[0][1] == "error"
    assert [finding.text for finding in lint_file(tmp_path / "missing.md")] == ["there is no such file"]
    assert [finding.text for finding in lint_file(tmp_path)] == ["this is not a file"]
    assert "far more than a note" in lint(b"x" * 8_000_001, "large.md")[0][2]


def test_a_note_without_cards_says_how_one_is_written(lint):
    ((line, level, text),) = lint("Just prose.\n")
    assert (line, level) == (1, "note") and "Question :: Answer" in text


def test_a_deck_without_cards_says_how_one_is_written(lint):
    assert lint("lesson = 3\n", "deck.toml") == [
        (1, "note", "there is no card here; a card is a table below a line [[card]]")]


def test_a_byte_order_mark_is_no_error(lint):
    assert lint("\ufeff" + GOOD, "deck.toml") == lint(GOOD, "deck.toml") == []


def test_our_own_decks_have_no_errors_and_spell_hinglish_alike():
    from importlib import resources
    from pathlib import Path

    for file in sorted(Path(str(resources.files("disttutor.cards"))).glob("decks/*.toml")):
        found = [finding for finding in lint_file(file)
                 if finding.level == "error" or "is spelled" in finding.text or "ASCII" in finding.text]
        assert found == [], file.name
    for card in our_cards():
        if card.faces:
            assert list(misspelled(card.faces[HINGLISH].question)) == []
