"""Histories of edited cards: a card of a note is known by its text, so that an edit makes a new one of it.

The new card takes over the history of the old one where both are nearly equal and nothing else comes into question
(`identity.near_matches`). The learner is told, and may say no.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from disttutor.cards.notes.identity import Known
from disttutor.cards.progress.events import DamagedEvent, Event, number_of


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
        if self.before == self.now:
            return f'"{self.now}" goes on with its history in another deck.'
        return f'"{self.now}" goes on with the history of "{self.before}" ({100 * self.ratio:.0f} % alike).'


def fields_of(card: Known) -> Event:
    """What an event keeps of a card, so that it is known again when its text has changed."""
    sibling = {"sibling": card.sibling} if card.sibling != 1 else {}
    return {"deck": card.deck, "kind": card.kind, "front": card.front} | sibling


def known_in(event: Event, id: str) -> Known | None:
    """What an event keeps of the card `id`, if anything. Raises DamagedEvent."""
    if "front" not in event:
        return None
    deck, kind, front, sibling = (event.get(name) for name in ("deck", "kind", "front", "sibling"))
    sibling = 1 if sibling is None else sibling
    if not all(isinstance(text, str) for text in (deck, kind, front)) or type(sibling) is not int:
        raise DamagedEvent("what it keeps of its card is not readable")
    return Known(id, deck, kind, sibling, front)


def adoption_of(event: Event) -> Adoption:
    """Reads an adoption event. Raises DamagedEvent."""
    texts = [event.get(name) for name in ("old", "new", "before", "front")]
    ratio = number_of(event.get("ratio"))
    if not all(isinstance(text, str) for text in texts) or ratio is None:
        raise DamagedEvent("it does not say which card took which history over")
    old, new, before, now = texts
    return Adoption(event["id"], old, new, ratio, before, now)


def owners(adoptions: Iterable[Adoption]) -> dict[str, str]:
    """Which card has the history of each id now, after these adoptions in their order; other ids keep their own.

    A card that was edited twice has its history from the first; one whose edit was taken back has it again.
    """
    held: dict[str, set[str]] = {}      # by card: the ids whose histories it has
    for adoption in adoptions:
        for id in (adoption.old, adoption.new):
            held.setdefault(id, {id})
        if adoption.old != adoption.new:
            held[adoption.new] |= held[adoption.old]
            held[adoption.old] = set()
    return {id: card for card, ids in held.items() for id in ids}
