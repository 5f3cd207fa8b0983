"""What a learner knows of a concept, told from the cards that name it.

A card is *new* until it is answered. It is *known* once it has passed its steps of minutes, its memory lasts
(`STABLE` days or more until one in ten such cards is forgotten) and it would be recalled today with at least the
chance `SURE`. In between it is *being learnt*, and there it falls back to when it is forgotten or long not asked.

A concept's share is the part of its cards that are known. The concept is new while all its cards are (also when no card
names it), known when its share is at least `ENOUGH`, and being learnt in between.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from disttutor.cards.card import Card
from disttutor.cards.progress.scheduling import State, recall

STABLE, SURE, ENOUGH = 7.0, 0.8, 0.8


@dataclass(frozen=True, slots=True)
class Knowledge:
    """How many cards name a concept, how many of these are known, how many are being learnt, and how many are due."""

    cards: int = 0
    known: int = 0
    learning: int = 0
    due: int = 0

    @property
    def share(self) -> float:
        """The part of the cards that are known, from 0 to 1; 0 where there are none."""
        return self.known / self.cards if self.cards else 0.0

    @property
    def state(self) -> str:
        """"new", "learning" or "known"."""
        if not self.known and not self.learning:
            return "new"
        return "known" if self.share >= ENOUGH else "learning"


def card_state(state: State | None, day: date) -> str:
    """Whether a card is "new", "learning" or "known" on a study day; None is a card that was never seen."""
    if state is None or state.is_new:
        return "new"
    lasts = state.is_learnt and state.stability >= STABLE
    return "known" if lasts and recall(state, day) >= SURE else "learning"


def knowledge(ids: Iterable[str], cards: Iterable[Card], states: Mapping[str, State], day: date,
              due: Collection[str] = ()) -> dict[str, Knowledge]:
    """What is known of each of these concepts on a study day. due: ids of the cards that are due.

    Concepts that a card names and that are not among the ids are left out: they are no part of the map.
    """
    counts = {id: [0, 0, 0, 0] for id in ids}
    for card in cards:
        state = card_state(states.get(card.id), day)
        for concept in set(card.concepts) & counts.keys():
            count = counts[concept]
            count[0] += 1
            count[1] += state == "known"
            count[2] += state == "learning"
            count[3] += card.id in due
    return {id: Knowledge(*count) for id, count in counts.items()}
