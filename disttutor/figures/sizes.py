"""Time against size: what messages of every size cost with several algorithms, and from which size on which is best."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log10
from typing import Any

from disttutor.figures.picture import Picture, axes, legend, words
from disttutor.figures.style import DASHES, INK, MARKERS, MUTED, SERIES, quantity

Points = Sequence[tuple[float, float]]
_BETWEEN = 12               # points drawn between two predicted ones: a straight line bends on logarithmic axes


@dataclass(frozen=True, slots=True)
class Crossover:
    """From `nbytes` on `after` is predicted to be the fastest, below it is `before`; there both take `seconds`."""

    nbytes: float
    seconds: float
    before: str
    after: str


def sizes(measured: Mapping[str, Points], predicted: Mapping[str, Points] | None = None, *,
          alpha: float | None = None, beta: float | None = None, title: str = "Time against size",
          xlabel: str = "size of the array") -> Picture:
    """Seconds over bytes on logarithmic axes, for each algorithm: measured as markers, predicted as lines.

    measured, predicted: algorithm to points (bytes, seconds), in any order; either may lack an algorithm that the other
    has. Where the fastest predicted algorithm changes, the size is marked (see `crossovers`). alpha: latency of a
    message in seconds, beta: bandwidth in bytes a second; written into the picture.

    Raises ValueError for nothing to draw, for sizes or times that are not above 0 and finite, for two predictions of
    one size, and for more algorithms than can be told apart.
    """
    predicted = {name: sorted(points) for name, points in (predicted or {}).items()}
    measured = {name: sorted(points) for name, points in measured.items()}
    names = list(dict.fromkeys([*predicted, *measured]))
    _check(names, measured, predicted)
    ax = axes(title, xlabel, "time", height=4.4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    handles = []
    for i, name in enumerate(names):
        if line := predicted.get(name):
            dense = _dense(line)
            ax.plot([n for n, _ in dense], [t for _, t in dense], color=SERIES[i], linestyle=DASHES[i], linewidth=1.8,
                    label=words(f"{name}, predicted"))
        if points := measured.get(name):
            ax.plot([n for n, _ in points], [t for _, t in points], color=SERIES[i], linestyle="none",
                    marker=MARKERS[i], markersize=6.5, markeredgecolor=INK, markeredgewidth=0.6,
                    label=words(f"{name}, measured"))
        handles.append(_handle(i, name, name in predicted, name in measured))
    found = crossovers(predicted)
    _mark(ax, found)
    _ticks(ax, measured, predicted)
    _note(ax, measured, predicted, alpha, beta)
    legend(ax, handles)
    said = [f"{name} takes {_range(measured[name])} measured" for name in names if name in measured]
    said += [f"{name} takes {_range(predicted[name])} predicted" for name in names if name in predicted]
    said += [f"from {quantity(c.nbytes, 'B')} on {c.after} is faster than {c.before}, as predicted" for c in found]
    return Picture(ax.figure, f"{title}: {'; '.join(said)}.", f"{title}: {', '.join(names)}.")


def _handle(i: int, name: str, predicted: bool, measured: bool) -> Any:
    """How the algorithm is drawn, for the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=SERIES[i], linestyle=DASHES[i] if predicted else "none", linewidth=1.8,
                  marker=MARKERS[i] if measured else None, markersize=6.5, markeredgecolor=INK, markeredgewidth=0.6,
                  label=words(name))


def crossovers(predicted: Mapping[str, Points]) -> list[Crossover]:
    """The sizes at which the fastest of the predicted algorithms changes, smallest first.

    Between the points given time is taken to be linear in bytes, as α + bytes/β is, so that crossings of such
    predictions are exact. Sizes that not all algorithms are predicted for are left out.
    """
    lines = {name: sorted(points) for name, points in predicted.items() if points}
    if len(lines) < 2:
        return []
    low, high = max(p[0][0] for p in lines.values()), min(p[-1][0] for p in lines.values())
    at = sorted({n for points in lines.values() for n, _ in points if low <= n <= high})
    found: list[Crossover] = []
    best = None
    for a, b in zip(at, at[1:], strict=False):
        here = a
        if best is None:
            best = min(lines, key=lambda name: (_at(lines[name], a), _at(lines[name], b)))
        while here < b:
            overtakes = [(x, _at(lines[name], b), name) for name in lines
                         if name != best and (x := _meet(lines[best], lines[name], here, b)) is not None]
            if not overtakes:
                break
            here, _, name = min(overtakes)
            found.append(Crossover(here, _at(lines[best], here), best, name))
            best = name
    return found


