"""What follows from the events: histories of cards and their states, puzzles, lessons, settings.

Events may come in any order and from any number of kernels: the result is the same. Histories are replayed card by
card, and only those to which something has happened. An undone review stays an event, but counts no more.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from disttutor.cards.notes.identity import Known
from disttutor.cards.progress.adoptions import Adoption, adoption_of, known_in, owners
from disttutor.cards.progress.events import EARLIEST, SCHEMA, DamagedEvent, Event, day_of, order_of, place_of
from disttutor.cards.progress.preferences import PREFERENCES, check_preference
from disttutor.cards.progress.reviews import Review, review_of
from disttutor.cards.progress.scheduling import State, replay

_Place = tuple[datetime, str]       # of an event among all


class History:
    """Takes events, and says what follows from them.

    puzzles, lessons: those solved and visited, each with the study day of the first time. latest: the last place in the
    order that is taken.
    """

    def __init__(self) -> None:
        self.puzzles: dict[str, date] = {}
        self.lessons: dict[int, date] = {}
        self.latest = EARLIEST
        self._newer = 0
        self._damaged: list[str] = []
        self._reviews: dict[str, Review] = {}
        self._undone: set[str] = set()
        self._settings: dict[str, tuple[_Place, Any]] = {}
        self._known: dict[str, tuple[_Place, Known]] = {}
        self._adoptions: dict[str, tuple[_Place, Adoption]] = {}
        self._rejected: set[str] = set()
        self._unwanted: set[str] = set()
        self._owners: dict[str, str] | None = {}
        self._cards: dict[str, list[Review]] = {}
        self._states: dict[str, State] = {}
        self._stale: set[str] = set()

    def add(self, events: Iterable[Event]) -> None:
        """Takes events in. Unknown types are passed over; what else is left out is named in `warnings`."""
        for event in events:
            try:
                self.take(event)
            except ValueError as error:
                self._damaged.append(f"the {event['type']} event {event['id']} is damaged, {error}: left out")

    def take(self, event: Event) -> None:
        """Takes one event in. Raises ValueError for a damaged one, and leaves it out."""
        self.latest = max(self.latest, order_of(event))
        if event["schema"] > SCHEMA:
            self._newer += 1
        elif take := _TYPES.get(event["type"]):
            take(self, event)

    @property
    def warnings(self) -> list[str]:
        """Events that were left out, a sentence each."""
        if not self._newer:
            return list(self._damaged)
        return [*self._damaged, f"{self._newer} events were written by a newer disttutor and are kept, but do not "
                                "count here; update disttutor on this computer"]

    @property
    def states(self) -> Mapping[str, State]:
        """The state of every card that was asked, by id."""
        self._settle()
        return MappingProxyType(self._states)

    @property
    def reviews(self) -> list[Review]:
        """All reviews that were not undone, in their order."""
        self._settle()
        return sorted((review for card in self._cards for review in self._kept(card)), key=lambda review: review.place)

    @property
    def settings(self) -> dict[str, Any]:
        """What was set, by name; of each the latest value."""
        return {name: value for name, (_, value) in self._settings.items()}

    @property
    def asked(self) -> list[Known]:
        """The cards that have a history now, each as it was last seen; not those without a text of their own."""
        return [card for id in self.states if (card := self.known(id))]

    @property
    def adoptions(self) -> list[Adoption]:
        """Histories that were taken over and not given back, in their order."""
        unwanted = self.unwanted        # two kernels may have made the same one, of which the learner saw only one
        return [adoption for _, adoption in sorted(self._adoptions.values(), key=lambda entry: entry[0])
                if adoption.id not in self._rejected and (adoption.old, adoption.new) not in unwanted]

    @property
    def unwanted(self) -> set[tuple[str, str]]:
        """Pairs (old, new) of which the learner said that they are not one card."""
        return {(adoption.old, adoption.new) for _, adoption in self._adoptions.values()
                if adoption.id in self._unwanted}

    def review(self, id: str) -> Review | None:
        """The review of this event, if it is known and not undone."""
        return None if id in self._undone else self._reviews.get(id)

    def known(self, card: str) -> Known | None:
        """A card that was asked, as it was last seen."""
        return self._known[card][1] if card in self._known else None

    def _kept(self, card: str) -> list[Review]:
        kept = [review for review in self._cards.get(card, ()) if review.id not in self._undone]
        return sorted(kept, key=lambda review: review.place)

    def _settle(self) -> None:
        if self._owners is None:
            self._owners = owners(self.adoptions)
            self._cards, self._states = {}, {}
            for review in self._reviews.values():
                self._give(review)
        while self._stale:
            card = self._stale.pop()
            if kept := self._kept(card):
                self._states[card] = replay([review.memory for review in kept])
            else:
                self._states.pop(card, None)

    def _give(self, review: Review) -> None:
        """Puts a review into the history of the card that has it now."""
        if self._owners is None:
            return                  # all are given anew when they are next asked for
        owner = self._owners.get(review.asked, review.asked)
        self._cards.setdefault(owner, []).append(review if owner == review.card else replace(review, card=owner))
        self._stale.add(owner)

    def _take_review(self, event: Event) -> None:
        review = review_of(event)
        if review.id not in self._reviews:
            self._reviews[review.id] = review
            self._give(review)
        self._take_known(event, review.asked)

    def _take_known(self, event: Event, id: str) -> None:
        if (card := known_in(event, id)) and (id not in self._known or self._known[id][0] < place_of(event)):
            self._known[id] = place_of(event), card

    def _take_undo(self, event: Event) -> None:
        id = _text(event, "review")
        self._undone.add(id)
        if (review := self._reviews.get(id)) and self._owners is not None:
            self._stale.add(self._owners.get(review.asked, review.asked))

    def _take_setting(self, event: Event) -> None:
        name, place = _text(event, "name"), place_of(event)
        if name not in PREFERENCES:
            return                  # of a newer program; as with unknown types of events
        check_preference(name, event.get("value"))
        if name not in self._settings or self._settings[name][0] < place:
            self._settings[name] = place, event["value"]

    def _take_puzzle(self, event: Event) -> None:
        puzzle, day = _text(event, "puzzle"), day_of(event.get("day"))
        self.puzzles[puzzle] = min(day, self.puzzles.get(puzzle, day))

    def _take_lesson(self, event: Event) -> None:
        lesson, day = event.get("lesson"), day_of(event.get("day"))
        if type(lesson) is not int:
            raise DamagedEvent("it names no lesson")
        self.lessons[lesson] = min(day, self.lessons.get(lesson, day))

    def _take_adoption(self, event: Event) -> None:
        adoption = adoption_of(event)
        self._adoptions[adoption.id] = place_of(event), adoption
        self._owners = None
        self._take_known(event, adoption.new)

    def _take_rejection(self, event: Event) -> None:
        id = _text(event, "adoption")
        self._rejected.add(id)
        self._owners = None
        if event.get("back") is not True:       # else the old card came back, and may go again
            self._unwanted.add(id)


_TYPES: dict[str, Callable[[History, Event], None]] = {
    "review": History._take_review, "undo": History._take_undo, "setting": History._take_setting,
    "puzzle": History._take_puzzle, "lesson": History._take_lesson, "adoption": History._take_adoption,
    "rejection": History._take_rejection,
}


def _text(event: Event, name: str) -> str:
    if not isinstance(value := event.get(name), str) or not value:
        raise DamagedEvent(f"its {name} is {value!r}")
    return value
