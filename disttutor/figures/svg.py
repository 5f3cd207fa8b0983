"""Drawings as SVG text of our own: fast to make, and the same bytes every time.

Inline SVG stays blank in a notebook that was just cloned and is not trusted yet, and so does `IPython.display.SVG`. An
image that carries the drawing as its data is shown there, in JupyterLab and on GitHub alike, so that is what a cell
outputs.
"""

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape as _escape
from pathlib import Path
from typing import Any

from disttutor.figures.style import BORDER, FONT, INK, PANEL

# Advance widths of DejaVu Sans in hundredths of the font size, for the characters 32 to 126: the widest of the fonts
# in the list, so what fits here fits in all of them.
_ADVANCE = (
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84,
    84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61,
    69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59,
    82, 59, 59, 52, 64, 34, 64, 84,
)  # fmt: skip
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Svg:
    """A finished drawing. As a cell's value it shows itself.

    svg: the drawing's text. alt: what is to be seen in it, for who cannot see it. plain: one sentence without times,
    the same in every run. width: in pixels.
    """

    svg: str = field(repr=False)
    alt: str
    plain: str
    width: int

    def __repr__(self) -> str:
        return self.plain

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.plain}

    def html(self) -> str:
        """The drawing as an HTML image that carries its own data."""
        data = base64.b64encode(self.svg.encode()).decode()
        return image("image/svg+xml", data, self.alt, self.width)

    def save(self, path: str | Path) -> Path:
        """Write the drawing as an SVG file and return its path. Raises ValueError for another kind of file."""
        path = Path(path)
        if path.suffix != ".svg":
            raise ValueError(f"this drawing can be saved as .svg, not as {path.suffix or path.name!r}")
        path.write_text(self.svg, encoding="utf-8")
        return path


def image(kind: str, data: str, alt: str, width: int) -> str:
    """An HTML image of base64 `data`, never wider than the page."""
    return (f'<img alt="{escape(alt)}" width="{width}" style="max-width:100%;height:auto" '
            f'src="data:{kind};base64,{data}">')


def drawing(parts: Iterable[str], width: int, height: float, *, alt: str, plain: str, definitions: str = "") -> Svg:
    """Put `parts` on a light panel with a border, readable on a white and on a dark page."""
    height = int(height + 0.999)
    panel = (f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{PANEL}" '
             f'stroke="{BORDER}"/>')
    text = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(alt)}" font-family="{FONT}">'
            f'<defs>{definitions}</defs>{panel}{"".join(parts)}</svg>')
    return Svg(text, alt, plain, width)


def escape(words: str) -> str:
    """`words` as XML text or attribute; what no XML may hold becomes a question mark."""
    return _escape(_NOT_XML.sub("?", words))


def number(value: float) -> str:
    """A coordinate: two decimals at most, so that the same drawing has the same bytes everywhere."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if round(value, 2) else "0"


def text_width(words: str, size: float, bold: bool = False) -> float:
    """About how wide `words` are in pixels, in the widest of the fonts."""
    hundredths = sum(_ADVANCE[ord(c) - 32] if 32 <= ord(c) <= 126 else 90 for c in words)
    return hundredths / 100 * size * (1.12 if bold else 1)


def wrap(words: str, width: float, size: float, bold: bool = False) -> list[str]:
    """`words` in lines of at most `width` pixels; a word that is too long for a line is broken."""
    lines: list[str] = []
    for word in words.split():
        if lines and text_width(f"{lines[-1]} {word}", size, bold) <= width:
            lines[-1] += f" {word}"
            continue
        lines.append("")
        for letter in word:
            if lines[-1] and text_width(lines[-1] + letter, size, bold) > width:
                lines.append("")
            lines[-1] += letter
    return lines


def text(x: float, y: float, words: str, *, size: float = 11, fill: str = INK, anchor: str = "start",
         bold: bool = False) -> str:
    """One line of text whose baseline is at `y`; anchor: "start", "middle" or "end"."""
    more = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (' font-weight="bold"' if bold else "")
    return (f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{fill}"{more}>'
            f'{escape(words)}</text>')


def rect(x: float, y: float, width: float, height: float, *, fill: str = "", stroke: str = "", title: str = "",
         rx: float = 0) -> str:
    """A rectangle; `title` is shown where a reader hovers over it, in pages that hold the drawing inline."""
    more = "".join(f' {name}="{value}"' for name, value in
                   (("fill", fill), ("stroke", stroke), ("rx", number(rx) if rx else "")) if value)
    shape = f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"{more}'
    return f"{shape}><title>{escape(title)}</title></rect>" if title else f"{shape}/>"


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, width: float = 1, dash: str = "") -> str:
    """A straight line."""
    more = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" stroke="{stroke}" '
            f'stroke-width="{number(width)}"{more}/>')


# What is drawn over the ground of a pattern, in a square of 6 by 6.
_STROKES = {
    "plain": "",
    "rising": '<path d="M-1 1L1 -1M0 6L6 0M5 7L7 5"/>',
    "falling": '<path d="M-1 5L1 7M0 0L6 6M5 -1L7 1"/>',
    "level": '<path d="M0 3H6"/>',
    "upright": '<path d="M3 0V6"/>',
    "dots": '<circle cx="3" cy="3" r="0.8"/>',
}


def pattern(name: str, ground: str, ink: str, kind: str, width: float = 0.9) -> str:
    """The definition of a fill `url(#name)`: strokes of `kind` ("plain", "rising", "falling", "dots" …) on `ground`."""
    return (f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
            f'<rect width="6" height="6" fill="{ground}"/>'
            f'<g stroke="{ink}" stroke-width="{number(width)}" fill="none">{_STROKES[kind]}</g></pattern>')
