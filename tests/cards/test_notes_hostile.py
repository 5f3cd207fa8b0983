"""No note, however broken or large, raises or takes more than linear time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from note_fuzz import broken_note

from disttutor.cards.notes import parsing as notes

FUZZED = 1_000      # `python tests/cards/note_fuzz.py 100000` runs more of them


def test_broken_notes_raise_nothing_and_every_line_in_doubt_is_explained():
    for seed in range(FUZZED):
        note = broken_note(seed)
        parsed = notes.parse(note, bold=seed % 2 == 0, braces=seed % 3 == 0)
        ids = [card.id for card in parsed.cards]
        assert len(set(ids)) == len(ids), note
        assert all(card.front.strip() and card.back.strip() and card.deck for card in parsed.cards), note
        lines = note.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
        assert all(1 <= diagnostic.line <= lines and diagnostic.reason for diagnostic in parsed.diagnostics), note


@given(st.text(alphabet=st.sampled_from("a :=?`~$[]()<>!-*#/\\|%^&;{}1.\n\t \0\ud800"), max_size=200))
def test_random_text_raises_nothing(text):
    notes.parse("#flashcards/a\n" + text, bold=True, braces=True)


@pytest.mark.parametrize("piece", [
    "`", "` ", "$", "$a ", "$$ a ", "$$\n\n", "[", "[[", "[a](", "](", "(", "[a]: b\n", "=", "==a ", "==a== ", "a==b ",
    ">", "> ", "> a\n", "- ", "- a\n", "1. ", "<!--", "<!-- a -->\n", "%%", "%% a\n\n", "x %% a\n\n", "<a ", '<a b="',
    "http://", "a", "\\", "#", "#flashcards/a ", "- #flashcards ", " ^a", ":", ":: ", "a::b\n", "Q :: A\n", "?\n",
    "Q\n?\nA\n\n", "---\n", "| a :: b |\n|---|\n", "|", "```\n", "- ```\n", "<pre>\n", "<div>\n", " ", "\n", "\r",
    "^a\n\n", "# Hinglish\n", "{{", "**a ", "==a;;", "ह", "    a::b\n", "> [!a] b\n", "Q :: A <!--SR:!x-->\n", "\t",
    "~~~ a\n", "/",
])
def test_time_grows_in_step_with_the_note(piece):
    def seconds(letters: int) -> float:
        text = "#flashcards/a\nQ :: " + piece * (letters // len(piece))
        started = time.process_time()
        notes.parse(text, bold=True, braces=True)
        return time.process_time() - started

    # Quadratic time would be 64 times as much for 8 times as many letters.
    small = min(seconds(1_000) for _ in range(3))
    assert min(seconds(8_000) for _ in range(2)) < 30 * small + 0.02


@pytest.mark.parametrize("deep", ["> " * 3000, "- " * 3000, "> - " * 1500 + "1. " * 100, ">" * 100_000])
def test_deep_nesting_is_no_recursion_without_end_and_says_so(deep):
    parsed = notes.parse(f"#flashcards/a\n\n{deep}Q :: A\n\nR :: B\n")
    assert [card.front for card in parsed.cards][-1] == "R"
    assert len(parsed.cards) == 2 or [diagnostic.line for diagnostic in parsed.diagnostics] == [3]


def test_too_large_notes_and_cards_are_refused_with_the_limit(monkeypatch):
    parsed = notes.parse("#flashcards/a\nQ :: A\n" + "x" * notes.MOST_LETTERS)
    assert not parsed.cards and "2,000,000" in parsed.diagnostics[0].reason
    parsed = notes.parse("#flashcards/a\nQ :: " + "x" * 20_000 + "\nR :: B")
    assert [card.front for card in parsed.cards] == ["R"] and "20,000" in parsed.diagnostics[0].reason
    monkeypatch.setattr(notes, "MOST_CARDS", 50)
    parsed = notes.parse("#flashcards/a\n" + "".join(f"Q{n} :: A\n" for n in range(52)))
    assert len(parsed.cards) == 50 and "50 cards" in parsed.diagnostics[0].reason


@pytest.mark.parametrize("yaml", [
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\ntags: [*c, flashcards/y]",
    "".join(f"k{n}: &k{n} {{<<: [{', '.join([f'*k{n - 1}'] * 9)}]}}\n" if n else "k0: &k0 {a: 1}\n" for n in range(30))
    + "tags: flashcards/y",
    "[" * 5000, "{" * 5000, "- " * 5000, "a: " * 3000, "tags: !!python/object/apply:os.system ['true']", "tags: {a: b}",
    "tags: &t [*t]", "lang: 3 4", "1" * 6000, "? [a]\n: b", "\x00\x01: [", "tags: [[flashcards/z]]", "x" * 30_000,
])
def test_front_matter_of_any_kind_is_harmless(yaml):
    parsed = notes.parse(f"---\n{yaml}\n---\nQ :: A #flashcards/x\n")
    assert [card.deck for card in parsed.cards] == ["flashcards/x"]


def test_many_links_in_the_front_matter_are_no_trouble():
    links = "".join(f'  - "[[note {n}]]"\n' for n in range(300))
    parsed = notes.parse(f"---\nrelated:\n{links}tags: [flashcards/a]\n---\nQ :: A\n")
    assert [card.deck for card in parsed.cards] == ["flashcards/a"] and parsed.diagnostics == ()


def test_wrong_front_matter_is_reported():
    parsed = notes.parse("---\ntags: [flashcards/a\n---\nQ :: A\n")
    assert [diagnostic.kind for diagnostic in parsed.diagnostics] == ["front matter", "no deck"]
