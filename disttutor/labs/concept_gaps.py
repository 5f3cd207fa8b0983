"""The concept map with gaps: which names and lines are to be found, and what is right. No widget in it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from disttutor.cards import ENGLISH, HINGLISH
from disttutor.cards.concepts import BY_ID, CONCEPTS, EDGES, Edge, neighbours


@dataclass(frozen=True, slots=True)
class Gap:
    """A place to fill in.

    mark: what stands there in the drawing, such as "gap 3" or "(B)". ask: the question. answer: what belongs there;
    words: what one can choose from. reasons: sentences that tell why, by BCP 47 tag. hint: helps without saying it.
    """

    mark: str
    ask: str
    answer: str
    words: tuple[str, ...]
    reasons: Mapping[str, Sequence[str]]
    hint: str


@dataclass(frozen=True, slots=True)
class Gaps:
    """A map with gaps. names: concept id to its number; lines: (from, to) to its letter; gaps: all of them, in the
    order of their marks."""

    number: int
    names: Mapping[str, int]
    lines: Mapping[tuple[str, str], str]
    gaps: tuple[Gap, ...]

    @property
    def puzzle(self) -> str:
        """Under which id it counts as solved."""
        return f"concept-map-{self.number}"

    def check(self, given: Mapping[str, str]) -> dict[str, bool | None]:
        """By mark whether the word given there is right; None where none is given."""
        return {gap.mark: given[gap.mark] == gap.answer if given.get(gap.mark) else None for gap in self.gaps}


def gaps(number: int = 1, *, names: int = 8, lines: int = 4) -> Gaps:
    """Map `number` with so many names and so many lines to be found; the same number gives the same gaps.

    No two hidden names are neighbours and no hidden line ends at one, so each gap can be told from what is left.
    Raises ValueError for fewer than one gap, and for more than the map has room for.
    """
    if names < 0 or lines < 0 or names + lines < 1:
        raise ValueError(f"{names} names and {lines} lines make no map with gaps; give at least one name or line")
    rng = random.Random(number)
    hidden = _names(names, rng)
    free = [edge for edge in EDGES if edge.start not in hidden and edge.end not in hidden]
    if lines > len(free):
        raise ValueError(f"with {names} names hidden there are {len(free)} lines to ask about, not {lines}")
    asked = sorted(rng.sample(free, lines), key=EDGES.index)
    numbers = {id: k for k, id in enumerate(hidden, 1)}
    letters = {(edge.start, edge.end): _letter(k) for k, edge in enumerate(asked)}
    choices = tuple(sorted((BY_ID[id].en for id in hidden), key=str.casefold))
    labels = tuple(sorted({edge.label for edge in asked}, key=str.casefold))
    return Gaps(number, numbers, letters, (
        *(_name_gap(id, k, choices) for id, k in numbers.items()),
        *(_line_gap(edge, letters[edge.start, edge.end], labels) for edge in asked)))


def _names(count: int, rng: random.Random) -> list[str]:
    """So many concepts of which no two are neighbours, in the order of the map: row by row."""
    order = [concept.id for concept in CONCEPTS]
    rng.shuffle(order)
    hidden: list[str] = []
    for id in order:
        near = {end for edge in neighbours(id) for end in (edge.start, edge.end)}
        if len(hidden) < count and not near & set(hidden):
            hidden.append(id)
    if len(hidden) < count:
        raise ValueError(f"no more than {len(hidden)} names can be hidden in this map, as their neighbours must be "
                         f"seen; {count} were asked for")
    return sorted(hidden, key=lambda id: BY_ID[id].place[::-1])


def _letter(k: int) -> str:
    return chr(ord("A") + k) if k < 26 else f"{_letter(k // 26 - 1)}{_letter(k % 26)}"


def _name_gap(id: str, number: int, words: tuple[str, ...]) -> Gap:
    edges = list(neighbours(id))
    mark = f"gap {number}"
    seen = [f"{_name(edge.start, id, mark)} → {edge.label} → {_name(edge.end, id, mark)}" for edge in edges]
    return Gap(mark, f"Which concept is it? {'; '.join(seen)}.", BY_ID[id].en, words,
               {tag: [edge.meaning[tag] for edge in edges] for tag in (ENGLISH, HINGLISH)}, BY_ID[id].meaning[ENGLISH])


def _name(id: str, hidden: str, mark: str) -> str:
    return mark if id == hidden else BY_ID[id].en


def _line_gap(edge: Edge, letter: str, words: tuple[str, ...]) -> Gap:
    start, end = BY_ID[edge.start], BY_ID[edge.end]
    return Gap(f"({letter})", f"What joins these two? {start.en} → ({letter}) → {end.en}.", edge.label, words,
               {tag: [edge.meaning[tag]] for tag in (ENGLISH, HINGLISH)},
               f"{start.en}: {start.meaning[ENGLISH]} {end.en}: {end.meaning[ENGLISH]}")
