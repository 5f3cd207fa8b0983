"""Colours that colour-blind eyes tell apart, text that can be read, numbers with the right unit."""

from itertools import combinations

import pytest

from disttutor.figures import style
from disttutor.plans.op import LANE_OF

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
VISION = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
}


def linear(colour):
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def lab(rgb):
    """CIE 1976 L*a*b* of linear sRGB, white point D65."""
    r, g, b = (min(1, max(0, c)) for c in rgb)
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089
    x, y, z = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(colour, vision):
    rgb = linear(colour)
    return lab([sum(m * c for m, c in zip(row, rgb, strict=True)) for row in VISION[vision]])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("lane", ["compute", "comm"])
def test_kinds_of_one_lane_are_told_apart(lane, vision):
    kinds = [kind for kind in style.LOOKS if LANE_OF[kind] == lane]
    for one, other in combinations(kinds, 2):
        a, b = style.LOOKS[one], style.LOOKS[other]
        apart = sum((p - q) ** 2 for p, q in zip(seen(a.colour, vision), seen(b.colour, vision), strict=True)) ** 0.5
        # 2.3 is just noticeable; colours that come near also differ in their pattern.
        assert apart > (20 if a.pattern == b.pattern else 8), (one, other, apart)


def test_every_kind_of_operation_has_a_look():
    assert set(style.LOOKS) == set(LANE_OF)


def test_letters_of_one_lane_differ():
    for lane in ("compute", "comm"):
        letters = [(look.letters, look.colour) for kind, look in style.LOOKS.items() if LANE_OF[kind] == lane]
        assert len(letters) == len(set(letters))


def test_text_can_be_read():
    for ink in (style.INK, style.MUTED):
        assert style.contrast(ink, style.PANEL) >= 4.5
    for look in style.LOOKS.values():
        assert style.contrast(style.text_on(look.colour), look.colour) >= 4.5
    for colour in style.SERIES:
        assert style.contrast(colour, style.PANEL) >= 3      # lines and marks (WCAG 2, 1.4.11)


def test_contrast_of_black_and_white_is_21():
    assert style.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert style.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)      # the known near miss


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.0352, "s", "35.2 ms"), (1.5, "s", "1.5 s"), (0, "s", "0 s"), (2e-6, "s", "2 µs"), (0.9999, "s", "1 s"),
        (1_500_000, "B", "1.5 MB"), (999, "B", "999 B"), (999_999, "B", "1 MB"), (0, "B", "0 B"),
        (850, "samples/s", "850 samples/s"), (12345, "samples/s", "12345 samples/s"), (2.5, "", "2.5"),
        (1e9, "flop/s", "1 Gflop/s"), (90, "s", "90 s"), (3600, "s", "3600 s"),
    ],
)  # fmt: skip
def test_quantities(value, unit, words):
    assert style.quantity(value, unit) == words


@pytest.mark.parametrize(("end", "about", "expected"), [
    (10, 5, [0, 2, 4, 6, 8, 10]), (36, 8, [0, 5, 10, 15, 20, 25, 30, 35]), (0.05, 5, [0, 0.01, 0.02, 0.03, 0.04, 0.05]),
    (1, 1, [0, 1]),
])
def test_ticks(end, about, expected):
    assert style.ticks(end, about) == pytest.approx(expected)


def test_diverging_colours_are_symmetric_around_zero():
    assert style.diverging(0, 2) == style.NEUTRAL
    assert style.diverging(2, 2) == style.diverging(9, 2) == style.WARM
    assert style.diverging(-2, 2) == style.COOL
    assert style.diverging(1, 2) == style.mix(style.NEUTRAL, style.WARM, 0.5)


def test_mix_goes_from_one_to_the_other():
    assert [style.mix("#000000", "#ffffff", s) for s in (0, 0.2, 1)] == ["#000000", "#333333", "#ffffff"]
