"""How every figure looks: colours that colour-blind eyes and a black-and-white printer can tell apart, one font, and
numbers with a unit.

The hues are those of Okabe and Ito (2008, "Color Universal Design"). A picture is shown as an image, which cannot
know whether the page around it is light or dark, so each draws its own light panel, and all text on it is dark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"

PANEL, BORDER = "#fcfcfb", "#c9ced6"
INK, MUTED, GRID = "#1b1f24", "#545b64", "#d9dce1"
IDLE, IDLE_LINE = "#eeeeee", "#b4b4b4"
COOL, NEUTRAL, WARM = "#0072b2", "#f7f7f7", "#d55e00"      # below, at and above zero

# For curves and bars, in this order; each also gets a marker and a dash of its own.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#a3447f", "#8a6a00", "#3b3b3b", "#2f86c1", "#7a3300")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 4)))


@dataclass(frozen=True, slots=True)
class Look:
    """How one kind of operation is drawn: a colour, a pattern over it, and the letters that stand in its box."""

    word: str
    letters: str
    colour: str
    pattern: str = "plain"


LOOKS = {
    "forward": Look("forward", "F", "#56b4e9"),
    "backward": Look("backward", "B", "#d55e00", "rising"),
    "backward_weight": Look("backward, weights", "W", "#7a3300", "dots"),
    "update": Look("update", "U", "#3b3b3b"),
    "compute": Look("computing", "C", "#c4c4c4"),
    "all_reduce": Look("all-reduce", "AR", "#009e73"),
    "reduce_scatter": Look("reduce-scatter", "RS", "#f0e442", "rising"),
    "all_gather": Look("all-gather", "AG", "#0072b2", "falling"),
    "all_to_all": Look("all-to-all", "AA", "#e6a0c4", "dots"),
    "broadcast": Look("broadcast", "BC", "#e69f00", "level"),
    "reduce": Look("reduce", "R", "#994f00", "level"),
    "gather": Look("gather", "G", "#b8dcf2", "falling"),
    "scatter": Look("scatter", "S", "#cc79a7", "rising"),
    "send": Look("send", "S", "#1f4e79"),
    "recv": Look("receive", "R", "#ffffff", "dots"),
    "recv_reduce": Look("receive and add", "R+", "#d9ef8b", "dots"),
    "barrier": Look("barrier", "|", "#7f7f7f", "upright"),
}
SEVERAL = Look("several kinds, too narrow to tell apart", "", "#8796a5")
HELD, HELD_LINE = "#e4dcf0", "#6a4c93"                      # activations in flight


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb", from 0 (black) to 1 (white), as WCAG 2 defines it."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, from 1 to 21 (WCAG 2); text needs 4.5."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def text_on(colour: str) -> str:
    """Black or white, whichever is read better on `colour`."""
    return max(("#000000", "#ffffff"), key=lambda text: contrast(text, colour))


def mix(one: str, other: str, share: float) -> str:
    """The colour that lies `share` (0 to 1) of the way from `one` to `other`."""
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(255 * (a + (b - a) * share)):02x}" for a, b in pairs)


def outline(colour: str) -> str:
    """The colour of the line around an area of `colour`: darker, or lighter if the area is dark already."""
    return mix(colour, INK, 0.45) if luminance(colour) > 0.1 else mix(colour, "#ffffff", 0.5)


def diverging(value: float, largest: float) -> str:
    """The colour of `value` on a scale that is symmetric around zero and ends at `largest` (> 0)."""
    share = max(-1.0, min(1.0, value / largest))
    return mix(NEUTRAL, WARM if share > 0 else COOL, abs(share))


def quantity(value: float, unit: str = "", digits: int = 3) -> str:
    """A number with its unit, in `digits` significant digits: `1.5 MB`, `35.2 ms`, `850 samples/s`.

    Bytes, flops and rates take the prefixes k, M, G …, seconds m, µ, n; any other unit is left as it is.
    """
    if unit == "s" or unit == "" or value == 0 or value != value or abs(value) == float("inf"):
        prefixes = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")) if unit == "s" and value else ((1.0, ""),)
    else:
        large = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
        prefixes = large if unit in ("B", "B/s", "flop", "flop/s", "byte", "bytes") else ((1.0, ""),)
    size, prefix = next((p for p in prefixes if abs(value) >= p[0] * (1 - 0.5 * 10.0**-digits)), prefixes[-1])
    return f"{plain_number(value / size, digits)} {prefix}{unit}".rstrip()


def plain_number(value: float, digits: int = 3) -> str:
    """A number in `digits` significant digits, without an exponent as long as it has few digits."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in text and 1 <= abs(value) < 1e6 else text


def ticks(end: float, about: int = 8) -> list[float]:
    """Round values from 0 up to `end` (> 0): multiples of 1, 2 or 5 times a power of ten, about `about` of them."""
    raw = end / max(1, about)
    power = 10.0 ** _floor_log10(raw)
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    return [i * step for i in range(int(end / step * (1 + 1e-9)) + 1)]


def listing(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _channels(colour: str) -> tuple[float, float, float]:
    return tuple(int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))


def _floor_log10(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])
