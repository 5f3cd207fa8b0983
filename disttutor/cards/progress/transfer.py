"""Progress taken along: all of it in one JSON file, that file taken in elsewhere, and a fresh start.

Nothing here deletes. Taking a file in twice changes nothing, and neither does one that is damaged; events that mean
nothing to this version of the program travel along.
"""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from disttutor import __version__
from disttutor.cards.progress import Progress
from disttutor.cards.progress.events import Event, check, encode
from disttutor.cards.progress.writer import SUFFIX, private_folder, sync_folder
from disttutor.files import write_whole

FORMAT, VERSION = "disttutor progress", 1


class TransferError(ValueError):
    """A file that is no exported progress, or a damaged one. Says what is wrong with it."""


def export(progress: Progress, path: str | Path) -> int:
    """Writes all events to a file that only its owner can read, and gives how many.

    `progress.warnings` names what could not be read of them. Raises OSError where the file cannot be written; one that
    was there before is then as it was.
    """
    events = progress.all_events()
    write_whole(Path(path), content(events), private=True)
    return len(events)


def content(events: Sequence[Event]) -> bytes:
    """What an exported file of these events holds."""
    table = {"format": FORMAT, "version": VERSION, "program": __version__,
             "exported": datetime.now(UTC).isoformat(timespec="seconds"), "events": list(events)}
    return json.dumps(table, indent=1).encode("ascii")


def take_in(progress: Progress, path: str | Path) -> int:
    """Adds the events of an exported file that are not here yet; gives how many there were.

    Which folders of notes are read is left as it is here, if any are: another computer has them at other places.
    Raises TransferError for a file that is damaged or no export, OSError where one cannot be read or written; then
    nothing has changed.
    """
    events = read_export(path)
    known = {event["id"] for event in progress.all_events()}
    own = bool(progress.setting("notes_folders"))
    new = list({event["id"]: event for event in events
                if event["id"] not in known and not (own and _names_folders(event))}.values())
    if new:
        private_folder(progress.folder)
        write_whole(progress.folder / f"{uuid4().hex}{SUFFIX}", b"".join(map(encode, new)), private=True)
        sync_folder(progress.folder)
    progress.refresh()
    return len(new)


def read_export(path: str | Path) -> list[Event]:
    """The events of an exported file. Raises TransferError, OSError."""
    try:
        content = json.loads(Path(path).read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise TransferError(f"{path} is damaged, it is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise TransferError(f"{path} is no progress that disttutor has exported")
    version: Any = content.get("version")
    if type(version) is not int or version > VERSION:
        raise TransferError(f"{path} has version {version!r}; this disttutor reads up to {VERSION}, a newer one more")
    if not isinstance(events := content.get("events"), list):
        raise TransferError(f"{path} is damaged: it has no list of events")
    for number, event in enumerate(events, 1):
        try:
            check(event)
            encode(event)
        except (ValueError, RecursionError) as error:
            raise TransferError(f"{path} is damaged: event {number}, {error}") from None
    return events


def _names_folders(event: Event) -> bool:
    return event["type"] == "setting" and event.get("name") == "notes_folders"


def reset(progress: Progress) -> Path | None:
    """Begins anew: moves the events aside into a folder beside, and gives that; None where there was nothing."""
    aside = progress.folder.with_name(f"{progress.folder.name}-until-{datetime.now(UTC):%Y-%m-%dT%H-%M-%S-%f}")
    progress.refresh()                  # what was in memory only is moved aside too
    try:
        os.rename(progress.folder, aside)
    except FileNotFoundError:
        return None
    progress.refresh()
    return aside
