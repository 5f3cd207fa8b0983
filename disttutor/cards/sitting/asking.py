"""How cards are put: in which order one after the other, and how a single one is drawn and shuffled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from disttutor.cards.card import Card, Drawn, Face
from disttutor.cards.progress.scheduling import NEW, State


@dataclass(frozen=True, slots=True)
class Asked:
    """A card as it is put now.

    faces: of a number card those with its numbers. seed: gives the same numbers and the same shuffling again. places:
    of a choice its options in the order in which they are shown, of an order card its steps, as places in the face.
    """

    card: Card
    faces: Mapping[str, Face]
    seed: int
    drawn: Drawn | None = None
    places: tuple[int, ...] = ()

    def language(self, wanted: str) -> str:
        """The language in which it can be shown: the one that is wanted if the card has it, else the card's first."""
        return wanted if wanted in self.faces else next(iter(self.faces))


def put(card: Card, seed: int) -> Asked:
    """Draw the numbers of a number card, shuffle the options or steps of others; the seed decides how."""
    random = Random(seed)
    drawn = card.draw(random) if card.draw else None
    faces = drawn.faces if drawn else card.faces
    face = next(iter(faces.values()))
    places = list(range(len(face.steps or face.options)))
    random.shuffle(places)
    if face.steps and places == sorted(places):         # steps that lie in order already ask for nothing
        places.append(places.pop(0))
    return Asked(card, faces, seed, drawn, tuple(places))


def line_up(due: Sequence[Card], fresh: Sequence[Card], states: Mapping[str, State], random: Random) -> list[Card]:
    """Due cards before new ones. What fell due on the same day comes in no fixed order, new cards as in their decks;
    but cards of one family, which are easily confused, follow each other, mixed."""
    mixed: list[Card] = []
    for _, together in groupby(due, key=lambda card: states.get(card.id, NEW).due_day):
        same_day = list(together)
        random.shuffle(same_day)
        mixed += same_day
    return [*_families(mixed, random), *_families(fresh, random)]


def mingled(cards: Sequence[Card]) -> list[Card]:
    """The cards in their order, but the number cards, which stand at the end of the course, spread among the others."""
    groups = [card for card in cards if not card.draw], [card for card in cards if card.draw]
    places = [((place + 0.5) / len(group), card) for group in groups for place, card in enumerate(group)]
    return [card for _, card in sorted(places, key=lambda place: place[0])]


def _families(cards: Sequence[Card], random: Random) -> Iterator[Card]:
    families: dict[str, list[Card]] = {}
    for card in cards:
        families.setdefault(card.family or f"only {card.id}", []).append(card)
    for members in families.values():
        random.shuffle(members)
        yield from members
