"""Scheduling: the vectors of the fsrs project, study days, and intervals that move without losing their order."""

from datetime import UTC, date, datetime, timedelta

import fsrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cards.progress.scheduling import NEW, Rating, Reviewed, State, after, intervals, recall, replay

NOON = datetime(2022, 11, 29, 12, 30, tzinfo=UTC)
DAY = NOON.date()
FORGOT, HARD, GOOD, EASY = Rating
OF_FSRS = timedelta(minutes=1), timedelta(minutes=10)           # its own steps, which its vectors were made with


def test_reviews_on_the_due_time_give_the_published_intervals():
    state, moment, days = NEW, NOON, []
    for rating in [GOOD] * 6 + [FORGOT] * 2 + [GOOD] * 5:
        state = after(state, rating, moment, moment.date(), "a", jitter=False, steps=OF_FSRS)
        days.append(0 if state.due_at else (state.due_day - moment.date()).days)
        moment = state.due_at or moment + (state.due_day - moment.date())
    assert days == [0, 2, 11, 46, 163, 498, 0, 0, 2, 4, 7, 12, 21]
    assert (state.reviews, state.lapses) == (13, 1)


def test_the_published_memory_state():
    state, moment = NEW, NOON
    for rating, gap in zip([FORGOT] + [GOOD] * 5, [0, 0, 1, 3, 8, 21], strict=True):
        moment += timedelta(days=gap)
        state = after(state, rating, moment, moment.date(), "a")
    assert state.stability == pytest.approx(53.62691, abs=1e-3)
    assert state.difficulty == pytest.approx(6.3574867, abs=1e-4)


@pytest.mark.parametrize(("rating", "stability", "difficulty"), [
    (FORGOT, 0.212, 6.4133), (HARD, 1.2931, 5.1122), (GOOD, 2.3065, 2.1181), (EASY, 8.2956, 1.0)])
def test_the_first_review(rating, stability, difficulty):
    state = after(NEW, rating, NOON, DAY, "a")
    assert (state.stability, state.difficulty) == (pytest.approx(stability), pytest.approx(difficulty, abs=1e-4))


def test_steps_of_minutes_are_exact_times_and_days_are_study_days():
    late = datetime(2024, 3, 10, 7, 55, tzinfo=UTC)                 # 23:55 on the ninth in Los Angeles
    first = after(NEW, FORGOT, late, date(2024, 3, 9), "a")
    assert (first.due_at, first.due_day, first.is_learnt) == (late + timedelta(minutes=10), None, False)
    assert not first.is_due(late + timedelta(minutes=9), date(2024, 3, 9))
    assert first.is_due(late + timedelta(minutes=10), date(2024, 3, 9))
    second = after(first, GOOD, late + timedelta(minutes=10), date(2024, 3, 9), "a")
    assert (second.due_at, second.due_day, second.is_learnt) == (None, date(2024, 3, 10), True)
    assert [second.is_due(late, date(2024, 3, day)) for day in (9, 10, 11)] == [False, True, True]


def test_a_new_card_that_is_remembered_comes_back_after_days():
    state = after(NEW, GOOD, NOON, DAY, "a")
    assert (state.due_at, state.due_day) == (None, DAY + timedelta(days=2))         # stability 2.3065 days


def test_an_evening_and_the_next_morning_are_one_day_apart():
    learnt = after(after(NEW, EASY, NOON, DAY, "a"), GOOD, NOON + timedelta(days=8), DAY + timedelta(8), "a")
    evening = NOON.replace(hour=20) + timedelta(days=30)
    reviewed = after(learnt, GOOD, evening, evening.date(), "a")
    morning = after(reviewed, GOOD, evening + timedelta(hours=12), evening.date() + timedelta(1), "a")
    day_later = after(reviewed, GOOD, evening + timedelta(hours=24), evening.date() + timedelta(1), "a")
    assert (morning.stability, morning.due_day) == (day_later.stability, day_later.due_day)
    assert recall(reviewed, evening.date()) == 1.0 > recall(reviewed, evening.date() + timedelta(1))


def test_recall_is_nine_in_ten_after_the_stability():
    learnt = State(1, 0, stability=40.0, difficulty=5.0, due_day=DAY + timedelta(40), last_day=DAY, last_time=NOON,
                   phase=2, step=None)
    assert recall(learnt, DAY + timedelta(40)) == pytest.approx(0.9)
    assert recall(NEW, DAY) == 0.0