def _meet(one: Points, other: Points, a: float, b: float) -> float | None:
    """Where between a and b `other` becomes the faster one; both are straight there."""
    before, after = _at(other, a) - _at(one, a), _at(other, b) - _at(one, b)
    if not after < 0 <= before:
        return None
    return a + (b - a) * before / (before - after)


def _at(points: Points, nbytes: float) -> float:
    """Seconds at a size between the points."""
    right = min(max(bisect_right(points, nbytes, key=lambda p: p[0]), 1), len(points) - 1)
    (n0, t0), (n1, t1) = points[right - 1], points[right]
    return t0 + (t1 - t0) * (nbytes - n0) / (n1 - n0)


def _dense(points: Points) -> list[tuple[float, float]]:
    out = []
    for (n0, _), (n1, _) in zip(points, points[1:], strict=False):
        out += [(n, _at(points, n)) for n in (n0 * (n1 / n0) ** (i / _BETWEEN) for i in range(_BETWEEN))]
    return [*out, points[-1]]


def _mark(ax, found: list[Crossover]) -> None:
    for i, c in enumerate(found):
        ax.axvline(c.nbytes, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        ax.plot([c.nbytes], [c.seconds], marker="o", markersize=11, markerfacecolor="none", markeredgecolor=INK,
                linestyle="none")
        # Those side by side stand at two heights.
        ax.annotate(words(f"{quantity(c.nbytes, 'B')}:\n{c.after}\nis faster", 18), (c.nbytes, 0.02 + 0.2 * (i % 2)),
                    xycoords=("data", "axes fraction"), xytext=(4, 0), textcoords="offset points", fontsize=8,
                    color=INK, va="bottom")


def _ticks(ax, measured: Mapping[str, Points], predicted: Mapping[str, Points]) -> None:
    """Round bytes and seconds in their units, and room around the points."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    points = [p for lines in (measured, predicted) for some in lines.values() for p in some]
    for axis, unit, place in ((ax.xaxis, "B", 0), (ax.yaxis, "s", 1)):
        values = [p[place] for p in points]
        decades = log10(max(values) / min(values))
        axis.set_major_locator(LogLocator(10, subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0), numticks=12))
        axis.set_major_formatter(FuncFormatter(lambda value, _, unit=unit: quantity(value, unit)))
        axis.set_minor_locator(NullLocator())
        grow = max(1.15, (max(values) / min(values)) ** 0.04)
        (ax.set_xlim if place == 0 else ax.set_ylim)(min(values) / grow, max(values) * grow)


def _note(ax, measured: Mapping[str, Points], predicted: Mapping[str, Points], alpha: float | None,
          beta: float | None) -> None:
    kinds = [said for there, said in ((measured, "markers: measured"), (predicted, "lines: predicted")) if there]
    if alpha is not None:
        kinds.append(f"α = {quantity(alpha, 's')}")
    if beta is not None:
        kinds.append(f"β = {quantity(beta, 'B/s')}")
    # Under the axis: within, every corner may hold a curve.
    ax.set_xlabel(ax.get_xlabel() + "\n" + words("; ".join(kinds), 200), fontsize=9, color=MUTED)


def _range(points: Points) -> str:
    (n0, t0), (n1, t1) = points[0], points[-1]
    first = f"{quantity(t0, 's')} for {quantity(n0, 'B')}"
    return first if len(points) == 1 else f"{first} to {quantity(t1, 's')} for {quantity(n1, 'B')}"


def _check(names: list[str], measured: Mapping[str, Points], predicted: Mapping[str, Points]) -> None:
    if not any(measured.values()) and not any(predicted.values()):
        raise ValueError("there is nothing to draw; give {algorithm: [(bytes, seconds), ...]}")
    if len(names) > len(SERIES):
        raise ValueError(f"{len(names)} algorithms cannot be told apart in one picture; up to {len(SERIES)} work")
    for lines in (measured, predicted):
        for name, points in lines.items():
            if not points:
                raise ValueError(f"{name!r} has no points; leave it away or give [(bytes, seconds), ...]")
            for nbytes, seconds in points:
                if not (0 < nbytes < inf and 0 < seconds < inf):
                    raise ValueError(f"{name!r} has a point of {nbytes!r} bytes and {seconds!r} seconds; logarithmic "
                                     "axes need both above 0 and finite")
    for name, points in predicted.items():
        if len({n for n, _ in points}) < len(points):
            raise ValueError(f"{name!r} has two predictions for one size; a prediction is one time for each size")
