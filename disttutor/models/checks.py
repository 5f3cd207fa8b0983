"""Checks that all models make of their settings before they build anything."""

from collections.abc import Sequence


def sizes(**settings: int | Sequence[int]) -> None:
    """Raise ValueError unless every setting (or every entry of it) is a whole number of at least 1."""
    for name, given in settings.items():
        for size in given if isinstance(given, Sequence) else (given,):
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"{name}={given!r} cannot be: a size is a whole number of at least 1")


def share_of_dropped(dropout: float) -> None:
    """Raise ValueError unless 0 <= dropout < 1."""
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout={dropout} cannot be: a share of units to drop is 0.0 or more and below 1.0")


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]
