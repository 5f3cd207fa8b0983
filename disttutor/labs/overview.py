"""Where a learner stands: lessons, cards, days and puzzles, counted from their progress."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median

from disttutor.cards import Card
from disttutor.cards.knowledge import card_state
from disttutor.cards.progress import Progress
from disttutor.cards.progress.calibration import Calibration, calibration
from disttutor.cards.sitting.summary import next_due
from disttutor.labs.course import LESSONS

DAYS = 14               # how far back the sentence on days looks
PAUSE = 4               # from so many days without study on, one is welcomed back
A_CARD = 20.0           # seconds, until enough answers have said how long one takes
ENOUGH_TIMES = 10


@dataclass(frozen=True, slots=True)
class LessonDone:
    """One lesson: how many cards it has, and how many of them were answered at least once. visited: whether it was
    opened."""

    number: int
    title: str
    cards: int
    answered: int
    visited: bool

    @property
    def state(self) -> str:
        """"done" when each of its cards was answered, "started" when some were or it was opened, else "new"."""
        if self.cards and self.answered == self.cards:
            return "done"
        return "started" if self.answered or self.visited else "new"


@dataclass(frozen=True, slots=True)
class Overview:
    """Where a learner stands on a study day.

    lessons: all of the course. puzzles: ids of the solved ones. waiting: cards that are due today; tomorrow: that come
    due tomorrow; week: due on the seven days that begin today. new, learning, known: cards by what is known of them.
    studied: days. seconds: how long a card takes. calibration: how well confidence and answers agree.
    """

    today: date
    lessons: tuple[LessonDone, ...]
    puzzles: tuple[str, ...]
    waiting: int
    tomorrow: int
    week: int
    new: int
    learning: int
    known: int
    studied: tuple[date, ...]
    seconds: float
    calibration: Calibration

    @property
    def minutes(self) -> int:
        """About how long the waiting cards take; 1 at least."""
        return max(1, round(self.waiting * self.seconds / 60))

    def greeting(self) -> str:
        """Days studied, or what waits after a pause; in words that blame nobody."""
        if not self.studied:
            return "Nothing is answered yet. The cards of a lesson wait in its Recall section."
        if (self.today - self.studied[-1]).days >= PAUSE:
            if not self.waiting:
                return "Welcome back: no card is waiting."
            return f"Welcome back: {_cards(self.waiting)} waiting, about {_minutes(self.minutes)}."
        last = [day for day in self.studied if 0 <= (self.today - day).days < DAYS]
        return f"You studied on {len(last)} of the last {DAYS} days."


def overview(progress: Progress, cards: Sequence[Card]) -> Overview:
    """Counts everything anew."""
    today, states = progress.today, progress.states
    coming = next_due(cards, states)
    waiting = sum(count for day, count in coming.items() if day is None or day <= today)
    known = Counter(card_state(states.get(card.id), today) for card in cards)
    reviews = progress.reviews
    times = [review.seconds for review in reviews if review.seconds]
    return Overview(
        today=today, lessons=tuple(_lessons(progress, cards)), puzzles=tuple(sorted(progress.puzzles)),
        waiting=waiting, tomorrow=coming[today + timedelta(1)],
        week=waiting + sum(coming[today + timedelta(day)] for day in range(1, 7)),
        new=known["new"], learning=known["learning"], known=known["known"], studied=tuple(progress.study_days()),
        seconds=median(times) if len(times) >= ENOUGH_TIMES else A_CARD, calibration=calibration(reviews))


def _lessons(progress: Progress, cards: Sequence[Card]) -> list[LessonDone]:
    total = Counter(card.lesson for card in cards)
    answered = Counter(card.lesson for card in cards if card.id in progress.states)
    visited = progress.lessons_visited
    return [LessonDone(lesson.number, lesson.title, total[lesson.number], answered[lesson.number],
                       lesson.number in visited) for lesson in LESSONS]


def _cards(count: int) -> str:
    return "1 card is" if count == 1 else f"{count} cards are"


def _minutes(count: int) -> str:
    return "1 minute" if count == 1 else f"{count} minutes"
