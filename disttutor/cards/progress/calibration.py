"""Calibration: of the answers one was 75 % sure of, how many were right?

Only reviews count whose confidence was asked before the answer, and of which it is known whether they were right. Where
the program did not check the answer, the learner's own rating says it: forgotten, or not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from disttutor.cards.progress.reviews import CONFIDENCES, Review
from disttutor.cards.progress.scheduling import Rating

NORMAL_95 = 1.959964        # 95 % of a normal distribution lie within so many standard deviations


@dataclass(frozen=True, slots=True)
class Level:
    """Answers of one confidence (percent): how many, how many of them right, and between which shares from 0 to 1 the
    true share lies with 95 % (Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference").
    """

    confidence: int
    count: int
    right: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share that was right, from 0 to 1."""
        return self.right / self.count


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well confidence and answers agree.

    levels: those that were used, the least sure one first. count: answers of all levels. brier: the mean square of what
    the confidence was off (Brier 1950), 0 for one who is sure and right each time, 0.25 for one who always says 50 %;
    None without an answer.
    """

    levels: tuple[Level, ...]
    count: int
    brier: float | None


def calibration(reviews: Iterable[Review]) -> Calibration:
    """How well the learner knows what they know."""
    answers = [(review.confidence, was_right(review)) for review in reviews if review.confidence is not None]
    levels = [_level(confidence, [right for said, right in answers if said == confidence])
              for confidence in CONFIDENCES if any(said == confidence for said, _ in answers)]
    off = [(said / 100 - right) ** 2 for said, right in answers]
    return Calibration(tuple(levels), len(answers), sum(off) / len(off) if off else None)


def was_right(review: Review) -> bool:
    """Whether the answer was right: as checked, or else as the learner rated it."""
    return review.rating != Rating.FORGOT if review.right is None else review.right


def wilson(right: int, count: int) -> tuple[float, float]:
    """The interval that holds the true share with 95 %, given `right` of `count` (1 or more)."""
    share, z2 = right / count, NORMAL_95**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = NORMAL_95 * sqrt(share * (1 - share) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def _level(confidence: int, right: list[bool]) -> Level:
    low, high = wilson(sum(right), len(right))
    return Level(confidence, len(right), sum(right), low, high)
