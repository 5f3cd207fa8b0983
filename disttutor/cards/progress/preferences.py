"""What a learner can set, and which values each setting can have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from disttutor.cards.card import ENGLISH, HINGLISH
from disttutor.cards.progress.scheduling import RETENTION


@dataclass(frozen=True, slots=True)
class Preference:
    """One setting: its value at first, what it can be in words, and whether a value can be."""

    default: Any
    words: str
    allows: Callable[[Any], bool]


def _whole(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and low <= value <= high


def _is_zone(value: Any) -> bool:
    if value == "":
        return True
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, TypeError, OSError, AttributeError):
        return False
    return True


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) and item.strip() for item in value)


PREFERENCES = {
    "language": Preference(ENGLISH, f"{ENGLISH} or {HINGLISH}", lambda value: value in (ENGLISH, HINGLISH)),
    "buttons": Preference(2, "2 or 4", lambda value: type(value) is int and value in (2, 4)),
    "confidence": Preference(True, "True or False: whether it is asked how sure one is", lambda v: type(v) is bool),
    "rollover_hour": Preference(4, "a whole hour from 0 to 23", lambda value: _whole(value, 0, 23)),
    "zone": Preference("", 'the name of a time zone, such as "Asia/Kolkata", or "" for the computer\'s own', _is_zone),
    "retention": Preference(RETENTION, "a number from 0.7 to 0.97", lambda value: _number(value, 0.7, 0.97)),
    "new_per_day": Preference(10, "a whole number from 0 to 9999", lambda value: _whole(value, 0, 9999)),
    "notes_folders": Preference([], "a list of folders", _are_texts),
}


def check_preference(name: str, value: Any) -> None:
    """Raises ValueError for a name that no setting has, or a value that this one cannot have."""
    if name not in PREFERENCES:
        raise ValueError(f"there is no setting {name!r}; there are {', '.join(PREFERENCES)}")
    if not PREFERENCES[name].allows(value):
        raise ValueError(f"{name} cannot be {value!r}; it can be {PREFERENCES[name].words}")
