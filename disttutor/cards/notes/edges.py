"""The edges of a card's text: list markers before it, deck tags at either end, a block id behind it."""

import re
from dataclasses import dataclass

from disttutor.cards.notes.deck_tags import closing_tags, decks_of, last_word, opening_tags, without_space

_MARKER = r"\s*+(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))(?:[ \t]++\[[^\]\n]\](?=[ \t]))?+"
_MARKERS = re.compile(rf"(?:{_MARKER})*+\s*+")
_SPACE = re.compile(r"\s*+")
_BLOCK_ID = re.compile(r"\^([A-Za-z0-9-]++)")


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A text without its edges, twice: as written and masked. decks: what its tags name. block_id: "" for none."""

    text: str
    masked: str
    decks: tuple[str, ...] = ()
    block_id: str = ""


def markers(masked: str) -> int:
    """How many letters of list, number, task and quote markers a line begins with, white space included."""
    return _end_of(_MARKERS, masked, 0)


def _end_of(pattern: re.Pattern[str], masked: str, at: int) -> int:
    match = pattern.match(masked, at)
    return match.end() if match else at


def open_edge(text: str, masked: str, *, with_markers: bool) -> Trimmed:
    """Without the white space and the deck tags at its start; with_markers: without list and quote markers too."""
    at, tags = 0, []
    while True:
        before = at
        at = _end_of(_MARKERS if with_markers else _SPACE, masked, at)
        tags_end = opening_tags(masked, at)
        tags.append(masked[at:tags_end])
        at = tags_end
        if at == before:
            return Trimmed(text[at:], masked[at:], decks_of(" ".join(tags)))


def close_edge(text: str, masked: str) -> Trimmed:
    """Without deck tags and block ids at its end, in whatever order they stand. The last block id counts."""
    end, block_id = without_space(masked, len(masked)), ""
    tags: list[str] = []
    while True:
        before = end
        cut = closing_tags(masked, end)
        tags.append(masked[cut:end])
        end = cut
        word = last_word(masked, end)           # a search for its first letter could go through all the text each time
        if match := _BLOCK_ID.fullmatch(masked, word, end):
            block_id, end = block_id or match[1], without_space(masked, word)
        if end == before:
            return Trimmed(text[:end], masked[:end], decks_of(" ".join(reversed(tags))), block_id)