def test_a_clock_set_back_counts_as_the_same_day_and_the_card_is_due():
    ahead = after(after(NEW, EASY, NOON, DAY, "a"), GOOD, NOON + timedelta(days=1500), DAY + timedelta(1500), "a")
    assert ahead.is_due(NOON, DAY)
    again = after(ahead, GOOD, NOON, DAY, "a", jitter=False)
    same_day = after(ahead, GOOD, NOON, DAY + timedelta(1500), "a", jitter=False)
    assert again.stability == same_day.stability
    assert again.due_day - DAY == same_day.due_day - (DAY + timedelta(1500))
    assert not again.is_due(NOON, DAY)
    step = after(NEW, FORGOT, NOON, DAY, "a")
    assert step.is_due(NOON - timedelta(days=1500), DAY - timedelta(days=1500))
    assert recall(ahead, DAY) == 1.0


def test_a_higher_retention_asks_sooner():
    learnt = after(NEW, EASY, NOON, DAY, "a")
    moment, day = NOON + timedelta(days=8), DAY + timedelta(8)
    dense, loose = (after(learnt, GOOD, moment, day, "a", retention=r, jitter=False) for r in (0.95, 0.8))
    assert dense.due_day < loose.due_day and dense.stability == loose.stability


histories = st.lists(st.tuples(st.sampled_from(Rating), st.integers(0, 400)), max_size=12)


def replayed(history, card, jitter=True):
    state, moment = NEW, NOON
    for rating, gap in history:
        moment += timedelta(days=gap)
        state = after(state, rating, moment, moment.date(), card, jitter=jitter)
    return state, moment


@given(histories, st.text(max_size=8))
def test_buttons_keep_their_order_and_days_come_tomorrow_or_later(history, card):
    state, moment = replayed(history, card)
    waits = intervals(state, moment, moment.date(), card)
    assert waits[HARD] <= waits[GOOD] <= waits[EASY]
    assert waits[FORGOT] <= waits[HARD]
    assert all(wait < timedelta(hours=1) or wait >= timedelta(days=1) for wait in waits.values())


@given(histories)
def test_whole_days_give_what_fsrs_gives_for_times_that_many_days_apart(history):
    scheduler, theirs = fsrs.Scheduler(enable_fuzzing=False), fsrs.Card(card_id=1)
    ours, moment = NEW, NOON
    for rating, gap in history:
        moment += timedelta(days=gap)
        theirs, _ = scheduler.review_card(theirs, fsrs.Rating(rating), moment)
        ours = after(ours, rating, moment, moment.date(), "a", jitter=False, steps=OF_FSRS)
        due = moment + (ours.due_day - moment.date()) if ours.due_day else ours.due_at
        assert (ours.stability, ours.difficulty, due) == (theirs.stability, theirs.difficulty, theirs.due)


@given(histories, st.text(max_size=8))
def test_a_history_replayed_at_once_is_the_same_as_step_by_step(history, card):
    step_by_step, reviews, moment = replayed(history, card)[0], [], NOON
    for rating, gap in history:
        moment += timedelta(days=gap)
        reviews.append(Reviewed(rating, moment, moment.date(), card))
    assert replay(reviews) == step_by_step


@given(histories, st.text(max_size=8))
def test_moving_an_interval_changes_neither_the_memory_nor_the_result_of_a_second_run(history, card):
    moved, _ = replayed(history, card)
    plain, moment = replayed(history, card, jitter=False)
    assert replayed(history, card)[0] == moved
    assert (moved.stability, moved.difficulty, moved.due_at) == (plain.stability, plain.difficulty, plain.due_at)
    if plain.due_day:
        whole = (plain.due_day - moment.date()).days
        assert abs((moved.due_day - plain.due_day).days) <= (0 if whole < 3 else max(1, round(0.08 * whole)))


def test_cards_learnt_together_come_on_different_days():
    learnt = State(5, 0, stability=100.0, difficulty=5.0, due_day=DAY, last_day=DAY - timedelta(100), last_time=NOON,
                   phase=2, step=None)
    days = {after(learnt, GOOD, NOON, DAY, f"card-{n}").due_day for n in range(200)}
    plain = after(learnt, GOOD, NOON, DAY, "", jitter=False).due_day
    assert len(days) > 20 and min(days) < plain < max(days)


@pytest.mark.parametrize("rating", [0, 5])
def test_there_are_four_ratings(rating):
    with pytest.raises(ValueError):
        after(NEW, rating, NOON, DAY, "a")
