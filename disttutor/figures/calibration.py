"""How sure one was against how often one was right: on the diagonal, one knows what one knows."""

from collections.abc import Sequence
from typing import Protocol

from disttutor.figures.picture import Picture, axes
from disttutor.figures.style import MUTED, SERIES

BELOW, ABOVE = "surer than right", "less sure than right"


class Level(Protocol):
    """Answers of one confidence (percent): how many, how many of them right, and between which shares (0 to 1) the true
    share lies with 95 %."""

    confidence: int
    count: int
    right: int
    low: float
    high: float


def calibration_curve(levels: Sequence[Level], *,
                      title: str = "How sure you were, and how often you were right") -> Picture:
    """One point for each confidence that was used, its number of answers below it, and a bar of 95 % certainty: with
    few answers it is long, and then the point says little.

    Raises ValueError for no levels, and for one without answers or with more right answers than answers.
    """
    _check(levels)
    levels = sorted(levels, key=lambda level: level.confidence)
    ax = axes(title, "how sure you were (%), and how many answers were right", "how often you were right (%)",
              width=6.4, height=4.6)
    ax.plot([0, 100], [0, 100], color=MUTED, linestyle="--", linewidth=1.2)
    for words, x, y in ((BELOW, 62.5, 3), (ABOVE, 37.5, 97)):     # between two points, not on one
        ax.text(x, y, words, color=MUTED, fontsize=9, ha="center", va="center")
    sure = [level.confidence for level in levels]
    right = [100 * level.right / level.count for level in levels]
    # Where all answers were right, rounding may leave the interval's end a hair beside the share.
    bars = [[max(0.0, r - 100 * level.low) for r, level in zip(right, levels, strict=True)],
            [max(0.0, 100 * level.high - r) for r, level in zip(right, levels, strict=True)]]
    ax.errorbar(sure, right, yerr=bars, color=SERIES[0], marker="o", markersize=7, linewidth=1.8, elinewidth=1.4,
                capsize=4)
    ax.set_xlim(0, 100)
    ax.set_ylim(-3, 103)
    ax.set_xticks(sure, [f"{level.confidence}\n{level.right} of {level.count}" for level in levels])
    ax.set_yticks(range(0, 101, 25))
    return Picture(ax.figure, f"{title}: {'; '.join(map(_told, levels))}.", f"{title}.")


def _check(levels: Sequence[Level]) -> None:
    if not levels:
        raise ValueError("there are no answers with a confidence yet; say how sure you are before you see an answer")
    for level in levels:
        if level.count < 1 or not 0 <= level.right <= level.count:
            raise ValueError(f"{level.right} of {level.count} answers cannot be right (at {level.confidence} % sure)")


def _told(level: Level) -> str:
    return (f"{level.confidence} % sure: {level.right} of {level.count} right, "
            f"between {100 * level.low:.0f} and {100 * level.high:.0f} % with 95 % certainty")
