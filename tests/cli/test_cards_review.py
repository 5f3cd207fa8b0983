"""A sitting in the terminal, with its answers from a pipe and by keys."""

import io
import random
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import typer
from rich.console import Console

from disttutor.cards import Card, Drawn, Face, Option
from disttutor.cards.progress import Progress
from disttutor.cards.progress.scheduling import Rating
from disttutor.cards.sitting.review import Review
from disttutor.terminal.keyboard import Keyboard
from disttutor.terminal.review import sit
from disttutor.terminal.screen import narrow

MORNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def both(question: str, answer: str, **more) -> dict[str, Face]:
    hinglish = Face(f"Hinglish: {question}", f"Hinglish: {answer}", **more)
    return {"en": Face(question, answer, **more), "hi-Latn": hinglish}


def draw(drawn: random.Random) -> Drawn:
    ranks = drawn.choice([3, 5])
    return Drawn({"en": Face(f"Steps for {ranks} ranks?", f"$2({ranks}-1)$")}, 2 * (ranks - 1), "steps", 0.0)


BASIC = Card(id="basic", deck="disttutor/03-data-parallelism", faces=both("What is [copied]?", "The $n$ models."),
             lesson=3, section="Why", source="Li 2020")
OTHER = Card(id="other", deck="flashcards/ai-ml", faces={"en": Face("What is split?", "The batch.")})
CHOICE = Card(id="choice", deck="d", kind="choice", faces=both("Which?", "It adds up.", options=(
    Option("all-reduce", right=True), Option("broadcast", why="It only copies."), Option("gather", why="One has it."))))
CLOZE = Card(id="cloze", deck="d", kind="cloze",
             faces=both("[...] adds up.", "All-reduce adds up.", missing="All-reduce"))
ORDER = Card(id="order", deck="d", kind="order",
             faces=both("In order?", "So.", steps=("forward", "backward", "update")))
NUMBER = Card(id="number", deck="d", kind="number", draw=draw)


@pytest.fixture
def progress(tmp_path) -> Progress:
    return Progress(tmp_path, clock=lambda: MORNING)


@pytest.fixture
def sitting(progress, monkeypatch):
    """`sitting(cards, lines)` answers with these lines and gives what is on the screen."""
    def sitting(cards, *lines: str, width: int = 80) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        console = narrow(Console(file=io.StringIO(), width=width, highlight=False))
        sit(Review(cards, progress, new_limit=len(cards), seed=1), console, Keyboard())
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())
    return sitting


def answers(progress: Progress) -> list[tuple]:
    return [(review.card, review.rating, review.confidence, review.right) for review in progress.reviews]


def test_a_card_is_asked_shown_and_rated(sitting, progress):
    screen = sitting([BASIC], "3", "2")
    asked, _, told = screen.partition("How sure are you?")
    assert "1 of 1 · 03 Data parallelism" in asked and "  What is [copied]?" in asked and "models" not in asked
    assert told.splitlines()[0] == "   1 25 %   2 50 %   3 75 %   4 95 %   Enter show"
    assert "  The n models." in told and "  Lesson 03, Why\n  Li 2020" in told
    assert "  1 forgot: again soon   2 remembered: 2 days\n  h Hinglish   q quit" in told
    assert answers(progress) == [("basic", Rating.REMEMBERED, 75, None)]


def test_the_answer_can_be_seen_without_saying_how_sure(sitting, progress):
    sitting([BASIC], "", "1")
    assert answers(progress) == [("basic", Rating.FORGOT, None, None)]


def test_without_confidence_it_is_not_asked(sitting, progress):
    progress.set("confidence", False)
    assert "How sure" not in sitting([BASIC], "", "2")
    assert answers(progress) == [("basic", Rating.REMEMBERED, None, None)]


def test_four_buttons_by_option(sitting, progress):
    progress.set("buttons", 4)
    screen = " ".join(sitting([BASIC], "4", "4").split())
    assert "1 forgot: again soon 2 hard: later today 3 remembered: 2 days 4 easy: 8 days" in screen
    assert answers(progress) == [("basic", Rating.EASY, 95, None)]


def test_with_four_buttons_a_right_answer_may_be_called_hard_or_easy(sitting, progress):
    progress.set("buttons", 4)
    screen = sitting([CLOZE], "All-reduce", "4", "1", "4")
    assert "Press one of: Enter, 2, 3, 4, o, h, q" in screen
    assert answers(progress) == [("cloze", Rating.EASY, 95, True)]
    assert "Press one of: Enter, o, h, q" in sitting([replace(CLOZE, id="wrong")], "nothing like it", "4", "4", "")
    assert answers(progress)[1:] == [("wrong", Rating.FORGOT, 95, False)]


def numbered(screen: str) -> dict[str, str]:
    """The options or steps of the first question on the screen: their numbers by their texts."""
    lines = [line.split(maxsplit=1) for line in screen.splitlines()]
    return {line[1]: line[0] for line in reversed(lines) if len(line) == 2 and line[0].isdecimal() and line[1] != "of"}


def test_a_right_choice_goes_on_by_enter(sitting, progress):
    right = numbered(sitting([CHOICE]))["all-reduce"]
    screen = sitting([CHOICE], right, "4", "")
    told = screen.partition("How sure are you?")[2]
    assert "✓ Right." in told and "✓ all-reduce  (your answer)" in told and "Enter go on (remembered: 2 days)" in told
    assert "It only copies." in told and "One has it." in told and "It adds up." in told
    assert "copies" not in screen.partition("How sure are you?")[0]
    assert answers(progress) == [("choice", Rating.REMEMBERED, 95, True)]


