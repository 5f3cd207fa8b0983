"""A Matplotlib figure as a cell's value: an image with alt text, and the same text in every run.

Figures are made without pyplot, so nothing global is touched and a background thread may draw. Colours are set on
each, whatever style the notebook has chosen, as the panel is light and text on it must be dark.
"""

import base64
import io
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from disttutor.figures.style import BORDER, GRID, INK, MUTED, PANEL
from disttutor.figures.svg import image, wrap

DPI = 96
SHARPNESS = 2               # pixels drawn for each pixel shown, for dense screens


@dataclass(frozen=True, slots=True)
class Picture:
    """A finished Matplotlib figure. As a cell's value it shows itself.

    alt: what is to be seen in it, for who cannot see it. plain: one sentence without times, the same in every run.
    """

    figure: Any = field(repr=False)
    alt: str
    plain: str

    def __repr__(self) -> str:
        return self.plain

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.plain}

    def png(self) -> bytes:
        """The picture as a PNG file's content."""
        out = io.BytesIO()
        self.figure.savefig(out, format="png", dpi=DPI * SHARPNESS, facecolor=PANEL, metadata={"Software": None})
        return out.getvalue()

    def html(self) -> str:
        """The picture as an HTML image that carries its own data."""
        width = round(self.figure.get_figwidth() * DPI)
        return image("image/png", base64.b64encode(self.png()).decode(), self.alt, width)

    def save(self, path: str | Path) -> Path:
        """Write the picture as a PNG file and return its path. Raises ValueError for another kind of file."""
        path = Path(path)
        if path.suffix != ".png":
            raise ValueError(f"this picture can be saved as .png, not as {path.suffix or path.name!r}")
        path.write_bytes(self.png())
        return path


def axes(title: str, xlabel: str, ylabel: str, width: float = 8.2, height: float = 3.8) -> Any:
    """The axes of a new figure of `width` by `height` inches, with the house's colours."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor=PANEL, edgecolor=BORDER, linewidth=1.5)
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    ax = figure.add_subplot(facecolor=PANEL)
    lines = wrap(title, 0.85 * 72 * width, 11, bold=True)
    ax.set_title(words("\n".join(lines), 200), loc="left", fontsize=11, fontweight="bold", color=INK)
    ax.set_xlabel(xlabel, fontsize=9, color=MUTED)
    ax.set_ylabel(ylabel, fontsize=9, color=MUTED)
    ax.tick_params(labelsize=9, labelcolor=MUTED, color=MUTED)
    ax.grid(True, color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(MUTED)
    return ax


def words(name: str, width: int = 30) -> str:
    """A name as Matplotlib shows it letter by letter (no mathematics), in lines of at most `width` letters."""
    return "\n".join(textwrap.fill(line, width) for line in name.splitlines()).replace("$", r"\$")


def whole_numbers(ax: Any) -> None:
    """Ticks of the horizontal axis at whole numbers only: steps and ranks have no halves."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def label_ends(ax: Any, ends: list[tuple[str, float, float, str]], least: float = 13) -> None:
    """Write each curve's name beside its end (name, x, y, colour), moved apart where they would overlap.

    `least`: distance of two names in points.
    """
    ax.figure.canvas.draw()
    points = 72 / ax.figure.dpi
    order = sorted(ends, key=lambda end: end[2])
    heights = [ax.transData.transform((x, y))[1] * points for _, x, y, _ in order]
    moved = list(heights)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + least)
    for (name, x, y, colour), here, there in zip(order, heights, moved, strict=True):
        ax.annotate(words(name), (x, y), xytext=(8, there - here), textcoords="offset points", color=colour, fontsize=9,
                    va="center", annotation_clip=False)


def legend(ax: Any, handles: list[Any] | None = None) -> None:
    """A legend beside the axes, where it hides nothing; of `handles`, or of all that is drawn and has a label."""
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=9, frameon=False, labelcolor=INK)
