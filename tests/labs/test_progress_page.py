"""The progress page, against counts by hand."""

from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import fsrs
import pytest

from disttutor.cards import Card, Face
from disttutor.cards.progress import Progress
from disttutor.cards.progress.scheduling import Rating, State
from disttutor.labs import overview as counting
from disttutor.labs import progress_page as pages
from disttutor.labs.overview import LessonDone, overview
from disttutor.labs.progress_page import ProgressPage, progress_page

TODAY = date(2026, 3, 18)


def card(id, lesson=3):
    return Card(id=id, deck="d", lesson=lesson, faces={"en": Face("q", "a")})


def due(days, stability=30.0):
    """A learnt card that is due in so many days."""
    return State(reviews=3, stability=stability, difficulty=5.0, due_day=TODAY + timedelta(days), last_day=TODAY,
                 last_time=datetime(2026, 3, 18, tzinfo=UTC), phase=int(fsrs.State.Review), step=None)


def learner(states=None, studied=(), reviews=(), puzzles=(), visited=()):
    return SimpleNamespace(today=TODAY, states=states or {}, reviews=list(reviews), puzzles=set(puzzles),
                           lessons_visited=set(visited), study_days=lambda: sorted(studied), notice="")


def days_ago(*days):
    return [TODAY - timedelta(day) for day in days]


def test_due_cards_are_counted_by_day():
    step = State(reviews=1, stability=0.5, difficulty=5.0, due_at=datetime(2026, 3, 18, 9, tzinfo=UTC), last_day=TODAY,
                 last_time=datetime(2026, 3, 18, tzinfo=UTC))
    states = {"late": due(-40), "today": due(0), "minutes": step, "tomorrow": due(1), "sixth": due(6), "later": due(7),
              "young": due(1, 3.0), "of no deck": due(0)}
    view = overview(learner(states), [card(id) for id in [*states, "fresh"] if id != "of no deck"])
    assert (view.waiting, view.tomorrow, view.week) == (3, 2, 6)
    assert (view.new, view.learning, view.known) == (1, 2, 5)


def test_a_lesson_is_done_when_each_of_its_cards_was_answered():
    cards = [card("a", 2), card("b", 2), card("c", 3), card("d", 3), card("e", 4), card("f", None)]
    view = overview(learner({"a": due(1), "b": due(1), "c": due(1)}, visited=[0, 5]), cards)
    states = {lesson.number: lesson.state for lesson in view.lessons if lesson.state != "new"}
    assert states == {2: "done", 3: "started", 0: "started", 5: "started"}
    assert LessonDone(9, "x", 0, 0, False).state == "new"       # without cards it is not done by itself


@pytest.mark.parametrize("studied, waiting, said", [
    ([], 0, "Nothing is answered yet. The cards of a lesson wait in its Recall section."),
    ([0], 0, "You studied on 1 of the last 14 days."),
    ([0, 1, 5, 13, 14, 40], 3, "You studied on 4 of the last 14 days."),
    ([3, 9], 3, "You studied on 2 of the last 14 days."),
    ([4, 9], 12, "Welcome back: 12 cards are waiting, about 4 minutes."),
    ([90], 1, "Welcome back: 1 card is waiting, about 1 minute."),
    ([90], 0, "Welcome back: no card is waiting."),
])
def test_the_greeting_counts_and_blames_nobody(studied, waiting, said):
    cards = [card(str(k)) for k in range(waiting)]
    view = overview(learner({c.id: due(0) for c in cards}, days_ago(*studied)), cards)
    assert view.greeting() == said


def test_how_long_it_takes_follows_the_learner():
    cards = [card(str(k)) for k in range(10)]
    reviews = [SimpleNamespace(seconds=s, confidence=None, right=None, rating=Rating.EASY)
               for s in [60.0] * 6 + [5.0] * 5 + [None]]
    view = overview(learner({c.id: due(0) for c in cards}, days_ago(9), reviews), cards)
    assert view.seconds == 60.0 and view.minutes == 10          # the median of eleven times
    assert overview(learner(reviews=reviews[:9]), []).seconds == counting.A_CARD


def test_an_empty_progress_has_a_page_that_is_always_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "here", lambda: Progress(tmp_path / "private", clock=lambda: datetime.now(UTC)))
    page = progress_page(tmp_path)
    bundle = page._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "Lessons done: 0 of 17." in bundle["text/html"] and "<img" not in bundle["text/html"]
    assert bundle["text/plain"].startswith("Nothing is answered yet.")
    assert "until now there are 0" in bundle["text/plain"] and "Cards to review" not in bundle["text/plain"]
    assert "private" not in str(bundle) and str(tmp_path) not in str(bundle)
    assert progress_page(tmp_path)._repr_mimebundle_() == bundle


def test_a_page_of_somebody_who_has_studied(tmp_path, monkeypatch):
    moment = [datetime(2026, 3, 10, 12, tzinfo=UTC)]
    progress = Progress(tmp_path, clock=lambda: moment[0])
    from disttutor.cards import our_cards

    cards = [c for c in our_cards() if c.lesson == 0]
    for k, one in enumerate(cards):
        moment[0] += timedelta(seconds=20)
        progress.answer(one, Rating.REMEMBERED, confidence=95 if k % 2 else 50, right=k % 3 > 0, seconds=20)
    progress.solved("concept-map-1")
    moment[0] = datetime(2026, 3, 11, 12, tzinfo=UTC)
    monkeypatch.setattr(pages, "here", lambda: progress)
    (tmp_path / "00_start_here.ipynb").touch()
    page = progress_page(tmp_path)
    said = repr(page)
    assert "You studied on 1 of the last 14 days." in said
    assert f"✓ 00 Start here: {len(cards)} of {len(cards)}" in said
    assert "○ 01 Why distribute (to come): 0 of " in said
    assert "Puzzles solved: 1 (concept map 1)." in said
    html = page.html()
    assert "<a href='00_start_here.ipynb'>Start here</a>" in html
    assert "Lessons done: 1 of 1 (16 more are to come)." in html
    assert html.count("<img") == 2                              # the calendar, and the curve
    assert "<code>disttutor cards export --progress FILE</code>" in html
    assert f"50 % sure: {sum(k % 3 > 0 for k in range(0, len(cards), 2))} of {(len(cards) + 1) // 2} right" in said


def test_the_curve_waits_for_ten_answers():
    review = SimpleNamespace(seconds=1.0, confidence=75, right=True, rating=Rating.REMEMBERED)
    nine, ten = (ProgressPage(overview(learner(reviews=[review] * count), []), None) for count in (9, 10))
    assert "until now there are 9" in nine._calibration() and "<img" in ten._calibration()


def test_progress_in_memory_only_is_said(tmp_path):
    page = ProgressPage(overview(learner(), []), tmp_path, in_memory=True)
    assert "Your data directory cannot be written now" in repr(page)
