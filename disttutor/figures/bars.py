"""Labelled bars: bytes or times of several strategies, each with its value at its end."""

from collections.abc import Mapping
from math import isfinite

from disttutor.figures.picture import Picture, axes, words
from disttutor.figures.style import INK, SERIES, quantity


def bars(values: Mapping[str, float], unit: str, *, title: str, xlabel: str = "",
         reference: str | None = None) -> Picture:
    """One bar for each of `values` (name to value in `unit`: "B", "s", "samples/s", …), in their order from the top.

    reference: the name of a bar; each then also says how many times as large as that it is. Raises ValueError for no
    values, for one that is negative or not finite, and for an unknown reference.
    """
    if not values:
        raise ValueError("there is no bar to draw; give {name: value}")
    for name, value in values.items():
        if not (isfinite(value) and value >= 0):
            raise ValueError(f"the value of {name!r} is {value!r}; a bar needs a finite one from 0 up")
    if reference is not None and reference not in values:
        raise ValueError(f"there is no bar {reference!r} to compare with; bars: {', '.join(values)}")
    if reference is not None:
        xlabel = f"{xlabel}  (x: times {words(reference, 60)})".strip()
    ax = axes(title, xlabel, "", height=1.3 + 0.36 * len(values))
    places = range(len(values) - 1, -1, -1)
    ax.barh(places, list(values.values()), height=0.66, color=SERIES[0], edgecolor=INK, linewidth=0.6)
    ends = [_end(value, unit, values, reference) for value in values.values()]
    for place, value, end in zip(places, values.values(), ends, strict=True):
        ax.annotate(end, (value, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9,
                    color=INK, annotation_clip=False)
    ax.set_yticks(places, list(map(words, values)))
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.grid(False, axis="y")
    largest = max(values.values()) or 1.0
    ax.set_xlim(0, largest * 1.02)
    ax.xaxis.set_major_formatter(lambda value, _: quantity(value, unit) if value else "0")
    ax.xaxis.set_major_locator(_few())
    said = "; ".join(f"{name} {end}" for name, end in zip(values, ends, strict=True))
    return Picture(ax.figure, f"{title}: {said}.", f"{title}: {', '.join(values)}.")


def _end(value: float, unit: str, values: Mapping[str, float], reference: str | None) -> str:
    said = quantity(value, unit)
    if reference is None or not values[reference]:
        return said
    return f"{said} ({quantity(value / values[reference])}x)"


def _few():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5)
