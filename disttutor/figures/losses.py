"""Loss curves. Those of equal strategies lie on one another, so each is drawn to stay visible under the next."""

from collections.abc import Mapping, Sequence
from math import isfinite

from disttutor.figures.picture import Picture, axes, label_ends, legend, whole_numbers, words
from disttutor.figures.style import DASHES, MARKERS, SERIES, listing, plain_number

FEW = 5                     # curves that are named at their ends rather than in a legend


def losses(curves: Mapping[str, Sequence[float]], *, title: str = "Loss", first_step: int = 1,
           log: bool = False) -> Picture:
    """Curves of name to the loss at each step. log: a logarithmic loss axis.

    Where curves coincide the first is the widest, the next are dashed over it, and their markers stand at different
    steps. Losses that are not finite are left out of a curve and said in the alt text. Raises ValueError for no curves
    and for an empty one.
    """
    if not curves:
        raise ValueError("there is no curve to draw; give {name: [loss at each step]}")
    for name, curve in curves.items():
        if not len(curve):
            raise ValueError(f"the losses of {name!r} are empty; it takes at least one step")
    ax = axes(title, "step", "loss")
    if log:
        ax.set_yscale("log")
    ends = []
    for i, (name, curve) in enumerate(curves.items()):
        steps = range(first_step, first_step + len(curve))
        every = max(len(curves), len(curve) // 10)
        style = i % len(SERIES)
        ax.plot(steps, [y if isfinite(y) else float("nan") for y in curve], color=SERIES[style], label=words(name),
                linestyle=DASHES[style], linewidth=_width(i, len(curves)), marker=MARKERS[style],
                markersize=5 + _width(i, len(curves)), markerfacecolor="none", alpha=1 if i else 0.55,
                markevery=(min(i * every // len(curves), len(curve) - 1), every))
        known = [(x, y) for x, y in zip(steps, curve, strict=True) if isfinite(y)]
        if known:
            ends.append((name, *known[-1], SERIES[style]))
    whole_numbers(ax)
    if len(ends) <= FEW:
        label_ends(ax, ends)
    else:
        legend(ax)
    return Picture(ax.figure, f"{title}: {'; '.join(_sentence(*c) for c in curves.items())}.{_together(curves)}",
                   f"{title}: {listing(list(curves))}.")


def _width(i: int, n: int) -> float:
    return 1.3 if i else (1.3 if n == 1 else 5.0)


def _sentence(name: str, curve: Sequence[float]) -> str:
    lost = sum(not isfinite(y) for y in curve)
    said = f"{name} goes from {plain_number(curve[0])} to {plain_number(curve[-1])} in {len(curve)} steps"
    return said + (f", {lost} of them not finite" if lost else "")


def _together(curves: Mapping[str, Sequence[float]]) -> str:
    """Whether the curves are one and the same to the eye."""
    if len(curves) < 2 or len({len(c) for c in curves.values()}) > 1:
        return ""
    apart = max(max(ys) - min(ys) for ys in zip(*curves.values(), strict=True))
    return f" They differ by {plain_number(apart)} at most." if isfinite(apart) else ""
