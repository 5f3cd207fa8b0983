"""The quiz without a browser: what it shows at each moment, what it hides, and what it does with messages."""

import json
import random
from pathlib import Path

import pytest

from disttutor.cards import progress as progress_room
from disttutor.cards.card import Card, Drawn, Face
from disttutor.cards.decks import read_deck
from disttutor.cards.progress import Progress
from disttutor.cards.quiz import widget as room
from disttutor.cards.quiz.view import lesson_file, view
from disttutor.cards.shelf import every_card

DECK = """
deck = "disttutor/03-data-parallelism"
lesson = 3
[[card]]
id = "plain"
en = ["Is $a<b$ in `vector<int>`?", "It is **so**."]
hi = ["$a<b$ hai kya?", "Haan."]
section = "Why"
source = "Rao 2020"
[[card]]
id = "pick"
kind = "choice"
en = ["Which?", "It holds all."]
hi = ["Kaunsa?", "Sab rakhta hai."]
[[card.option]]
en = "one"
hi = "ek"
why = ["Too few.", "Kam hai."]
[[card.option]]
en = "two"
hi = "do"
right = true
"""
CARDS = tuple(read_deck(DECK))


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTTUTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(room, "our_cards", lambda: CARDS)
    monkeypatch.chdir(tmp_path)
    room._pages.cache_clear()
    yield
    room._pages.cache_clear()


def tell(quiz: room.Quiz, do: str, **more: object) -> dict:
    """Send what the browser would send; what is shown then."""
    quiz.receive({"do": do, **more})
    json.dumps(quiz.shown)                      # it travels as JSON
    return quiz.shown


def until(quiz: room.Quiz, kind: str) -> dict:
    for _ in range(9):
        if quiz.shown.get("kind") == kind:
            return quiz.shown
        tell(quiz, "sure", percent=None)
        tell(quiz, "rate", rating=3)
    raise AssertionError(f"no {kind}")


def test_the_answer_is_not_in_the_page_before_it_may_be_seen():
    quiz = room.quiz(3)
    assert "so" not in json.dumps(quiz.shown["question"]) and "answer" not in quiz.shown
    shown = tell(quiz, "sure", percent=75)
    assert shown["answer"] == "<p>It is <strong>so</strong>.</p>\n" and shown["confidence"] == 75
    quiz = room.quiz(3)
    shown = until(quiz, "choice")
    assert all(set(option) == {"place", "text"} for option in shown["options"])
    shown = tell(quiz, "answer", given=0)
    assert shown["phase"] == "sure" and all(set(option) == {"place", "text"} for option in shown["options"])
    shown = tell(quiz, "sure", percent=95)
    assert {option["place"]: (option["right"], option["why"]) for option in shown["options"]} == {
        0: (False, "<p>Too few.</p>\n"), 1: (True, "")}
    assert shown["verdict"] == {"right": False, "words": "<p>Too few.</p>\n"} and not shown["overrule"]


def test_another_option_may_be_taken_before_the_answer_shows():
    quiz = room.quiz(3)
    until(quiz, "choice")
    tell(quiz, "answer", given=0)
    tell(quiz, "answer", given=1)
    assert tell(quiz, "sure", percent=None)["verdict"]["right"]


def test_texts_are_html_that_was_made_here():
    question = room.quiz(3).shown["question"]
    assert "vector&lt;int&gt;" in question and '<math' in question and 'aria-label="a&lt;b"' in question


def test_language_undo_and_the_end():
    quiz = room.quiz(3)
    assert (quiz.shown["language"], quiz.shown["undo"]) == ("en", False)
    assert tell(quiz, "language")["question"].endswith("hai kya?</p>\n")
    tell(quiz, "sure", percent=None)
    assert tell(quiz, "rate", rating=1)["undo"]
    assert tell(quiz, "undo")["card"].startswith("plain ")
    for _ in range(20):
        if quiz.shown["phase"] == "done":
            break
        if quiz.shown["kind"] == "choice":
            tell(quiz, "answer", given=1)
        tell(quiz, "sure", percent=None)
        tell(quiz, "rate", rating=None if quiz.shown["kind"] == "choice" else 3)
    assert quiz.shown["summary"][0] == "2 cards: 2 remembered at once."
    assert tell(quiz, "practise")["phase"] == "asked"


def test_all_cards_are_new_at_first_and_nothing_is_due_afterwards():
    progress_room.here().set("new_per_day", 0)              # a lesson's quiz is no review: the limit is not for it
    assert room.quiz(3).shown["total"] == 2
    for card in CARDS:
        progress_room.here().answer(card, 4)
    shown = room.quiz(3).shown
    assert shown["phase"] == "done" and shown["summary"][0].startswith("They come back: ")


