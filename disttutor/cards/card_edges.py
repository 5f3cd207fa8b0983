"""The edges of a card's text: list markers before it, deck tags at either end, a block id behind it."""

import re
from dataclasses import dataclass

from disttutor.cards.deck_tags import closing_tags, decks_of, opening_tags

_MARKER = r"\s*+(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))(?:[ \t]++\[[^\]\n]\](?=[ \t]))?+"
_MARKERS = re.compile(rf"(?:{_MARKER})*+\s*+")
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
    match = _MARKERS.match(masked)
    return match.end() if match else 0


def open_edge(text: str, masked: str, *, with_markers: bool) -> Trimmed:
    """Without the white space and the deck tags at its start; with_markers: without list and quote markers too."""
    at, decks = 0, ""
    while True:
        before = at
        at += markers(masked[at:]) if with_markers else len(masked) - at - len(masked[at:].lstrip())
        tags = opening_tags(masked[at:])
        decks += masked[at:at + tags]
        at += tags
        if at == before:
            return Trimmed(text[at:], masked[at:], decks_of(decks) if decks else ())


def close_edge(text: str, masked: str) -> Trimmed:
    """Without deck tags and one block id at its end, in whatever order they stand."""
    end, block_id, decks = len(masked.rstrip()), "", ""
    while True:
        before = end
        if "#" in masked and (cut := closing_tags(masked[:end])) < end:
            decks = f"{masked[cut:end]} {decks}"
            end = cut
        caret = masked.rfind("^", 0, end) if not block_id else -1
        if caret >= 0 and (caret == 0 or masked[caret - 1].isspace()):
            if match := _BLOCK_ID.fullmatch(masked, caret, end):
                block_id, end = match[1], len(masked[:caret].rstrip())
        if end == before:
            return Trimmed(text[:end], masked[:end], decks_of(decks), block_id)
