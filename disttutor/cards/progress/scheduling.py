"""When a card comes again: the memory model of the `fsrs` library, fed with whole study days.

A forgotten card comes back after minutes, at an exact time. One that was remembered comes back after days: one recall
a sitting, over several days, is what lasts (Carpenter, Pan and Butler 2022), so a new card has a single step of minutes
and not two as by fsrs's own default. Of days, what counts is the study day alone: a review in the evening and one the
next morning are one day apart. Intervals of three days and more are moved a little, so that cards learnt together do
not come together for ever. The move depends on the card's id and its number of reviews only, so that the same reviews
always give the same days.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import fsrs

RETENTION = 0.9             # the share of due cards that one wants to remember
STEPS = (timedelta(minutes=10),)        # a new card that was forgotten comes back after so long
SPREAD, FROM = 0.08, 3      # how far an interval moves at most, as a share of it (or a day), and from how many days on

Steps = tuple[timedelta, ...]


class Rating(IntEnum):
    """How well a card was remembered. With two buttons only FORGOT and REMEMBERED are used."""

    FORGOT = 1
    HARD = 2
    REMEMBERED = 3
    EASY = 4


@dataclass(frozen=True, slots=True)
class State:
    """What is known about one card's memory.

    reviews: how many there were; lapses: how often it was forgotten after it had been learnt. stability: days after
    which nine in ten are remembered; difficulty: from 1 to 10. A seen card has either `due_at`, the exact time of a
    step of minutes (UTC), or `due_day`, a study day. first_day, last_day: study days of the first and latest review;
    last_time: of the latest. phase, step: where the card stands in learning (`fsrs.State`; step None once learnt).
    """

    reviews: int = 0
    lapses: int = 0
    stability: float | None = None
    difficulty: float | None = None
    due_day: date | None = None
    due_at: datetime | None = None
    first_day: date | None = None
    last_day: date | None = None
    last_time: datetime | None = None
    phase: int = fsrs.State.Learning
    step: int | None = 0

    @property
    def is_new(self) -> bool:
        """Whether the card was never seen."""
        return self.reviews == 0

    @property
    def is_learnt(self) -> bool:
        """Whether its steps of minutes are passed, so that it comes back after days."""
        return self.due_day is not None

    def is_due(self, moment: datetime, day: date) -> bool:
        """Whether a seen card is to be asked again at this moment, which belongs to the study day `day`.

        A review that lies in the future was made by a clock that has been set back since: the card is due.
        """
        if self.due_at is not None:
            return moment >= self.due_at or moment < self.last_time
        return self.due_day is not None and (day >= self.due_day or day < self.last_day)


NEW = State()
_NEVER = datetime.min.replace(tzinfo=UTC)
_RATINGS = {rating: fsrs.Rating(rating) for rating in Rating}


class Reviewed(NamedTuple):
    """One review: the moment (aware) and study day of it, the card's id, and the retention that was wished for then."""

    rating: Rating
    moment: datetime
    day: date
    card_id: str
    retention: float = RETENTION


def after(state: State, rating: Rating, moment: datetime, day: date, card_id: str, *,
          retention: float = RETENTION, jitter: bool = True, steps: Steps = STEPS) -> State:
    """The state after one more review; jitter False leaves intervals as fsrs gives them.

    A day before the latest review's (a clock was set back) counts as the same day, as fsrs does it.
    """
    return replay([Reviewed(Rating(rating), moment, day, card_id, retention)], state, jitter=jitter, steps=steps)


def replay(reviews: Sequence[Reviewed], state: State = NEW, *, jitter: bool = True, steps: Steps = STEPS) -> State:
    """The state after these reviews of one card, in their order."""
    if not reviews:
        return state
    card, lapses = _card(state), state.lapses
    for rating, _, day, _, retention in reviews:
        lapses += rating == Rating.FORGOT and card.state == fsrs.State.Review
        card, _ = _scheduler(retention, steps).review_card(card, _RATINGS[rating], _midnight(day))
    last, count = reviews[-1], state.reviews + len(reviews)
    interval, moment = card.due - card.last_review, last.moment.astimezone(UTC)
    in_minutes = interval < timedelta(days=1)
    days = _moved(interval.days, last.card_id, count) if jitter else interval.days
    return State(
        reviews=count, lapses=lapses, stability=card.stability, difficulty=card.difficulty,
        due_day=None if in_minutes else last.day + timedelta(days), due_at=moment + interval if in_minutes else None,
        first_day=state.first_day or reviews[0].day, last_day=last.day, last_time=moment,
        phase=int(card.state), step=card.step,
    )


def intervals(state: State, moment: datetime, day: date, card_id: str, *,
              retention: float = RETENTION, jitter: bool = True) -> dict[Rating, timedelta]:
    """How long each rating would put the card off: minutes, or whole days."""
    return {rating: _put_off(after(state, rating, moment, day, card_id, retention=retention, jitter=jitter))
            for rating in Rating}


def recall(state: State, day: date) -> float:
    """How likely the card is remembered on a study day, from 0 (never seen) to 1."""
    return float(_scheduler(RETENTION).get_card_retrievability(_card(state), _midnight(day)))


def _put_off(state: State) -> timedelta:
    return state.due_at - state.last_time if state.due_at else state.due_day - state.last_day


@cache
def _scheduler(retention: float, steps: Steps = STEPS) -> fsrs.Scheduler:
    return fsrs.Scheduler(desired_retention=retention, learning_steps=steps, enable_fuzzing=False)


def _card(state: State) -> fsrs.Card:
    # fsrs waits a millisecond for a card without an id, and asks the clock for one without a due time.
    last = _midnight(state.last_day) if state.last_day else None
    return fsrs.Card(card_id=0, state=fsrs.State(state.phase), step=state.step, stability=state.stability,
                     difficulty=state.difficulty, due=last or _NEVER, last_review=last)


@cache
def _midnight(day: date) -> datetime:
    """A study day as fsrs wants it: a time in UTC."""
    return datetime.combine(day, time(), UTC)


def _moved(days: int, card_id: str, reviews: int) -> int:
    """An interval, moved a little. Of one card and review, a longer one never ends before a shorter one."""
    if days < FROM:
        return days
    drawn = int.from_bytes(blake2b(f"{card_id} {reviews}".encode("utf-8", "surrogatepass"), digest_size=4).digest())
    return round(days + (drawn / 2**31 - 1) * max(1, days * SPREAD))
