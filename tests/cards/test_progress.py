"""Progress: what is due when, undo, settings, several kernels at once."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from disttutor.cards.card import Card
from disttutor.cards.progress import Progress, here
from disttutor.cards.progress.days import StudyDays
from disttutor.cards.progress.scheduling import Rating
from tests.cards.kernels import card

FORGOT, HARD, REMEMBERED, EASY = Rating
LOS_ANGELES = ZoneInfo("America/Los_Angeles")
A, B, C = card("a"), card("b"), card("c")


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, moment: datetime = datetime(2026, 1, 31, 12, tzinfo=UTC)):
        self.moment = moment

    def __call__(self) -> datetime:
        return self.moment

    def pass_by(self, **much: float) -> None:
        self.moment += timedelta(**much)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def progress(tmp_path, clock):
    return Progress(tmp_path, clock=clock, days=StudyDays(UTC, 4))


def on_disk(progress: Progress) -> Progress:
    return Progress(progress.home, clock=progress._clock, days=progress._days)


@pytest.mark.parametrize(("rollover", "due"), [
    (4, datetime(2024, 3, 10, 11, tzinfo=UTC)),             # 4:00, three hours after midnight: the clock went forward
    (0, datetime(2024, 3, 10, 8, tzinfo=UTC)),              # midnight
    (2, datetime(2024, 3, 10, 10, tzinfo=UTC)),             # two o'clock never was: three o'clock
])
def test_tomorrow_begins_at_the_learners_own_roll_over(tmp_path, rollover, due):
    # Study day cut at UTC midnight would make the card due at 17:00 local on the tenth.
    clock = Clock(datetime(2024, 3, 9, 20, tzinfo=LOS_ANGELES))
    progress = Progress(tmp_path, clock=clock)
    progress.set("zone", "America/Los_Angeles")
    progress.set("rollover_hour", rollover)
    for rating in (FORGOT, REMEMBERED, REMEMBERED):         # by fsrs: due after one day
        progress.answer(A, rating)
    assert progress.states["a"].due_day == date(2024, 3, 10) and progress.reviews[0].day == date(2024, 3, 9)
    for moment, asked in ((due - timedelta(seconds=1), []), (due, [A])):
        clock.moment = moment
        assert progress.due([A]) == asked == on_disk(progress).due([A])


def test_minutes_are_exact_and_survive_a_new_kernel(progress, clock):
    progress.answer(A, FORGOT)
    clock.pass_by(minutes=9, seconds=59)
    assert progress.due([A]) == on_disk(progress).due([A]) == []
    clock.pass_by(seconds=1)
    assert progress.due([A]) == on_disk(progress).due([A]) == [A]
    assert progress.intervals(A)[REMEMBERED] == timedelta(days=1)


def test_the_most_overdue_comes_first_and_new_cards_keep_their_order(progress, clock):
    progress.answer(C, EASY)
    clock.pass_by(days=1)
    progress.answer(B, FORGOT)
    assert progress.fresh([C, A, card("d"), B]) == [A, card("d")]
    assert progress.started_today() == 1
    clock.pass_by(days=30)
    assert progress.due([A, B, C]) == [B, C]
    assert progress.started_today() == 0


def test_undo_brings_the_former_state_back_exactly(progress, clock):
    states = [dict(progress.states)]
    for rating, named in ((EASY, A), (HARD, B), (FORGOT, A)):
        progress.answer(named, rating)
        clock.pass_by(days=9)
        states.append(dict(progress.states))
    for number, name in ((2, "a"), (1, "b"), (0, "a")):
        assert progress.undo().card == name
        assert dict(progress.states) == states[number] == dict(on_disk(progress).states)
    assert progress.undo() is None and progress.reviews == []
    progress.answer(A, EASY)
    assert len(progress.reviews) == 1
    assert len(progress.all_events()) == 7                   # nothing is ever taken out


def test_undo_is_for_what_was_answered_here(progress):
    other = on_disk(progress)
    other.answer(A, EASY)
    progress.refresh()
    assert progress.undo() is None and set(progress.states) == {"a"}


def test_a_review_says_all_that_was_said(progress, clock):
    review = progress.answer(A, HARD, confidence=75, given=["x", 2], right=False, seconds=2.5, seed=7)
    assert (review.card, review.rating, review.confidence, review.given, review.right, review.seconds, review.seed,
            review.moment, review.day) == ("a", HARD, 75, ["x", 2], False, 2.5, 7, clock.moment, date(2026, 1, 31))
    assert on_disk(progress).reviews == [review]
    first, second = progress.all_events()[0], progress.answer(A, EASY) and progress.all_events()[1]
    assert (first["deck"], first["kind"], first["front"]) == ("deck", "basic", "What is a?") and "front" not in second
    progress.answer(card("a", "What is an A?"), EASY)        # the same id with another text
    assert progress.all_events()[2]["front"] == "What is an A?"
    progress.answer(Card(id="n", deck="deck", kind="number"), EASY, seed=3, seconds=float("nan"))
    assert "front" not in progress.all_events()[3]


@pytest.mark.parametrize(("bad", "words"), [
    ({"rating": 5}, "FORGOT"), ({"rating": 3, "confidence": 60}, r"\(25, 50, 75, 95\)")])
def test_an_answer_that_cannot_be_is_refused(progress, bad, words):
    with pytest.raises(ValueError, match=words):
        progress.answer(A, **bad)
    assert progress.all_events() == []


def test_puzzles_lessons_and_study_days(progress, clock):
    progress.solved("ring")
    progress.visited(3)
    clock.pass_by(days=1)
    progress.answer(A, EASY)
    clock.pass_by(days=1)
    progress.solved("ring")
    progress.visited(3)
    again = on_disk(progress)
    assert again.puzzles == {"ring"} and again.lessons_visited == {3} and len(progress.all_events()) == 3
    assert again.study_days() == [date(2026, 1, 31), date(2026, 2, 1)]


@pytest.mark.parametrize(("name", "first", "value"), [
    ("language", "en", "hi-Latn"), ("buttons", 2, 4), ("confidence", True, False), ("rollover_hour", 4, 0),
    ("zone", "", "Asia/Kathmandu"), ("retention", 0.9, 0.85), ("new_per_day", 10, 0),
    ("notes_folders", [], ["/a", "b"])])
def test_settings_are_kept_and_the_latest_wins(progress, name, first, value):
    assert list(progress.setting(name)) == first if name == "notes_folders" else progress.setting(name) == first
    progress.set(name, value)
    assert progress.setting(name) == on_disk(progress).setting(name) == value
    other = on_disk(progress)
    other.set(name, first)
    progress.refresh()
    assert progress.setting(name) == first


@pytest.mark.parametrize(("name", "value", "words"), [
    ("language", "fr", "en or hi-Latn"), ("buttons", 3, "2 or 4"), ("confidence", 1, "True or False"),
    ("rollover_hour", 24, "0 to 23"), ("zone", "Asia/Nowhere", "time zone"), ("zone", "../etc/passwd", "time zone"),
    ("zone", 3, "time zone"), ("retention", 1.0, "0.7 to 0.97"), ("retention", float("nan"), "0.7 to 0.97"),
    ("new_per_day", -1, "0 to 9999"), ("new_per_day", True, "0 to 9999"), ("notes_folders", "a", "list of folders"),
    ("notes_folders", [""], "list of folders"), ("colour", 1, "there is no setting 'colour'; there are language")])
def test_a_setting_that_cannot_be_says_what_can(progress, name, value, words):
    with pytest.raises(ValueError, match=words):
        progress.set(name, value)
    assert progress.all_events() == []


def test_a_setting_asked_by_a_wrong_name_says_the_right_ones(progress):
    with pytest.raises(ValueError, match="there is no setting 'colour'"):
        progress.setting("colour")
    assert progress.setting("buttons", 4) == 4


def test_a_wished_retention_holds_for_reviews_from_then_on(progress, clock):
    progress.answer(A, EASY)
    before = progress.states["a"].due_day
    progress.set("retention", 0.97)
    assert progress.states["a"].due_day == before == on_disk(progress).states["a"].due_day
    progress.answer(B, EASY)
    assert progress.states["b"].due_day < before


def test_two_kernels_see_each_others_answers_after_a_refresh(progress, clock):
    other = on_disk(progress)
    progress.answer(A, EASY)
    clock.pass_by(minutes=1)
    other.answer(B, EASY)
    progress.refresh()
    assert dict(progress.states) == dict(on_disk(progress).states) and set(progress.states) == {"a", "b"}


def test_answers_after_a_clock_was_set_back_come_after_those_before(progress, clock):
    right = clock.moment
    clock.moment = right + timedelta(days=1500)
    progress.answer(A, EASY)
    clock.moment = right
    assert progress.due([A]) == [A]                          # asked in the future: asked again
    progress.answer(A, REMEMBERED)
    assert progress.due([A]) == [] and progress.states["a"].due_day < date(2026, 12, 31)
    again = on_disk(progress)
    assert dict(again.states) == dict(progress.states)
    again.answer(A, FORGOT)                                  # another kernel, in order after both
    assert [review.rating for review in on_disk(progress).reviews] == [EASY, REMEMBERED, FORGOT]


def test_a_study_day_is_the_one_of_where_it_was_answered(tmp_path):
    clock = Clock(datetime(2024, 3, 9, 20, tzinfo=LOS_ANGELES))
    there = Progress(tmp_path, clock=clock, days=StudyDays(LOS_ANGELES, 4))
    there.answer(A, EASY)
    moved = Progress(tmp_path, clock=clock, days=StudyDays(ZoneInfo("Asia/Kathmandu"), 4))
    assert moved.reviews[0].day == date(2024, 3, 9) and moved.states == there.states
    assert moved.today == date(2024, 3, 10)


def test_a_place_that_cannot_be_written_is_said_and_nothing_is_lost_while_the_kernel_lives(tmp_path, clock):
    (tmp_path / "file").write_text("")
    progress = Progress(tmp_path / "file" / "home", clock=clock)
    progress.answer(A, EASY)
    progress.answer(B, EASY)
    assert "kept in memory only" in progress.notice and set(progress.states) == {"a", "b"}
    assert progress.undo().card == "b"
    progress.refresh()
    assert set(progress.states) == {"a"}
    assert len(progress.all_events()) == 3
    (tmp_path / "file").unlink()
    progress.refresh()
    assert progress.notice == "" and dict(on_disk(progress).states) == dict(progress.states)


def test_what_is_in_memory_only_stays_when_all_is_read_anew(progress, monkeypatch):
    on_disk(progress).answer(A, EASY)
    progress.answer(B, EASY)
    theirs = next(path for path in progress.folder.iterdir() if b'"card":"a"' in path.read_bytes())

    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    progress.answer(C, EASY)
    progress.refresh()
    assert set(progress.states) == {"a", "b", "c"} and set(on_disk(progress).states) == {"a", "b"}
    theirs.unlink()
    progress.refresh()
    assert set(progress.states) == {"b", "c"} and progress.undo().card == "c"
    monkeypatch.undo()
    progress.refresh()
    assert set(progress.states) == set(on_disk(progress).states) == {"b"} and progress.notice == ""


def test_threads_of_one_kernel_lose_nothing(progress):
    def work(number: int) -> int:
        progress.answer(card(f"card-{number % 9}"), Rating(1 + number % 4))
        progress.refresh()
        return len(progress.reviews) + len(progress.due([A, B])) + progress.setting("buttons")

    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(work, range(200)))) == 200
    assert len(on_disk(progress).reviews) == len(progress.reviews) == 200
    assert dict(on_disk(progress).states) == dict(progress.states)


def test_reading_makes_no_folder(tmp_path):
    progress = Progress(tmp_path / "none")
    assert progress.due([A]) == [] and progress.warnings == [] and not (tmp_path / "none").exists()


def test_here_is_one_for_each_home(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTTUTOR_HOME", str(tmp_path / "one"))
    progress = here()
    Progress(tmp_path / "one").answer(A, EASY)
    assert here() is progress and set(progress.states) == {"a"}
    monkeypatch.setenv("DISTTUTOR_HOME", str(tmp_path / "two"))
    assert here() is not progress and not here().states


@pytest.mark.parametrize("call", [
    lambda progress: progress.answer(card("a"), 3, given=10**5000),        # more digits than JSON may have
    lambda progress: progress.solved(None),
    lambda progress: progress.visited("3"),
])
def test_what_cannot_be_kept_is_refused_and_does_not_stand_in_the_way(progress, call):
    with pytest.raises(ValueError):
        call(progress)
    progress.answer(card("b"), 3)
    again = Progress(progress.home)
    assert ([review.card for review in again.reviews], again.warnings) == (["b"], [])


def test_numbers_of_other_libraries_are_numbers(progress):
    numpy = pytest.importorskip("numpy")
    review = progress.answer(card("a"), numpy.int64(3), confidence=numpy.int64(75), seed=numpy.int64(9))
    assert Progress(progress.home).reviews == [review]
    assert (review.confidence, review.seed) == (75, 9)


def test_a_clock_that_begins_in_1970_loses_nothing(tmp_path):
    """A computer without a battery; in California it is still 1969."""
    days = StudyDays(ZoneInfo("America/Los_Angeles"))
    progress = Progress(tmp_path, clock=lambda: datetime(1970, 1, 1, 3, tzinfo=UTC), days=days)
    assert progress.answer(card("a"), 3).day == date(1969, 12, 31)
    assert len(Progress(tmp_path).reviews) == 1
