"""What a learner can set, and which values each setting can have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from disttutor.cards.card import ENGLISH, HINGLISH
from disttutor.cards.progress.scheduling import RETENTION


@dataclass(frozen=True, slots=True)
class Preference:
    """One setting: its value at first, what it can be in words, whether a value can be, and what it is for."""

    default: Any
    words: str
    allows: Callable[[Any], bool]
    about: str


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
    "language": Preference(ENGLISH, f"{ENGLISH} or {HINGLISH}", lambda value: value in (ENGLISH, HINGLISH),
                           "in which a card is shown first; hi-Latn is Hinglish"),
    "buttons": Preference(2, "2 or 4", lambda value: type(value) is int and value in (2, 4),
                          "forgot and remembered, or hard and easy too"),
    "confidence": Preference(True, "True or False", lambda value: type(value) is bool,
                             "whether you are asked how sure you are, before the answer"),
    "rollover_hour": Preference(4, "a whole hour from 0 to 23", lambda value: _whole(value, 0, 23),
                                "when a new study day begins"),
    "zone": Preference("", 'the name of a time zone, such as "Asia/Kolkata", or "" for the computer\'s own', _is_zone,
                       "whose clock the days are counted by"),
    "retention": Preference(RETENTION, "a number from 0.7 to 0.97", lambda value: _number(value, 0.7, 0.97),
                            "the share of due cards that you want to remember; more means more reviews"),
    "new_per_day": Preference(10, "a whole number from 0 to 9999", lambda value: _whole(value, 0, 9999),
                              "how many cards that were never asked come into your reviews"),
    "notes_folders": Preference([], "a list of folders", _are_texts, "whose notes are asked too"),
}


def check_preference(name: str, value: Any) -> None:
    """Raises ValueError for a name that no setting has, or a value that this one cannot have."""
    if name not in PREFERENCES:
        raise ValueError(f"there is no setting {name!r}; there are {', '.join(PREFERENCES)}")
    if not PREFERENCES[name].allows(value):
        raise ValueError(f"{name} cannot be {value!r}; it can be {PREFERENCES[name].words}")
