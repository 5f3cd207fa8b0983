"""The equality view: how far each strategy's weights are from those of one process, step by step.

On a logarithmic axis, with the machine epsilon of both precisions marked: what lies about the line of its own
precision is rounding, what lies far above it is a bug.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor, inf, isfinite, log10

from disttutor.figures.picture import Picture, axes, label_ends, legend, whole_numbers, words
from disttutor.figures.style import DASHES, INK, MARKERS, PANEL, SERIES, listing, plain_number

# Distance from 1 to the next number (IEEE 754).
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7}
FEW = 5                     # curves that are named at their ends rather than in a legend


def equality(distances: Mapping[str, Sequence[float]], *, eps: Sequence[str] = ("float64", "float32"),
             title: str = "How far from one process", first_step: int = 1) -> Picture:
    """Curves of `distances`: name to the largest absolute difference to one process after each step.

    eps: precisions whose machine epsilon is marked. A distance of exactly 0, which no logarithmic axis has, is drawn at
    the bottom and called exactly equal; one that is not finite at the top. Raises ValueError for no curves, for an
    empty or negative one, and for an unknown precision.
    """
    _check(distances, eps)
    bottom, top = _range(distances, eps)
    ax = axes(title, "step", "largest difference to one process")
    ax.set_yscale("log")
    ax.set_ylim(bottom / 5, top * 5)
    ends = []
    for i, (name, curve) in enumerate(distances.items()):
        steps = range(first_step, first_step + len(curve))
        heights = [bottom if d == 0 else d if isfinite(d) else top for d in curve]
        colour = SERIES[i % len(SERIES)]
        # Curves that lie on one another stay visible: the first is the widest, and the last is drawn over it.
        ax.plot(steps, heights, color=colour, linestyle=DASHES[i % len(DASHES)], linewidth=_wide(i, distances),
                marker=MARKERS[i % len(MARKERS)], markersize=4 + _wide(i, distances), markerfacecolor="none",
                markevery=max(1, len(curve) // 12), label=words(name))
        ends.append((name, steps[-1], heights[-1], colour))
    for precision in eps:
        ax.axhline(EPSILON[precision], color=INK, linewidth=0.9, linestyle=(0, (2, 2)))
        ax.annotate(f"epsilon of {precision}: {plain_number(EPSILON[precision], 2)}", (0, EPSILON[precision]),
                    xycoords=("axes fraction", "data"), xytext=(4, 4), textcoords="offset points", fontsize=8,
                    color=INK, bbox={"facecolor": PANEL, "edgecolor": "none", "alpha": 0.8, "pad": 0.8})
    _mark_extremes(ax, distances, bottom, top)
    whole_numbers(ax)
    if len(ends) <= FEW:
        label_ends(ax, ends)
    else:
        legend(ax)
    return Picture(ax.figure, f"{title}: {_sentence(distances)}.", f"{title}: {listing(list(distances))}.")


def _check(distances: Mapping[str, Sequence[float]], eps: Sequence[str]) -> None:
    if not distances:
        raise ValueError("there is no curve to draw; give {name: [distance after each step]}")
    for name, curve in distances.items():
        if not len(curve) or any(d < 0 for d in curve):
            raise ValueError(f"the distances of {name!r} are {list(curve)}; it takes at least one, and none below 0")
    for precision in eps:
        if precision not in EPSILON:
            raise ValueError(f"unknown precision {precision!r}; precisions that work: {', '.join(EPSILON)}")


def _range(distances: Mapping[str, Sequence[float]], eps: Sequence[str]) -> tuple[float, float]:
    """Where 0 and where infinity are drawn: well below and above everything that has a place on the axis."""
    known = [d for curve in distances.values() for d in curve if 0 < d < inf] + [EPSILON[p] for p in eps] or [1.0]
    return min(known) / 30, max(known) * 5


def _mark_extremes(ax, distances: Mapping[str, Sequence[float]], bottom: float, top: float) -> None:
    """Where 0 and infinity stand, the axis says so in place of a power of ten."""
    everything = [d for curve in distances.values() for d in curve]
    low, high = bottom * 10, top / 10
    exponents = range(ceil(log10(low)), floor(log10(high)) + 1)
    apart = -(-len(exponents) // 9)
    ticks = {10.0**e: f"$10^{{{e}}}$" for e in exponents if e % apart == 0}
    for there, height, name in ((0 in everything, bottom, "0: exactly\nequal"),
                                (not all(map(isfinite, everything)), top, "not finite")):
        if there:
            ax.axhspan(height / 2.5, height * 2.5, color="#e9ecf0", zorder=0)
            ticks[height] = name
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.minorticks_off()


def _wide(i: int, distances: Mapping) -> float:
    return 1.2 + 2.4 * (len(distances) - 1 - i) / max(1, len(distances) - 1)


def _sentence(distances: Mapping[str, Sequence[float]]) -> str:
    said = []
    for name, curve in distances.items():
        worst = max((d if d == d else inf) for d in curve)
        said.append(f"{name} is exactly equal at all {len(curve)} steps" if worst == 0 else
                    f"{name} differs by up to {plain_number(worst)} in {len(curve)} steps")
    return "; ".join(said)
