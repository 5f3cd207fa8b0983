"""Calibration, with numbers from the literature and by hand."""

from datetime import UTC, date, datetime

import pytest

from disttutor.cards.progress.calibration import calibration, wilson
from disttutor.cards.progress.reviews import Review
from disttutor.cards.progress.scheduling import Rating

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def review(confidence: int | None, right: bool | None, rating: Rating = Rating.REMEMBERED) -> Review:
    return Review("id", "a", "a", rating, NOON, date(2026, 1, 31), NOON, confidence=confidence, right=right)


@pytest.mark.parametrize(("right", "count", "low", "high"), [
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718),
    (20, 20, 1 - 0.1611, 1.0),
])
def test_wilsons_interval_as_published(right, count, low, high):
    assert wilson(right, count) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_levels_shares_and_the_brier_score_by_hand():
    found = calibration([review(75, True), review(75, True), review(75, False), review(95, True), review(25, False)])
    counts = [(level.confidence, level.count, level.right) for level in found.levels]
    assert counts == [(25, 1, 0), (75, 3, 2), (95, 1, 1)]
    assert found.levels[1].share == pytest.approx(2 / 3)
    # 0.25² + 0.25² + 0.75² + 0.05² + 0.25² = 0.0625 + 0.0625 + 0.5625 + 0.0025 + 0.0625
    assert found.brier == pytest.approx(0.7525 / 5) and found.count == 5


def test_where_nothing_was_checked_the_rating_says_it():
    found = calibration([review(50, None, Rating.FORGOT), review(50, None, Rating.HARD),
                         review(50, True, Rating.FORGOT)])
    assert (found.levels[0].right, found.brier) == (2, pytest.approx(0.25))


def test_without_confidence_there_is_no_calibration():
    found = calibration([review(None, True)])
    assert (found.levels, found.count, found.brier) == ((), 0, None)
