"""A learner's progress: what was answered, solved and set, here and in every other kernel.

    progress = here()
    review = progress.answer(card, Rating.REMEMBERED, confidence=75)
    progress.due(our_cards())

Everything is an event (`events`), written before a call returns (`event_writer`), and read again from the files of all
kernels (`event_reader`); what follows from the events is in `history`.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from disttutor.cards.card import Card
from disttutor.cards.notes.identity import known, near_matches
from disttutor.cards.progress.adoptions import Adoption, fields_of, owners
from disttutor.cards.progress.days import StudyDays
from disttutor.cards.progress.events import Event, encode, home_folder, make, number_of, place_of, plain
from disttutor.cards.progress.history import History
from disttutor.cards.progress.preferences import PREFERENCES, check_preference
from disttutor.cards.progress.reader import Reader
from disttutor.cards.progress.reviews import CONFIDENCES, Review
from disttutor.cards.progress.scheduling import Rating, State, intervals
from disttutor.cards.progress.writer import Writer

FOLDER = "events"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Progress:
    """What is known about one learner, kept below the folder `home` (`events.home_folder()` by itself).

    clock: gives the time (aware). days: how study days are cut; by itself as the settings say. Damaged or unreadable
    files never keep it from opening: see `warnings`.
    """

    def __init__(self, home: Path | None = None, *, clock: Callable[[], datetime] = now, days: StudyDays | None = None):
        self.home = Path(os.path.abspath(home)) if home is not None else home_folder()
        self.folder = self.home / FOLDER
        self._clock, self._days = clock, days
        self._writer, self._reader, self._history = Writer(self.folder), Reader(self.folder), History()
        self._mine: list[str] = []          # reviews given here that can still be undone, the last at the end
        # Kernels may handle a widget's messages in threads of their own.
        self._lock = threading.RLock()
        self.refresh()

    # What is known

    @property
    def notice(self) -> str:
        """Why progress is kept in memory only, or "" where it is on the disk."""
        return self._writer.notice

    @property
    def warnings(self) -> list[str]:
        """What could not be read of the files, a sentence each."""
        return self._reader.warnings + self._history.warnings

    @property
    def states(self) -> Mapping[str, State]:
        """The state of every card that was asked, by the card's id: a view, in which later answers show."""
        with self._lock:
            return self._history.states

    @property
    def reviews(self) -> list[Review]:
        """All reviews that were not undone, the first one first."""
        with self._lock:
            return self._history.reviews

    @property
    def puzzles(self) -> set[str]:
        """Ids of the puzzles that are solved."""
        return set(self._history.puzzles)

    @property
    def lessons_visited(self) -> set[int]:
        """Numbers of the lessons that were opened."""
        return set(self._history.lessons)

    @property
    def days(self) -> StudyDays:
        """How study days are cut."""
        zone = self.setting("zone")
        return self._days or StudyDays(ZoneInfo(zone) if zone else None, self.setting("rollover_hour"))

    @property
    def today(self) -> date:
        """The study day it is now."""
        return self.days.day_of(self._clock())

    def study_days(self) -> list[date]:
        """Study days on which a card was answered or a puzzle solved for the first time, in order."""
        return sorted({review.day for review in self.reviews} | set(self._history.puzzles.values()))

    def started_today(self) -> int:
        """How many cards were asked for the very first time on this study day."""
        today = self.today
        return sum(state.first_day == today for state in self.states.values())

    def due(self, cards: Iterable[Card]) -> list[Card]:
        """Those of the cards that are to be asked again now, the most overdue first."""
        moment, states, days = self._clock().astimezone(UTC), self.states, self.days
        today = days.day_of(moment)
        due = [card for card in cards if card.id in states and states[card.id].is_due(moment, today)]
        start = {day: days.start_of(day).astimezone(UTC) for day in {states[card.id].due_day for card in due} - {None}}
        return sorted(due, key=lambda card: states[card.id].due_at or start[states[card.id].due_day])

    def fresh(self, cards: Iterable[Card]) -> list[Card]:
        """Those of the cards that were never asked, in their order."""
        states = self.states
        return [card for card in cards if card.id not in states]

    def intervals(self, card: Card) -> dict[Rating, Any]:
        """How long each rating would put the card off, as a timedelta: minutes, or whole days."""
        moment, state = self._clock(), self.states.get(card.id, State())
        return intervals(state, moment, self.days.day_of(moment), card.id, retention=self.setting("retention"))

    # What the learner does

    def answer(self, card: Card, rating: Rating, *, confidence: int | None = None, given: Any = None,
               right: bool | None = None, seconds: float | None = None, seed: int | None = None) -> Review:
        """Takes an answer; once this returns it is on the disk, unless `notice` says why it is not.

        confidence: how sure the learner was, in percent, one of `CONFIDENCES`. given: the answer; right: whether it is.
        seconds: how long it took. seed: of a number card. Raises ValueError for a rating or confidence that is none.
        """
        if rating not in list(Rating):
            raise ValueError(f"the rating is {rating!r}; it can be {', '.join(f'{r.name} ({r})' for r in Rating)}")
        if confidence not in (None, *CONFIDENCES):
            raise ValueError(f"the confidence is {confidence!r}; it can be {CONFIDENCES} percent, or None")
        took = number_of(seconds)
        with self._lock:
            event = self._add(
                "review", card=card.id, rating=int(rating), given=plain(given),
                confidence=None if confidence is None else int(confidence),
                right=None if right is None else bool(right), seconds=None if took is None else round(max(took, 0), 3),
                seed=None if seed is None else int(seed), retention=self.setting("retention"),
                **self._description(card))
            self._mine.append(event["id"])
            return self._history.review(event["id"])

    def undo(self, review: Review | None = None) -> Review | None:
        """Takes back this review, by itself the last one given here that was not undone yet, and gives it.

        None if there is none to take back.
        """
        with self._lock:
            ids = self._mine if review is None else [review.id]
            while ids:
                if found := self._history.review(ids.pop()):
                    self._add("undo", review=found.id)
                    return found
            return None

    def solved(self, puzzle: str) -> None:
        """Notes that a puzzle is solved."""
        with self._lock:
            if puzzle not in self._history.puzzles:
                self._add("puzzle", puzzle=puzzle)

    def visited(self, lesson: int) -> None:
        """Notes that a lesson was opened."""
        with self._lock:
            if lesson not in self._history.lessons:
                self._add("lesson", lesson=lesson)

    def setting(self, name: str, default: Any = None) -> Any:
        """The value of a setting; where it was never set `default`, or else the one of `PREFERENCES`.

        Raises ValueError for a name that no setting has.
        """
        if name not in PREFERENCES:
            raise ValueError(f"there is no setting {name!r}; there are {', '.join(PREFERENCES)}")
        with self._lock:
            value = self._history.settings.get(name, PREFERENCES[name].default if default is None else default)
        return list(value) if isinstance(value, list) else value

    def set(self, name: str, value: Any) -> None:
        """Changes a setting. Raises ValueError for a name or value that cannot be; the message says what can."""
        check_preference(name, value)
        with self._lock:
            self._add("setting", name=name, value=list(value) if isinstance(value, tuple) else value)

    # What others did, and what became of cards

    def refresh(self) -> None:
        """Takes in what other kernels have written, reading what is new only, and writes what is in memory only."""
        with self._lock:
            self._writer.flush()
            reading = self._reader.read()
            if reading.whole:
                self._history = History()
                self._reader.known.update(event["id"] for event in self._writer.unsaved)
                self._history.add(self._writer.unsaved)
            self._history.add(reading.events)

    def adopt(self, cards: Sequence[Card]) -> list[Adoption]:
        """Gives the histories of cards that were edited to the cards that came of them, and says which.

        cards: all that are loaded. A card that has left its deck and a new one of the deck are taken for one if they
        are nearly equal and nothing else comes into question; or a new one of another deck that asks quite the same.
        Other histories of decks that are not loaded stay as they are.
        A card that was only away for a while, as the folder of its note was, has its own history again.
        """
        with self._lock:
            self._give_back(frozenset(card.id for card in cards))
            fresh = {card.id: known(card) for card in self.fresh(cards) if card.faces}
            there = {card.id for card in cards}
            left = {card.id: card for card in self._history.asked if card.id not in there}
            unwanted = self._history.unwanted
            made = {self._add("adoption", old=old, new=new, ratio=round(ratio, 3), before=left[old].front,
                              **fields_of(fresh[new]))["id"]
                    for old, new, ratio in near_matches(left.values(), fresh.values()) if (old, new) not in unwanted}
            return [adoption for adoption in self._history.adoptions if adoption.id in made]

    def _give_back(self, there: frozenset[str]) -> None:
        """Takes back what was given to one card and belongs to another, now that both are there."""
        adoptions = self._history.adoptions
        holders = owners(adoptions)
        for adoption in adoptions:
            if adoption.old in there and there & {adoption.new, holders[adoption.old]} - {adoption.old}:
                self._add("rejection", adoption=adoption.id, back=True)

    def reject(self, adoption: Adoption) -> None:
        """Gives a history back to the card it came from; the two are not taken for one again."""
        with self._lock:
            self._add("rejection", adoption=adoption.id)

    def all_events(self) -> list[Event]:
        """All events of all kernels as they were written, in their order, also those that mean nothing here."""
        with self._lock:
            found = Reader(self.folder).read().events
            known = {event["id"] for event in found}
            return sorted(found + [event for event in self._writer.unsaved if event["id"] not in known],
                          key=place_of)

    def _add(self, kind: str, /, **fields: Any) -> Event:
        moment = self._clock().astimezone(UTC)
        event = make(kind, moment, self.days.day_of(moment), self._history.latest, **fields)
        encode(event)           # raises before anything has changed: what cannot be written would block all later ones
        self._history.take(event)
        self._reader.known.add(event["id"])
        self._writer.append(event)
        return event

    def _description(self, card: Card) -> dict[str, Any]:
        """What an event says of a card that is asked for the first time, or has another text than the last time."""
        seen = known(card)
        return fields_of(seen) if card.faces and seen != self._history.known(card.id) else {}


_OPEN: dict[Path, Progress] = {}


def here() -> Progress:
    """The progress of this kernel, with what other kernels have written until now."""
    home = home_folder()
    if home not in _OPEN:
        _OPEN[home] = Progress(home)
    else:
        _OPEN[home].refresh()
    return _OPEN[home]
