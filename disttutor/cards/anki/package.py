"""Cards for Anki: a package that its Import opens (.apkg), or a text file with the same fields (TSV).

    export(our_cards(), Path("disttutor.apkg"))

All ids are fixed: those of the note type stand here, a deck's comes from its name, a note's from its card. So whoever
imports a newer package gets new texts for the cards they have, keeps what Anki knows of their learning, and gets no
card twice. Both languages are on one note and so have one schedule. Anki cannot draw numbers: of a number card it gets
some worked examples.
"""

import csv
import hashlib
import io
import itertools
import sqlite3
import time
import unicodedata
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import genanki

from disttutor.cards.anki.sides import Sides, examples, sides
from disttutor.cards.anki.style import CSS, TEMPLATE
from disttutor.cards.anki.text import fit, line
from disttutor.cards.card import HINGLISH, Card
from disttutor.cards.choosing import title
from disttutor.cards.decks import check_unique
from disttutor.cards.origin import origin
from disttutor.files import write_whole

SUFFIX = ".apkg"
NOTE_TYPE = "disttutor"
_NOTE_TYPE_ID = 1_764_892_713_405               # once chosen at random; another one would be another note type
_FIELDS = ("Front", "Back", "Hinglish front", "Hinglish back", "Language", "Lesson", "Source", "Id")
_CHANGED = 1_764_892_713                        # when its fields, template or style were changed last, in seconds
_ROOT = "disttutor"
_LEVELS = 9                                     # of decks below the root; Anki takes no package with more than eleven
_LARGEST_SAFE = 2**52                           # Anki's pages are JavaScript, which counts exactly up to twice this
_OLDEST = (1980, 1, 1, 0, 0, 0)                 # the earliest time a zip can state: the same bytes every time


class _NoteType(genanki.Model):
    """The note type, not dated as the package is: what people have changed of its style in Anki is newer, and stays."""

    def to_json(self, timestamp: float, deck_id: int) -> dict[str, Any]:
        return super().to_json(_CHANGED, deck_id)


class _Note(NamedTuple):
    guid: str
    deck: str
    tags: list[str]
    fields: list[str]


def export(cards: Iterable[Card], path: Path, *, timestamp: float | None = None) -> int:
    """Write a package for Anki to `path`, whole or not at all, and say how many notes it has.

    timestamp: seconds since 1970, now by default. Anki takes new texts only from a package that is a second or more
    newer than the one before. The same cards at the same timestamp give the same bytes. Raises ValueError for another
    suffix than .apkg or no cards, DeckError where two cards share an id, OSError where `path` cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise ValueError(f"{path.name!r} does not end in {SUFFIX}, by which Anki knows its packages: "
                         f"call it {path.with_suffix(SUFFIX).name!r}")
    notes = _notes(cards)
    write_whole(path, _package(notes, time.time() if timestamp is None else timestamp))
    return len(notes)


def tsv(cards: Iterable[Card]) -> str:
    """The same notes as a text that Anki's Import reads, one a line, with the fields parted by tabs.

    It names the note type but cannot bring it along: a package must have been imported once. Without it, Anki fills
    Front and Back of its own note type and leaves Hinglish out. Raises ValueError and DeckError as `export` does.
    """
    text = io.StringIO()
    columns = [*_FIELDS, "guid", "deck", "tags"]
    text.write(f"#separator:tab\n#html:true\n#notetype:{NOTE_TYPE}\n#columns:{chr(9).join(columns)}\n")
    text.writelines(f"#{name} column:{columns.index(name) + 1}\n" for name in ("guid", "deck", "tags"))
    # All is quoted: a row that begins with # would be a remark, and a guid may begin with it.
    rows = csv.writer(text, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
    rows.writerows([*note.fields, note.guid, note.deck, " ".join(note.tags)] for note in _notes(cards))
    return text.getvalue()


def _notes(cards: Iterable[Card]) -> list[_Note]:
    cards = list(cards)
    if not cards:
        raise ValueError("there is no card to export")
    check_unique(cards, "the export")
    decks = _Decks()
    notes = []
    for card in cards:
        for number, both in enumerate(examples(card), 1) if card.kind == "number" else [(0, sides(card))]:
            guid = genanki.guid_for("disttutor", card.id, *([f"example {number}"] if number else []))
            tags = _tags(card, [decks.name(deck) for deck in card.also])
            notes.append(_Note(guid, decks.name(card.deck), tags, _fields(card, both)))
    return notes


def _fields(card: Card, both: Sequence[Sides]) -> list[str]:
    first = both[0]
    hinglish = next((side for side in both[1:] if side.language == HINGLISH), Sides(HINGLISH, "", ""))
    place, source = map(line, origin(card))
    return [first.front, first.back, hinglish.front, hinglish.back, first.language, place, source, line(card.id)]


def _tags(card: Card, more_decks: Sequence[str]) -> list[str]:
    """A note of Anki lies in one deck; the card's further ones are tags."""
    tags = [f"kind::{card.kind}", *(f"concept::{concept}" for concept in card.concepts)]
    tags += [] if card.lesson is None else [f"lesson::{card.lesson:02}"]
    tags += [f"family::{card.family}"] if card.family else []
    tags += [f"deck::{deck.removeprefix(_ROOT).strip(':')}" for deck in more_decks]
    # White space parts one tag from the next.
    return [f"{_ROOT}::{'-'.join(fit(tag).split())}" for tag in tags]


class _Decks:
    """Names of decks in Anki. It takes `AI` and `ai` for the same name, so the spelling seen first holds for both."""

    def __init__(self) -> None:
        self._spelt: dict[str, str] = {}

    def name(self, deck: str) -> str:
        """`disttutor/03-data-parallelism` is `disttutor::03 Data parallelism`, `flashcards/ai` is `disttutor::ai`."""
        parts = [part.strip(" :") for part in fit(deck).replace('"', "").split("/")]
        parts = [part for part in parts if part]
        if parts[:1] == ["flashcards"] and len(parts) > 1 or parts[:1] == [_ROOT]:
            parts = parts[1:]
        if len(parts) > _LEVELS:
            parts = [*parts[:_LEVELS - 1], " - ".join(parts[_LEVELS - 1:])]
        full = _ROOT
        for part in parts:
            full = f"{full}::{title(part)}"
            full = self._spelt.setdefault(_folded(full), full)
        return full


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _deck_id(name: str) -> int:
    digest = hashlib.sha256(_folded(name).encode()).digest()
    return 1 + int.from_bytes(digest[:8]) % _LARGEST_SAFE


def _package(notes: Sequence[_Note], timestamp: float) -> bytes:
    """The package as bytes: a zip with a database in it."""
    note_type = _NoteType(_NOTE_TYPE_ID, NOTE_TYPE, [{"name": name} for name in _FIELDS], [dict(TEMPLATE)], CSS)
    decks: dict[str, genanki.Deck] = {}
    for place, note in enumerate(notes, 1):
        deck = decks.setdefault(note.deck, genanki.Deck(_deck_id(note.deck), note.deck))
        deck.add_note(genanki.Note(note_type, note.fields, guid=note.guid, tags=note.tags, due=place))
    # Its own way to a file leaves a copy of the database behind among the temporary files.
    database = sqlite3.connect(":memory:")
    try:
        genanki.Package(list(decks.values())).write_to_db(
            database.cursor(), timestamp, itertools.count(int(timestamp * 1000)))
        database.commit()
        content = database.serialize()
    finally:
        database.close()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, part in {"collection.anki2": content, "media": b"{}"}.items():
            file.writestr(zipfile.ZipInfo(name, _OLDEST), part, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
