"""Curves of anything over anything, each named at its end."""

from collections.abc import Callable, Mapping

from disttutor.figures.picture import Picture, axes, label_ends
from disttutor.figures.style import DASHES, MARKERS, SERIES, listing, plain_number


def curves(points: Mapping[str, Mapping[float, float]], *, title: str, xlabel: str, ylabel: str,
           x_words: Callable[[float], str] | None = None, highest: float | None = None) -> Picture:
    """Curves of name to {x: y}. x_words: on a doubling axis, what stands at each x. highest: the top of the y axis;
    what is above is cut off.

    Raises ValueError for no curves, for an empty one, and for more than can be told apart.
    """
    if not points or not all(points.values()):
        raise ValueError("there is no curve to draw; give {name: {x: y}} with at least one point each")
    if len(points) > len(SERIES):
        raise ValueError(f"{len(points)} curves cannot be told apart in one picture; up to {len(SERIES)} work")
    ax = axes(title, xlabel, ylabel)
    ends, said = [], []
    for i, (name, line) in enumerate(points.items()):
        xs, ys = list(line), list(line.values())
        ax.plot(xs, ys, color=SERIES[i], linestyle=DASHES[i], marker=MARKERS[i], markersize=5, linewidth=1.8)
        ends.append((name, xs[-1], ys[-1] if highest is None else min(ys[-1], highest), SERIES[i]))
        said.append(f"{name} goes from {plain_number(ys[0])} to {plain_number(ys[-1])}")
    if x_words:
        at = sorted({x for line in points.values() for x in line})
        ax.set_xscale("log", base=2)
        ax.set_xticks(at, [x_words(x) for x in at])
        ax.minorticks_off()
    ax.set_ylim(0, highest)
    label_ends(ax, ends)
    return Picture(ax.figure, f"{title}: {'; '.join(said)}.", f"{title}: {listing(list(points))}.")
