"""A learner's folder of Markdown notes, read as one collection of cards. Nothing in it is written to."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from disttutor.cards.card import Card
from disttutor.cards.notes.identity import fold
from disttutor.cards.notes.parsing import MOST_LETTERS, Diagnostic, NoteCard, as_card, parse

SUFFIXES = (".md", ".markdown")
MOST_FILES = 10_000


class Unreadable(Exception):
    """A file that is no note; says why."""


class Folder(NamedTuple):
    """cards: in the order of files and lines. diagnostics: by file, its path below the folder; only files that have
    some. "." stands for the folder itself."""

    cards: list[Card]
    diagnostics: Mapping[str, tuple[Diagnostic, ...]]


def read_folder(path: Path, *, default_deck: str | None = None) -> Folder:
    """The cards of all notes below a folder, or of one note; hidden files and folders are passed over.

    A link to a folder is followed where that lies outside: inside, its notes are read at their own place. A card that
    stands in two notes is one card. Whatever cannot be read is a diagnostic: this raises nothing.
    """
    collection = _Collection()
    diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
    unread: list[OSError] = []
    for number, file in enumerate(_notes(path, unread)):
        name = file.name if file == path else file.relative_to(path).as_posix()
        if number == MOST_FILES:
            reason = f"the folder has more than {MOST_FILES:,} notes; from {name} on none is read"
            diagnostics["."] = (_about(reason),)
            break
        if found := collection.take(name, file, default_deck):
            diagnostics[name] = found
    for error in unread:
        name = Path(error.filename).relative_to(path).as_posix()
        diagnostics[name] = (_about(f"the folder cannot be read: {error.strerror}", "unreadable"),)
    return Folder([as_card(card) for card in collection.cards], diagnostics)


def read_text(file: Path) -> str:
    """The text of a note or deck. Raises Unreadable: not there, not a file, too large, not UTF-8."""
    try:
        if not file.is_file():      # a pipe would be waited for
            raise Unreadable("there is no such file" if not file.exists() else "this is not a file")
        if file.stat().st_size > 4 * MOST_LETTERS:      # a letter has up to four bytes
            raise Unreadable(f"the file has {file.stat().st_size:,} bytes, far more than a note; it is not read")
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"the file is not UTF-8 text (at byte {error.start:,}): save it as UTF-8") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"the file cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _notes(path: Path, unread: list[OSError]) -> Iterator[Path]:
    """The notes below a folder; why a folder cannot be read is added to `unread`."""
    if not os.path.isdir(path):
        yield path
        return
    read = [Path(os.path.realpath(path))]
    for here, folders, files in os.walk(path, onerror=unread.append, followlinks=True):
        folders[:] = sorted(folder for folder in folders
                            if not folder.startswith(".") and _is_elsewhere(Path(here, folder), read))
        for name in sorted(files):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(here, name)


def _is_elsewhere(folder: Path, read: list[Path]) -> bool:
    """False for a link to what is read anyway, or to what holds that: it could lead round for ever. A folder that a
    link leads to is added to `read`."""
    if not folder.is_symlink():
        return True
    target = Path(os.path.realpath(folder))
    if any(target.is_relative_to(other) or other.is_relative_to(target) for other in read):
        return False
    read.append(target)
    return True


def _about(reason: str, kind: str = "too large", line: int = 1, text: str = "") -> Diagnostic:
    return Diagnostic(line, kind, reason, text)


class _Collection:
    """The cards of several notes, each once, each with an id of its own."""

    def __init__(self) -> None:
        self.cards: list[NoteCard] = []
        self._where: dict[tuple[str, ...], str] = {}    # deck, kind and folded sides: the note that has the card
        self._ids: dict[str, str] = {}                  # id: the note that has it

    def take(self, name: str, file: Path, default_deck: str | None) -> tuple[Diagnostic, ...]:
        """Read one note. name: its path below the folder."""
        try:
            parsed = parse(read_text(file), default_deck=default_deck)
        except Unreadable as error:
            return (_about(str(error), "unreadable"),)
        return (*parsed.diagnostics, *(said for card in parsed.cards for said in self._add(card, name)))

    def _add(self, card: NoteCard, name: str) -> Iterator[Diagnostic]:
        key = (card.deck, card.kind, fold(card.front), fold(card.back))
        if key in self._where:
            yield _about(f"the same card stands in {self._where[key]} already", "duplicate", card.line, card.front[:80])
            return
        if card.id in self._ids:
            yield _about(f"a card in {self._ids[card.id]} has the same question or block id; this one is told apart by "
                         "the name of its note", "same id", card.line, card.front[:80])
            mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            card = replace(card, id=f"{card.id}~{mark}")
        self._where[key] = self._ids[card.id] = name
        self.cards.append(card)
