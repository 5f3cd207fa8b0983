"""A sitting: cards are asked, answered, rated, and come back until they are known. No screen and no widget in it.

    review = Review(cards, Progress())
    while review.phase != Phase.DONE:
        review.reveal()                     # or answer(…) and sure(…) before
        review.rate(Rating.REMEMBERED)

Due cards are asked first, most overdue ones before others, then new ones up to the day's limit. A card that was
forgotten comes back until it is remembered once; one that was forgotten again and again is left for another day.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random, SystemRandom

from disttutor.cards.card import ENGLISH, HINGLISH, Card, Face
from disttutor.cards.progress import Progress, reviews, scheduling
from disttutor.cards.progress.scheduling import NEW, Rating
from disttutor.cards.sitting import answers
from disttutor.cards.sitting.asking import Asked, line_up, put

_AT_ONCE = datetime.min.replace(tzinfo=UTC)
UNSURE = 50                         # who was no surer than this and right knows the card, but hardly
MOST_MISSES = 4                     # so often a card may be forgotten in one sitting before it is left in peace
TYPED = frozenset({"number", "cloze"})
LONGEST = 600       # seconds; whoever takes longer over a card has left the desk


class Phase(StrEnum):
    """Where the card stands: it was asked; its answer was given, and only how sure one is remains to be said; it is
    shown; or the sitting is over."""

    ASKED = "asked"
    SURE = "sure"
    SHOWN = "shown"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer of the sitting. right: None where only the learner could tell; confidence in percent or None."""

    card: Card
    rating: Rating
    right: bool | None
    confidence: int | None

    @property
    def remembered(self) -> bool:
        """Whether the card was known."""
        return self.rating != Rating.FORGOT


@dataclass(frozen=True, slots=True)
class _Position:
    """How far the sitting is. It never changes: a step makes a new one, and going back takes the old one out again."""

    queue: tuple[Card, ...] = ()
    waiting: tuple[Card, ...] = ()                              # those that come back in this sitting
    missed: Mapping[str, int] = field(default_factory=dict)     # how often each card was forgotten
    answered: tuple[Answered, ...] = ()
    asked: Asked | None = None