def test_errors_show_and_the_question_stays():
    quiz = room.quiz(3)
    shown = tell(quiz, "answer", given=0)
    assert "not checked" in shown["hint"] and not shown["error"]
    shown = tell(quiz, "rate", rating=3)
    assert "ValueError: the card is asked" in shown["error"] and "Traceback" in shown["error"]
    shown = tell(quiz, "no such thing")
    assert "KeyError" in shown["error"]
    assert tell(quiz, "sure", percent=None)["phase"] == "shown" and not quiz.shown["error"]


def test_a_press_on_what_is_no_longer_there_does_nothing():
    quiz = room.quiz(3)
    tick = quiz.shown["tick"]
    shown = tell(quiz, "sure", percent=75, tick=tick)
    assert tell(quiz, "sure", percent=25, tick=tick) is shown       # pressed twice while the kernel was busy
    assert shown["confidence"] == 75 and not shown["error"]
    assert tell(quiz, "rate", rating=3, tick=shown["tick"])["kind"] == "choice"


@pytest.mark.parametrize("asks", [True, False])
def test_typed_words_are_an_answer_also_without_enter(asks):
    progress_room.here().set("confidence", asks)
    gap = Face("an [...]", "an all-reduce", missing="all-reduce")
    quiz = room.Quiz([Card(id="gap", deck="d", kind="cloze", faces={"en": gap})], "One")
    assert tell(quiz, "sure", percent=None, given="...")["hint"]    # no word is in it: the question stays
    shown = tell(quiz, "sure", percent=75 if asks else None, given="All reduce")
    assert (shown["phase"], shown["given"], shown["verdict"]["right"]) == ("shown", "All reduce", True)


def test_each_message_is_answered_even_where_nothing_changes():
    quiz, ticks = room.quiz(3), []
    quiz.observe(lambda change: ticks.append(change.new["tick"]), "shown")
    for _ in range(3):
        tell(quiz, "undo")
    assert len(ticks) == 3


@pytest.mark.parametrize("seed", range(5))
def test_messages_in_any_order_leave_sitting_and_progress_in_step(seed):
    dice, quiz = random.Random(seed), room.quiz(3)
    messages = [{"do": "sure", "percent": percent} for percent in (50, 60, None)]
    messages += [{"do": "rate", "rating": rating} for rating in (1, 3, 9, None)]
    messages += [{"do": "answer", "given": given} for given in (0, 1, "x")]
    messages += [{"do": "overrule"}, {"do": "undo"}, {"do": "language"}, {}]
    most = 0
    for _ in range(200):
        quiz.receive(dice.choice(messages))
        most = max(most, len(quiz.review.answered))
        assert [answer.card.id for answer in quiz.review.answered] == [
            review.card for review in progress_room.here().reviews]
        assert quiz.review.finished + quiz.review.left == quiz.review.total == 2
    assert most > 1


def test_an_answer_is_on_the_disk_at_once(tmp_path):
    quiz = room.quiz(3)
    tell(quiz, "sure", percent=50)
    tell(quiz, "rate", rating=3)
    kept = Progress(tmp_path / "home")
    assert [(review.card, review.confidence) for review in kept.reviews] == [("plain", 50)]
    assert kept.lessons_visited == {3}


def test_reviews_of_another_kernel_are_taken_in(tmp_path):
    quiz, other = room.quiz(3), Progress(tmp_path / "home")
    other.answer(CARDS[1], 4)
    tell(quiz, "sure", percent=None)
    shown = tell(quiz, "rate", rating=4)
    assert shown["phase"] == "done"


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "home").write_text("a file where the folder should be")
    quiz = room.quiz(3)
    tell(quiz, "sure", percent=None)
    assert tell(quiz, "rate", rating=3)["notice"]


@pytest.mark.parametrize("lesson", [17, -1, "3", None, True])
def test_a_lesson_without_cards(lesson):
    with pytest.raises(ValueError, match="there is no lesson .* with cards; there are 3"):
        room.quiz(lesson)


def test_a_lesson_is_linked_where_it_lies_beside_the_notebook(tmp_path):
    quiz = room.quiz(3)
    shown = tell(quiz, "sure", percent=None)
    assert (shown["lesson"], shown["to_come"], shown["place"]) == ("", False, "Lesson 03, Why")
    assert "Rao 2020" in shown["source"]
    for name in ("03_data_parallelism.ipynb", "03_data_parallelism-Copy1.ipynb", "03_a copy.ipynb"):
        (tmp_path / name).touch()
    shown = tell(quiz, "language")
    assert (shown["lesson"], shown["section"], shown["to_come"]) == ("03_data_parallelism.ipynb", "Why", False)
    assert view(quiz.review, 3)["to_come"] is False
    for file in tmp_path.glob("*.ipynb"):
        file.unlink()
    assert view(quiz.review)["to_come"] is True and view(quiz.review)["lesson"] == ""
    assert lesson_file(None, tmp_path) == lesson_file(30, tmp_path) == ""


