"""The calibration curve: points, bars of certainty and counts where they belong."""

from dataclasses import dataclass

import pytest

from disttutor.cards.progress.calibration import wilson
from disttutor.figures import calibration_curve


@dataclass
class Level:
    confidence: int
    count: int
    right: int
    low: float
    high: float


# 8 of 10: Wilson's interval is 0.4901 to 0.9433 (Brown, Cai and DasGupta 2001 give the formula; worked out by hand).
LEVELS = [Level(95, 10, 8, 0.4901, 0.9433), Level(50, 4, 1, 0.0456, 0.6994)]


def test_points_stand_at_the_shares_and_bars_reach_over_the_interval():
    picture = calibration_curve(LEVELS)
    ax = picture.figure.axes[0]
    diagonal, line = (container for container in ax.get_lines() if len(container.get_xdata()) == 2
                      and container.get_linestyle() in ("--", "-"))
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 100]
    assert list(line.get_xdata()) == [50, 95] and list(line.get_ydata()) == [25.0, 80.0]
    (bars,) = ax.collections
    ends = [sorted(y for _, y in segment) for segment in bars.get_segments()]
    assert ends == [pytest.approx([4.56, 69.94]), pytest.approx([49.01, 94.33])]


def test_counts_stand_below_each_level_and_all_is_within_the_picture():
    picture = calibration_curve(LEVELS)
    ax = picture.figure.axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["50\n1 of 4", "95\n8 of 10"]
    picture.figure.canvas.draw()
    page = picture.figure.bbox
    for words in [*ax.get_xticklabels(), *ax.get_yticklabels(), *ax.texts, ax._left_title]:
        around = words.get_window_extent()
        assert page.x0 <= around.x0 and around.x1 <= page.x1 and page.y0 <= around.y0 and around.y1 <= page.y1


@pytest.mark.parametrize("right", [0, 12])
def test_all_or_none_right_can_be_drawn(right):
    """Wilson's interval then ends at the share, but for rounding."""
    calibration_curve([Level(75, 12, right, *wilson(right, 12))]).png()


def test_it_is_told_in_words():
    picture = calibration_curve(LEVELS, title="Sure and right")
    assert picture.alt == ("Sure and right: 50 % sure: 1 of 4 right, between 5 and 70 % with 95 % certainty; "
                           "95 % sure: 8 of 10 right, between 49 and 94 % with 95 % certainty.")
    assert repr(picture) == "Sure and right."


def test_the_levels_of_the_cards_are_such_levels():
    """By hand, with z = 1.96: the centre is (8 + z²/2) / (10 + z²) = 0.7167, the half width 0.2266."""
    assert wilson(8, 10) == (pytest.approx(0.4901, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert wilson(1, 4) == (pytest.approx(0.0456, abs=1e-4), pytest.approx(0.6994, abs=1e-4))


@pytest.mark.parametrize("levels, why", [([], "no answers with a confidence yet"),
                                         ([Level(50, 0, 0, 0, 1)], "0 of 0 answers"),
                                         ([Level(50, 3, 4, 0, 1)], "4 of 3 answers cannot be right")])
def test_what_cannot_be_drawn_is_said(levels, why):
    with pytest.raises(ValueError, match=why):
        calibration_curve(levels)
