"""Reading events: the files of all kernels, also while they are being written, and whatever has happened to them.

Only what is new is read. A line that is torn or damaged, or a file that cannot be read, is named in `warnings` and left
out; it never hides another event.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from disttutor.cards.progress.events import DamagedEvent, Event, decode
from disttutor.cards.progress.writer import SUFFIX

LARGEST = 2**28             # bytes; half a million reviews


@dataclass(frozen=True, slots=True)
class Reading:
    """Events that are new since the last reading; whole: these are all there are, forget those from before."""

    events: list[Event]
    whole: bool


@dataclass(slots=True)
class _Place:
    """How far a file was read: its inode, bytes seen (-1: never read), bytes and number of whole lines; its faults."""

    inode: int
    seen: int = -1
    whole: int = 0
    lines: int = 0
    damaged: int = 0
    first: str = ""
    torn: str = ""
    unreadable: str = ""

    def warnings(self) -> Iterator[str]:
        if self.damaged:
            more = f" (and {self.damaged - 1} more)" if self.damaged > 1 else ""
            yield f"{self.first}{more}: left out"
        if self.torn:
            yield f"the last line was not written to its end ({self.torn}): left out"
        if self.unreadable:
            yield self.unreadable


class Reader:
    """Reads the files of `folder`. known: ids of the events that need not be read again."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.known: set[str] = set()
        self._places: dict[str, _Place] = {}
        self._trouble = ""
        self._begun = False

    @property
    def warnings(self) -> list[str]:
        """What could not be read, a sentence each."""
        trouble = [self._trouble] if self._trouble else []
        return trouble + [f"{name}: {warning}" for name, place in self._places.items() for warning in place.warnings()]

    def read(self) -> Reading:
        """Events that are new, in no order. Never raises: see `warnings`.

        When a file was removed, replaced or cut since the last time, all are read anew.
        """
        try:
            files = self._files()
        except OSError as error:
            self._trouble = f"{self.folder} cannot be read ({error.strerror or error})"
            return Reading([], False)
        self._trouble = ""
        whole = not self._begun or any(_is_another(place, files.get(name)) for name, place in self._places.items())
        if whole:
            self._begun = True
            self._places.clear()
            self.known.clear()
        return Reading([event for name, found in files.items() for event in self._new(name, found)], whole)

    def _files(self) -> dict[str, os.stat_result]:
        try:
            with os.scandir(self.folder) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIX))
        except FileNotFoundError:
            return {}
        found = {}
        for name in names:
            try:
                found[name] = os.stat(self.folder / name)
            except PermissionError:
                raise               # the folder may be listed but not entered, so no file of it can be read
            except OSError:
                continue            # removed since, or a link to nothing
        return found

    def _new(self, name: str, found: os.stat_result) -> Iterator[Event]:
        place = self._places.setdefault(name, _Place(found.st_ino))
        if found.st_size == place.seen:
            return
        try:
            data = self._rest(name, found, place.whole)
        except OSError as error:
            place.unreadable = f"it cannot be read ({error.strerror or error})"
            return
        place.unreadable = ""
        *lines, tail = data.split(b"\n")
        for line in lines:
            place.lines += 1
            try:
                yield from self._event(line)
            except DamagedEvent as error:
                place.damaged += 1
                place.first = place.first or f"line {place.lines} is damaged, {error}"
        place.seen, place.whole, place.torn = place.whole + len(data), place.whole + len(data) - len(tail), ""
        try:
            # A last line may lack nothing but its end.
            yield from self._event(tail)
        except DamagedEvent as error:
            place.torn = str(error)

    def _rest(self, name: str, found: os.stat_result, start: int) -> bytes:
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a file")
        if found.st_size > LARGEST:
            raise OSError(f"it has {found.st_size:,} bytes, more than {LARGEST:,}")
        with open(self.folder / name, "rb") as file:
            file.seek(start)
            return file.read(LARGEST)

    def _event(self, line: bytes) -> Iterator[Event]:
        event = decode(line)
        if event is not None and event["id"] not in self.known:
            self.known.add(event["id"])
            yield event


def _is_another(place: _Place, found: os.stat_result | None) -> bool:
    return found is None or found.st_ino != place.inode or found.st_size < place.seen