def test_the_output_is_a_widget_a_page_and_a_text():
    data, _ = room.quiz(3)._repr_mimebundle_()
    assert data["text/html"].count("<details") == 2 and data["text/plain"].startswith("Cards of lesson 03: 2.")
    assert "application/vnd.jupyter.widget-view+json" in data
    again, _ = room.quiz(3)._repr_mimebundle_()
    assert {kind: again[kind] for kind in ("text/html", "text/plain")} == {
        kind: data[kind] for kind in ("text/html", "text/plain")}


def test_the_review_asks_notes_too_and_carries_edited_cards_over(tmp_path, monkeypatch):
    notes = tmp_path / "notes"
    notes.mkdir()
    note = notes / "ranks.md"
    note.write_text("#flashcards/ai\n\nWhat is a rank of a run?::One process.\n\nodd::\n")
    monkeypatch.setattr("disttutor.cards.shelf.our_cards", lambda: ())
    progress_room.here().set("notes_folders", [str(notes)])
    quiz = room.review()
    assert "What is a rank of a run?" in quiz.shown["question"] and "line 5" in quiz.shown["remarks"][0]
    tell(quiz, "sure", percent=None)
    tell(quiz, "rate", rating=4)
    note.write_text("#flashcards/ai\n\nWhat is a rank of the run?::One process.\n")
    quiz = room.review()
    assert quiz.shown["phase"] == "done" and "What is a rank of the run?" in quiz.shown["adoptions"][0]
    shown = tell(quiz, "reject", place=0)
    assert shown["adoptions"] == [] and not shown["error"]
    assert room.review().shown["phase"] == "asked"


def test_the_review_keeps_to_the_days_limit_and_can_go_beyond(monkeypatch):
    many = tuple(Card(id=f"c{k}", deck="d", faces={"en": Face(f"{k}?", "!")}) for k in range(30))
    monkeypatch.setattr("disttutor.cards.shelf.our_cards", lambda: many)
    progress_room.here().set("new_per_day", 4)
    quiz = room.review()
    assert quiz.shown["total"] == 4
    while quiz.shown["phase"] != "done":
        tell(quiz, "sure", percent=None)
        tell(quiz, "rate", rating=4)
    assert quiz.shown["more"] == 26
    assert tell(quiz, "more")["total"] == 4


def test_a_lesson_asks_twelve_new_cards_at_once_numbers_among_them(monkeypatch):
    drawn = Drawn({"en": Face("1 + 1?", "2")}, 2.0, tolerance=0)
    about = {"deck": "disttutor/03-data-parallelism", "lesson": 3}
    guest = Card(id="guest", deck="disttutor/02-how-ranks-talk", lesson=3, faces={"en": Face("guest?", "!")})
    many = (guest, *(Card(id=f"c{k}", faces={"en": Face(f"{k}?", "!")}, **about) for k in range(29)),
            *(Card(id=f"n{k}", kind="number", draw=lambda random: drawn, **about) for k in range(10)))
    monkeypatch.setattr(room, "our_cards", lambda: many)
    quiz = room.quiz(3)
    assert (quiz.shown["total"], quiz.shown["more"]) == (12, 40)
    kinds = []
    while quiz.shown["phase"] != "done":
        assert "guest" not in quiz.shown["question"]
        kinds.append(quiz.shown["kind"])
        if quiz.shown["kind"] == "number":
            tell(quiz, "answer", given="2")
        tell(quiz, "sure", percent=None)
        tell(quiz, "rate", rating=4 if kinds[-1] == "basic" else None)
    assert kinds.count("basic") == 9 and quiz.shown["more"] == 28        # three of each four have no numbers
    assert tell(quiz, "more")["total"] >= 12


def test_the_users_own_copy_of_a_card_of_the_course_is_not_asked_twice(tmp_path, monkeypatch):
    (tmp_path / "note.md").write_text(
        "#flashcards/ai-ml\n\nWhat is the main goal  of distributed training? :: Speed.\n\n"
        "What else? :: Memory.\n\n#flashcards/mine\nWhat else? :: Nothing.\n")
    ours = (Card(id="note-main-goal", deck="flashcards/ai-ml",
                 faces={"en": Face("What is the main goal of distributed training?", "Both.")}),)
    monkeypatch.setattr("disttutor.cards.shelf.our_cards", lambda: ours)
    progress_room.here().set("notes_folders", [str(tmp_path)])
    cards, _ = every_card(progress_room.here())
    assert [(card.deck, card.faces["en"].answer) for card in cards] == [
        ("flashcards/ai-ml", "Both."), ("flashcards/ai-ml", "Memory."), ("flashcards/mine", "Nothing.")]


def test_no_own_javascript_is_forgotten_in_the_wheel():
    for name in (*room.PARTS, "quiz/quiz.css"):
        assert (Path(room.__file__).parents[1] / name).stat().st_size
    assert "export default { render }" in room.Quiz._esm