def test_a_wrong_choice_counts_as_forgotten_and_cannot_be_overruled(sitting, progress):
    wrong = numbered(sitting([CHOICE]))["gather"]
    screen = sitting([CHOICE], wrong, "4", "o", "")
    assert "✗ Not right." in screen and "gather  (your answer)" in screen
    assert "Press one of: Enter, h, u, q" not in screen and "Press one of: Enter, h, q" in screen
    assert answers(progress) == [("choice", Rating.FORGOT, 95, False)]


@pytest.mark.parametrize("between", ["", " ", ", ", " > "])
def test_steps_are_typed_in_order_together_or_apart(sitting, progress, between):
    number = numbered(sitting([ORDER]))
    right = [number[step] for step in ("forward", "backward", "update")]
    screen = sitting([ORDER], "1 2", "1 2 4", f"0 {'9' * 5000}", "first", between.join(right), "2", "")
    assert screen.count("bring all 3 steps into order") == 2 and screen.count("numbered from 1 to 3") == 2
    assert answers(progress) == [("order", Rating.HARD, 50, True)]


def test_a_number_is_typed_and_checked(sitting, progress):
    ranks = int(sitting([NUMBER]).partition("Steps for ")[2][0])
    screen = sitting([NUMBER], "many", f"{2 * (ranks - 1)}", "3", "")
    assert "Your answer in steps:" in screen and "'many' is no number" in screen and "✓ Right." in screen
    assert f"2({ranks} − 1)" in screen or f"2({ranks} - 1)" in screen
    assert answers(progress) == [("number", Rating.REMEMBERED, 75, True)]


def test_a_typed_answer_may_be_overruled(sitting, progress):
    screen = sitting([CLOZE], "reduce to all", "3", "o")
    assert "You wrote: reduce to all." in screen and "o I was right" in screen
    assert answers(progress) == [("cloze", Rating.REMEMBERED, 75, True)]


def test_nothing_typed_shows_the_answer(sitting, progress):
    assert "All-reduce adds up." in sitting([CLOZE], "", "1")
    assert answers(progress) == [("cloze", Rating.FORGOT, None, None)]


def test_a_letter_is_an_answer_and_a_colon_makes_it_a_key(sitting, progress):
    assert "You wrote: q." in sitting([CLOZE], "q", "3", "q")
    screen = sitting([CLOZE], ":h", ":q", "2")
    assert "Hinglish: [...] adds up." in screen
    assert answers(progress) == []


def test_the_language_stays_for_the_next_card_and_may_change_when_shown(sitting, progress):
    screen = sitting([BASIC, CHOICE], "h", "3", "h", "2")
    assert screen.count("Hinglish: What is [copied]?") == 1 and "Hinglish: The n models." in screen
    assert screen.count("\n  What is [copied]?") == 2 and "\n  The n models." in screen
    assert progress.setting("language") == "en"
    assert "h Hinglish" not in sitting([OTHER], "3")


def test_undo_takes_the_last_rating_back(sitting, progress):
    screen = sitting([BASIC, OTHER], "3", "1", "u", "4", "2")
    assert "u undo" not in screen.partition("What is split?")[0]
    assert answers(progress) == [("basic", Rating.REMEMBERED, 95, None)]


def test_other_keys_are_explained(sitting, progress):
    assert "Press one of: 1, 2, 3, 4, Enter, h, q" in sitting([BASIC], "x", "7", "3")


@pytest.mark.parametrize("lines", [["3", "2", "q"], ["3", "2", "Q"], ["3", "2"], ["3", "2", "3"]])
def test_leaving_at_any_time_keeps_what_was_rated(sitting, progress, lines):
    sitting([BASIC, OTHER], *lines)
    assert answers(progress) == [("basic", Rating.REMEMBERED, 75, None)]


def test_ctrl_c_leaves(sitting, progress, monkeypatch):
    keys = iter(["3", "2", KeyboardInterrupt()])

    def key(self: Keyboard) -> str:
        if isinstance(pressed := next(keys), BaseException):
            raise pressed
        return pressed

    monkeypatch.setattr(Keyboard, "key", key)
    sitting([BASIC, OTHER])
    assert answers(progress) == [("basic", Rating.REMEMBERED, 75, None)]


def test_lines_are_never_wider_than_the_terminal(sitting):
    long = Card(id="long", deck="d", kind="choice", faces={"en": Face("word " * 60, "word " * 60, options=(
        Option("word " * 40, right=True), Option("other " * 40, why="because " * 40)))})
    screen = sitting([long], "1", "3", width=60)
    assert max(map(len, screen.splitlines())) <= 60
    assert max(map(len, sitting([long], "1", "3", width=200).splitlines())) <= 88


def test_keys_of_a_terminal(monkeypatch):
    """Several at once, capitals, an arrow, Enter, the space bar, and both keys that leave."""
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    pressed = iter(["3Hx", "\x1b[A", "\r", " ", "1\x04", "1\x03"])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(typer, "getchar", lambda: next(pressed))
    keyboard = Keyboard()
    assert [keyboard.key() for _ in range(7)] == ["3", "h", "x", "\x1b[A", "", "", "1"]
    with pytest.raises(EOFError):
        keyboard.key()
    assert keyboard.key() == "1"
    with pytest.raises(KeyboardInterrupt):
        keyboard.key()