class Review:
    """A sitting over these cards.

    new_limit: how many cards that were never seen before may be asked; by default what is left of the learner's limit
    for a day. everything: ask all cards, due or not. seed: decides order and numbers; the same seed, the same sitting.
    """

    def __init__(self, cards: Sequence[Card], progress: Progress, *, new_limit: int | None = None,
                 everything: bool = False, seed: int | None = None):
        self.progress = progress
        self.language: str = progress.setting("language")
        self._random = Random(SystemRandom().getrandbits(32) if seed is None else seed)
        self._everything = everything
        due, fresh = progress.due(cards), progress.fresh(cards)
        if everything:
            there = {card.id for card in (*due, *fresh)}
            due = [*due, *(card for card in cards if card.id not in there)]
        limit = progress.setting("new_per_day") - progress.started_today() if new_limit is None else new_limit
        queue = line_up(due, fresh if everything else fresh[:max(0, limit)], progress.states, self._random)
        self._reviews = {card.id: self._state(card).reviews for card in queue}
        self._past: list[tuple[_Position, reviews.Review]] = []
        self._go_to(self._with_next(_Position(tuple(queue))))

    # What is on the table

    @property
    def asked(self) -> Asked | None:
        """The card that is being asked; None at the end."""
        return self._at.asked

    @property
    def face(self) -> Face:
        """The card's face in the language that is wanted, or in its first one."""
        return self.asked.faces[self.asked.language(self.language)]

    @property
    def answered(self) -> tuple[Answered, ...]:
        """The answers of this sitting, without those that were taken back."""
        return self._at.answered

    @property
    def total(self) -> int:
        """How many cards the sitting has."""
        return self.finished + self.left

    @property
    def left(self) -> int:
        """How many cards are still to be asked, the present one included."""
        return len(self._at.queue) + len(self._at.waiting) + (self.asked is not None)

    @property
    def finished(self) -> int:
        """How many cards need not come again in this sitting."""
        open_ = {card.id for card in self._at.waiting} | ({self.asked.card.id} if self.asked else set())
        return len({answer.card.id for answer in self.answered} - open_)

    @property
    def asks_confidence(self) -> bool:
        """Whether the learner wants to be asked how sure they are."""
        return bool(self.progress.setting("confidence"))

    @property
    def ratings(self) -> tuple[Rating, ...]:
        """The ratings to choose from: two, or four if the learner has set so."""
        return tuple(Rating) if self.progress.setting("buttons") == 4 else (Rating.FORGOT, Rating.REMEMBERED)

    @property
    def intervals(self) -> dict[Rating, timedelta]:
        """When each rating would bring the card back."""
        return self.progress.intervals(self.asked.card)

    @property
    def suggested(self) -> Rating | None:
        """The rating that follows from a checked answer; None where the learner has to rate."""
        if self.verdict is None or self.verdict.right is None:
            return None
        if not self.verdict.right:
            return Rating.FORGOT
        return Rating.HARD if self.confidence is not None and self.confidence <= UNSURE else Rating.REMEMBERED

    @property
    def may_overrule(self) -> bool:
        """Whether the learner may say that a checked answer was judged wrongly: of a typed one."""
        return self.suggested is not None and self.asked.card.kind in TYPED

    # What the learner does

    def answer(self, given: object) -> None:
        """Commit to an answer (see `answers.check`). Raises AnswerError, and the question stays, if it is none."""
        self._must_be(Phase.ASKED)
        language = self.asked.language(self.language)
        self.verdict = answers.check(self.asked.card.kind, self.face, given, drawn=self.asked.drawn, language=language)
        self.given = list(given) if isinstance(given, tuple) else given
        self._stop_the_clock()
        self.phase = Phase.SURE if self.asks_confidence else Phase.SHOWN

    def sure(self, percent: int | None) -> None:
        """Say how sure one is, 25, 50, 75 or 95 percent, or None; then the answer shows."""
        if percent is not None and percent not in reviews.CONFIDENCES:
            raise ValueError(f"{percent!r} is no confidence; it is one of {reviews.CONFIDENCES} percent")
        self._must_be(Phase.ASKED, Phase.SURE)
        self.confidence = percent
        self.reveal()

    def reveal(self) -> None:
        """Show the answer."""
        self._must_be(Phase.ASKED, Phase.SURE)
        self._stop_the_clock()
        self.phase = Phase.SHOWN

    def rate(self, rating: Rating | None = None) -> None:
        """Rate the card, by default as its checked answer suggests, and go on to the next one.

        Raises ValueError if there is nothing to follow by default, or if the rating says the contrary of a checked
        answer that was not typed.
        """
        self._must_be(Phase.SHOWN)
        if rating is None and self.suggested is None:
            raise ValueError("only the learner can tell whether this card was remembered: give a rating")
        chosen = Rating(rating if rating is not None else self.suggested)
        right = self.verdict.right if self.verdict else None
        if right is not None and right != (chosen != Rating.FORGOT):
            if not self.may_overrule:
                raise ValueError("this answer was checked and cannot be overruled; only a typed one can")
            right = not right
        event = self.progress.answer(self.asked.card, chosen, confidence=self.confidence, given=self.given, right=right,
                                     seconds=self._seconds, seed=self.asked.seed)
        self._past.append((self._at, event))
        self._go_to(self._with_next(self._after(Answered(self.asked.card, chosen, right, self.confidence))))

    def undo(self) -> bool:
        """Take back the answer that is not yet shown, else the last rating; the same question is put again. False if
        there is nothing to take back."""
        if self.phase == Phase.SURE:
            self._go_to(self._at)
        elif self._past:
            at, event = self._past.pop()
            self.progress.undo(event)
            self._go_to(at)
        else:
            return False
        return True

    def turn(self) -> bool:
        """Go on to the next language of the card, and keep it for other cards. False if it has only one."""
        tags = list(self.asked.faces) if self.asked else []
        if len(tags) < 2:
            return False
        self.language = tags[(tags.index(self.asked.language(self.language)) + 1) % len(tags)]
        if self.language in (ENGLISH, HINGLISH):        # the languages of the course; a note can have others
            self.progress.set("language", self.language)
        return True

    # How it goes on

    def _after(self, answered: Answered) -> _Position:
        at, card = self._at, answered.card
        missed = {**at.missed, card.id: at.missed.get(card.id, 0) + (not answered.remembered)}
        comes_back = not answered.remembered and missed[card.id] < MOST_MISSES
        self._reviews[card.id] = self._state(card).reviews
        return _Position(at.queue, at.waiting + (card,) * comes_back, missed, (*at.answered, answered))

    def _with_next(self, at: _Position) -> _Position:
        """Take the next card out: one whose minutes are over, else the next in the queue, else the one to wait for
        least. The card that was just asked is taken only if no other is left."""
        queue = [card for card in at.queue if self._still_to_ask(card)]
        last = at.answered[-1].card.id if at.answered else None
        others = [card for card in at.waiting if card.id != last]
        choices = [*self.progress.due(others), *queue, *sorted(others, key=self._due_at), *at.waiting]
        if not choices:
            return replace(at, queue=(), asked=None)
        card = choices[0]
        return replace(at, queue=tuple(other for other in queue if other.id != card.id),
                       waiting=tuple(other for other in at.waiting if other.id != card.id),
                       asked=put(card, self._random.getrandbits(32)))

    def _still_to_ask(self, card: Card) -> bool:
        """False for a card that was answered elsewhere, in another notebook, since this sitting began."""
        return self._everything or self._state(card).reviews <= self._reviews[card.id]

    def _go_to(self, at: _Position) -> None:
        self._at = at
        self.phase = Phase.ASKED if at.asked else Phase.DONE
        self.confidence: int | None = None
        self.given: object = None
        self.verdict: answers.Verdict | None = None
        self._began, self._seconds = time.monotonic(), None

    def _stop_the_clock(self) -> None:
        if self._seconds is None:
            self._seconds = round(min(time.monotonic() - self._began, LONGEST), 1)

    def _due_at(self, card: Card) -> datetime:
        return self._state(card).due_at or _AT_ONCE

    def _state(self, card: Card) -> scheduling.State:
        return self.progress.states.get(card.id, NEW)

    def _must_be(self, *phases: Phase) -> None:
        if self.phase not in phases:
            raise ValueError(f"the card is {self.phase.value}: this goes with one that is {' or '.join(phases)}")

