"""The concepts of the course and how they hang together: the note's own, and its connections to neighbouring topics.

They are written in concepts.toml. `CONCEPTS` are the nodes of the concept map and `EDGES` its lines; cards name the
concepts they ask about by their ids.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from disttutor.cards.card import ENGLISH, HINGLISH

LESSONS = range(17)
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_OF_A_CONCEPT = {"id", "en", "hi", "lesson", "section", "group", "place"}
_OF_AN_EDGE = {"between", "label", "en", "hi"}


class ConceptError(ValueError):
    """Concepts that cannot be read. Says which entry is meant and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Concept:
    """One idea of the course.

    id: never changes, cards name it. en: its name. hi: the idea in a few words of Hinglish. meaning: one sentence, by
    BCP 47 tag. lesson, section: where it is explained (number, and a heading of that notebook). group: a key of
    `GROUPS`. place: column and row in the drawing, from 0.
    """

    id: str
    en: str
    hi: str
    meaning: Mapping[str, str]
    lesson: int
    section: str
    group: str
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """How one concept bears on another. start, end: their ids. label: a word or two for the line from start to end.
    meaning: the whole sentence, by BCP 47 tag."""

    start: str
    end: str
    label: str
    meaning: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Concepts:
    """All concepts, the edges between them, and the names of the groups by their keys."""

    concepts: tuple[Concept, ...]
    edges: tuple[Edge, ...]
    groups: Mapping[str, str]


def read_concepts(text: str, name: str = "concepts") -> Concepts:
    """Concepts and edges written as TOML; `name` is used in errors. Raises ConceptError."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConceptError(f"{name} is not TOML: {error}") from None
    _known(table, {"groups", "concept", "edge"}, name)
    groups = table.get("groups", {})
    concepts = tuple(_concept(entry, groups, f"{name}, concept {number}")
                     for number, entry in enumerate(table.get("concept", ()), 1))
    _unique([concept.id for concept in concepts], f"{name}: two concepts have the id")
    _unique([concept.place for concept in concepts], f"{name}: two concepts have the place")
    ids = {concept.id for concept in concepts}
    edges = tuple(_edge(entry, ids, f"{name}, edge {number}") for number, entry in enumerate(table.get("edge", ()), 1))
    _unique([tuple(sorted((edge.start, edge.end))) for edge in edges], f"{name}: two edges join")
    if lonely := sorted(ids - {end for edge in edges for end in (edge.start, edge.end)}):
        raise ConceptError(f"{name}: no edge joins {', '.join(lonely)} to the others")
    return Concepts(concepts, edges, groups)


def _concept(entry: dict[str, Any], groups: Mapping[str, str], where: str) -> Concept:
    _known(entry, _OF_A_CONCEPT, where)
    id = entry.get("id", "")
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise ConceptError(f"{where}: its id {id!r} must be small letters and digits joined by hyphens: all-reduce")
    where = f"{where} ({id})"
    (name, meaning), (hinglish, matlab) = (_two_texts(entry, key, where) for key in ("en", "hi"))
    if (lesson := entry.get("lesson")) not in LESSONS:
        raise ConceptError(f"{where}: lesson {lesson!r} is none of {LESSONS[0]} to {LESSONS[-1]}")
    if (group := entry.get("group")) not in groups:
        raise ConceptError(f"{where}: unknown group {group!r}; there are {', '.join(groups)}")
    place = entry.get("place")
    if not (isinstance(place, list) and len(place) == 2 and all(isinstance(n, int) and n >= 0 for n in place)):
        raise ConceptError(f"{where}: place must be [column, row], two whole numbers from 0; it is {place!r}")
    section = _text(entry, "section", where)
    return Concept(id, name, hinglish, {ENGLISH: meaning, HINGLISH: matlab}, lesson, section, group, tuple(place))


def _edge(entry: dict[str, Any], ids: set[str], where: str) -> Edge:
    _known(entry, _OF_AN_EDGE, where)
    between = entry.get("between")
    if not (isinstance(between, list) and len(between) == 2 and between[0] != between[1]):
        raise ConceptError(f"{where}: between must be two different concepts, [from, to]; it is {between!r}")
    if unknown := [end for end in between if end not in ids]:
        raise ConceptError(f"{where}: there is no concept {unknown[0]!r}")
    label, english, hinglish = (_text(entry, key, f"{where} ({' - '.join(between)})") for key in ("label", "en", "hi"))
    return Edge(*between, label, {ENGLISH: english, HINGLISH: hinglish})


def _two_texts(entry: dict[str, Any], key: str, where: str) -> list[str]:
    texts = entry.get(key)
    if not (isinstance(texts, list) and len(texts) == 2 and all(isinstance(text, str) and text for text in texts)):
        raise ConceptError(f"{where}: {key} must be two texts, [name, sentence]")
    return texts


def _text(entry: dict[str, Any], key: str, where: str) -> str:
    if not isinstance(text := entry.get(key), str) or not text.strip():
        raise ConceptError(f"{where}: it has no text in {key}")
    return text


def _known(table: dict[str, Any], names: set[str], where: str) -> None:
    if strange := sorted(set(table) - names):
        raise ConceptError(f"{where}: unknown {', '.join(strange)}; what can stand here: {', '.join(sorted(names))}")


def _unique(values: list[Any], what: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise ConceptError(f"{what} {value!r}")


_OURS = read_concepts((resources.files("disttutor.cards") / "concepts.toml").read_text(encoding="utf-8"),
                      "concepts.toml")
CONCEPTS, EDGES, GROUPS = _OURS.concepts, _OURS.edges, _OURS.groups
BY_ID: Mapping[str, Concept] = {concept.id: concept for concept in CONCEPTS}


def concept(id: str) -> Concept:
    """The concept with this id. Raises ConceptError, naming all ids, if there is none."""
    if id not in BY_ID:
        raise ConceptError(f"there is no concept {id!r}; there are {', '.join(BY_ID)}")
    return BY_ID[id]


def neighbours(id: str) -> Iterator[Edge]:
    """The edges that begin or end at this concept."""
    return (edge for edge in EDGES if id in (edge.start, edge.end))
