"""Histories of edited cards: a card of a note is known by its text, so that an edit makes a new one of it.

The new card takes over the history of the old one where both are nearly equal and nothing else comes into question
(`identity.near_matches`). The learner is told, and may say no.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from disttutor.cards.card import Card
from disttutor.cards.events import DamagedEvent, Event


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a card that was asked, to know it again: front is its question in its first language."""

    id: str
    deck: str
    kind: str
    sibling: int
    front: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """A history that went from the card `old` to the card `new`, which are alike by `ratio` (1 is equal).

    id: of the event. before, now: the two questions.
    """

    id: str
    old: str
    new: str
    ratio: float
    before: str
    now: str

    @property
    def sentence(self) -> str:
        """What was done, for the learner."""
        return f'"{self.now}" goes on with the history of "{self.before}" ({100 * self.ratio:.0f} % alike).'


def record_of(card: Card) -> Record | None:
    """What to keep of a card; None for one without a text of its own (numbers are drawn anew each time)."""
    if not card.faces:
        return None
    front = next(iter(card.faces.values())).question
    return Record(card.id, card.deck, card.kind, getattr(card, "sibling", 0), front)


def record_in(event: Event, card: str) -> Record | None:
    """The record of a card that came with an event, if one did. Raises DamagedEvent."""
    if "front" not in event:
        return None
    deck, kind, sibling, front = (event.get(name) for name in ("deck", "kind", "sibling", "front"))
    sibling = 0 if sibling is None else sibling
    if not all(isinstance(text, str) for text in (deck, kind, front)) or type(sibling) is not int:
        raise DamagedEvent("its record of the card is damaged")
    return Record(card, deck, kind, sibling, front)


def adoption_of(event: Event) -> Adoption:
    """Reads an adoption event. Raises DamagedEvent."""
    texts = [event.get(name) for name in ("old", "new", "before", "front")]
    ratio = event.get("ratio")
    if not all(isinstance(text, str) for text in texts) or type(ratio) not in (int, float):
        raise DamagedEvent("it does not say which card took which history over")
    old, new, before, now = texts
    return Adoption(event["id"], old, new, ratio, before, now)


def owners(adoptions: Iterable[Adoption]) -> dict[str, str]:
    """Which card has the history of each id now, after these adoptions in their order; other ids keep their own.

    A card that was edited twice has its history from the first; one whose edit was taken back has it again.
    """
    owner: dict[str, str] = {}
    for adoption in adoptions:
        owner.setdefault(adoption.old, adoption.old)
        owner.setdefault(adoption.new, adoption.new)
        for id, held_by in owner.items():
            if held_by == adoption.old:
                owner[id] = adoption.new
    return owner


def loaded_orphans(records: Iterable[Record], with_history: Iterable[str], cards: Iterable[Card]) -> list[Record]:
    """Cards that have a history but are no longer in their deck, of decks of which something is there."""
    cards = list(cards)
    decks, there, known = {card.deck for card in cards}, {card.id for card in cards}, set(with_history)
    return [record for record in records
            if record.id in known and record.id not in there and record.deck in decks]
