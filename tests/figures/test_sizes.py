"""Time against size, and where algorithms cross: against the crossing worked out by hand."""

import math
import warnings

import pytest

from disttutor.figures import Crossover, crossovers, sizes

ALPHA, BETA, N = 20e-6, 1e9, 8
SIZES = [2.0**k for k in range(6, 27)]
# Thakur, Rabenseifner and Gropp 2005, without the time of the addition.
RING = [(s, 2 * (N - 1) * (ALPHA + s / N / BETA)) for s in SIZES]
DOUBLING = [(s, 3 * (ALPHA + s / BETA)) for s in SIZES]
HALVING = [(s, 6 * ALPHA + 2 * 7 / 8 * s / BETA) for s in SIZES]


def lines(picture):
    return {line.get_label(): line for line in picture.figure.axes[0].get_lines()}


def test_measured_are_markers_and_predicted_lines():
    picture = sizes({"ring": RING[::4]}, {"ring": RING})
    drawn = lines(picture)
    assert drawn["ring, measured"].get_linestyle() == "None"
    assert list(drawn["ring, measured"].get_xdata()) == [n for n, _ in RING[::4]]
    assert drawn["ring, predicted"].get_marker() == "None"
    ax = picture.figure.axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert picture.alt == ("Time against size: ring takes 280 µs for 64 B to 118 ms for 67.1 MB measured; ring takes "
                           "280 µs for 64 B to 118 ms for 67.1 MB predicted.")
    assert repr(picture) == "Time against size: ring."


def test_between_two_points_a_prediction_is_linear_in_bytes():
    line = lines(sizes({}, {"a": [(100, 1.0), (10_000, 10.9)]}))["a, predicted"]
    for n, t in zip(line.get_xdata(), line.get_ydata(), strict=True):
        assert t == pytest.approx(0.9 + n * 1e-3)
    assert len(line.get_xdata()) > 5


def test_the_crossing_is_where_the_algebra_has_it():
    """14 α + 14/8 n/β = 3 α + 3 n/β where n = 11 α β / (3 - 14/8): 176 kB."""
    (found,) = crossovers({"ring": RING, "doubling": DOUBLING})
    assert found.nbytes == pytest.approx(176_000) and found.seconds == pytest.approx(3 * (ALPHA + 176e3 / BETA))
    assert (found.before, found.after) == ("doubling", "ring")
    (found,) = crossovers({"ring": RING, "halving": HALVING, "doubling": DOUBLING})
    assert (found.before, found.after) == ("doubling", "halving")       # 3 α + 3 n/β = 6 α + 7/4 n/β
    assert found.nbytes == pytest.approx(3 * ALPHA * BETA / 1.25)


def test_several_crossings_even_between_two_points():
    shallow = {"a": [(1, 1.0), (101, 101.0)], "b": [(1, 11.0), (101, 61.0)], "c": [(1, 31.0), (101, 31.0)]}
    assert crossovers(shallow) == [Crossover(pytest.approx(21), pytest.approx(21), "a", "b"),
                                   Crossover(pytest.approx(41), pytest.approx(31), "b", "c")]


def test_touching_and_equal_curves_do_not_cross():
    assert crossovers({"a": [(1, 1.0), (2, 2.0), (3, 3.0)], "b": [(1, 2.0), (2, 2.0), (3, 4.0)]}) == []
    assert crossovers({"a": RING, "b": RING}) == []
    assert crossovers({"a": RING}) == [] and crossovers({}) == []


def test_a_crossing_exactly_at_a_point_is_found_once():
    found = crossovers({"a": [(1, 1.0), (2, 2.0), (3, 3.0)], "b": [(1, 1.5), (2, 2.0), (3, 2.5)]})
    assert [(c.nbytes, c.after) for c in found] == [(2, "b")]


def test_only_sizes_that_all_are_predicted_for_are_compared():
    assert crossovers({"a": [(1, 1.0), (10, 10.0)], "b": [(20, 1.0), (30, 1.0)]}) == []


def test_crossings_are_marked_and_alpha_and_beta_are_noted():
    picture = sizes({}, {"ring": RING, "doubling": DOUBLING}, alpha=ALPHA, beta=BETA)
    words = [t.get_text() for t in picture.figure.axes[0].texts]
    assert "176 kB:\nring\nis faster" in words
    assert picture.figure.axes[0].get_xlabel().endswith("\nlines: predicted; α = 20 µs; β = 1 GB/s")
    assert "from 176 kB on ring is faster than doubling, as predicted" in picture.alt
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert picture.png().startswith(b"\x89PNG")


def test_axes_speak_in_units():
    picture = sizes({"ring": RING})
    picture.figure.canvas.draw()
    ax = picture.figure.axes[0]
    assert {"1 kB", "1 MB"} <= {t.get_text() for t in ax.get_xticklabels()}
    assert {"1 ms", "100 ms"} <= {t.get_text() for t in ax.get_yticklabels()}


@pytest.mark.parametrize(("measured", "predicted", "message"), [
    ({}, {}, "nothing to draw"), ({"a": []}, None, "nothing to draw"), ({"a": [(1, 1.0)], "b": []}, None, "'b' has no"),
    ({"a": [(0, 1.0)]}, None, "0 bytes"), ({"a": [(1, math.inf)]}, None, "above 0 and finite"),
    ({}, {"a": [(1, 1.0), (1, 2.0)]}, "two predictions for one size"),
    ({str(i): [(1, 1.0)] for i in range(9)}, None, "9 algorithms cannot be told apart in one picture; up to 8"),
])
def test_what_cannot_be_drawn_is_refused(measured, predicted, message):
    with pytest.raises(ValueError, match=message):
        sizes(measured, predicted)
