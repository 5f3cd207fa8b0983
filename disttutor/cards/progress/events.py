"""Events: what a learner did, each a line of JSON that is written once and never changed.

    {"id": "…", "type": "review", "schema": 1, "program": "0.1.0", "time": "2026-01-31T18:30:00.000000+00:00",
     "day": "2026-01-31", "card": "ring-bytes", "rating": 3, "confidence": 75, …}

time: what the clock showed, in UTC. day: the learner's study day at that time, so that it means the same wherever it
is read. order: where the event belongs among all others; it is written only where it is not the time, that is after a
clock was set back. Everything that is known about the learner follows from the events in their order.
"""

import json
import os
import reprlib
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import uuid4

from platformdirs import user_data_dir

from disttutor import __version__
from disttutor.cards.progress.days import ONE_DAY

# Raised when an event comes to mean something else than before; new fields and new types of events do not need it.
SCHEMA = 1
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)

Event = dict[str, Any]


class DamagedEvent(ValueError):
    """A line that is no event. Says why."""


def home_folder() -> Path:
    """The folder that holds a learner's progress: DISTTUTOR_HOME, or the place of the system for a user's data."""
    given = os.environ.get("DISTTUTOR_HOME", "").strip() or user_data_dir("disttutor", appauthor=False)
    return Path(os.path.abspath(os.path.expanduser(given)))


def make(kind: str, moment: datetime, day: date, latest: datetime, /, **fields: Any) -> Event:
    """A new event, in order after `latest`. Fields that are None are left out."""
    order = moment if moment > latest else min(latest + timedelta(microseconds=1), LATEST)
    event = {"id": str(uuid4()), "type": kind, "schema": SCHEMA, "program": __version__, "time": stamp(moment),
             "day": day.isoformat(), "order": None if order == moment else stamp(order)}
    return {name: value for name, value in (event | fields).items() if value is not None}


def stamp(moment: datetime) -> str:
    """A moment as it is written: in UTC, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def moment_of(text: Any) -> datetime:
    """A moment as it was written. Raises DamagedEvent where it is no time, has no zone or lies out of all reason."""
    return _moment_of(_text(text, "time"))


@lru_cache(64)              # an event's time is asked for several times in a row
def _moment_of(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DamagedEvent(f"{reprlib.repr(text)} is no time") from None
    if moment.tzinfo is None or not EARLIEST <= moment <= LATEST:
        raise DamagedEvent(f"{reprlib.repr(text)} is no time with a zone between the years 1970 and 9000")
    return moment.astimezone(UTC)


def day_of(text: Any) -> date:
    """A study day as it was written. Raises DamagedEvent where it is none."""
    return _day_of(_text(text, "day"))


@lru_cache(64)
def _day_of(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise DamagedEvent(f"{reprlib.repr(text)} is no day") from None
    if not EARLIEST.date() - ONE_DAY <= day <= LATEST.date():      # in the west, 1970 began on a day of 1969
        raise DamagedEvent(f"{reprlib.repr(text)} is no day between the years 1970 and 9000")
    return day


def number_of(value: Any) -> float | None:
    """A number as it was written; None for anything that is no number of use: a text, NaN, one of 400 digits."""
    try:
        return float(value) if type(value) in (int, float) and isfinite(value) else None
    except OverflowError:
        return None


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise DamagedEvent(f"{reprlib.repr(value)} is no {what}")
    return value


def order_of(event: Event) -> datetime:
    """Where an event belongs among the others. Raises DamagedEvent."""
    return moment_of(event.get("order") or event.get("time"))


def place_of(event: Event) -> tuple[datetime, str]:
    """What events are sorted by: their order, and their id where two have the same. Raises DamagedEvent."""
    return order_of(event), event["id"]


def encode(event: Event) -> bytes:
    """An event as a line of ASCII."""
    return json.dumps(event, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> Event | None:
    """The event of a line; None for a line of nothing but white space and NULs. Raises DamagedEvent."""
    # A file system may lengthen a file by NULs when the power fails between the growing and the writing.
    text = line.strip(b"\0 \t\r\n")
    if not text:
        return None
    try:
        event = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedEvent(f"it is not JSON ({type(error).__name__})") from None
    check(event)
    return event


def check(event: Any) -> None:
    """Raises DamagedEvent unless this has what every event has, of whatever type and schema."""
    if not isinstance(event, dict):
        raise DamagedEvent("it is not a JSON object")
    if missing := [name for name in ("id", "type") if not isinstance(event.get(name), str) or not event[name]]:
        raise DamagedEvent(f"it has no {' and no '.join(missing)}")
    if type(event.get("schema")) is not int:
        raise DamagedEvent("it has no schema number")
    order_of(event)


def plain(value: Any) -> Any:
    """A learner's answer as JSON can hold it: texts, numbers, lists of them; anything else as its text."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)
