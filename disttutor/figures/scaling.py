"""Scaling: what more ranks bring, measured and predicted, against the ideal."""

from collections.abc import Mapping

from disttutor.figures.picture import Picture, axes
from disttutor.figures.style import INK, MUTED, SERIES, quantity

SHOWS = {"time": "time of a step", "speedup": "speedup", "efficiency": "efficiency"}


def scaling(measured: Mapping[int, float], predicted: Mapping[int, float] | None = None, *, show: str = "time",
            weak: bool = False, title: str = "More ranks") -> Picture:
    """Time of a step, speedup or efficiency against the number of ranks.

    measured, predicted: number of ranks to seconds; measured values are points, predicted ones a dashed line, the ideal
    a thin one. The smallest measured number of ranks is what the others are compared with. weak: the batch grows with
    the ranks, so the ideal time stays the same; otherwise the batch is the same, and the ideal time falls.

    Raises ValueError for nothing measured, numbers of ranks below 1, times that are not above 0, or another `show`.
    """
    predicted = dict(sorted((predicted or {}).items()))
    measured = dict(sorted(measured.items()))
    _check(measured, predicted, show)
    base = min(measured)
    ranks = sorted({*measured, *predicted})
    turn = _Turn(show, weak, base, measured[base])
    ax = axes(title, "ranks", SHOWS[show])
    ideal = {n: measured[base] if weak else measured[base] * base / n for n in ranks}
    ax.plot(ranks, [turn(n, ideal[n]) for n in ranks], color=MUTED, linewidth=1, linestyle=":", label="ideal")
    if predicted:
        ax.plot(list(predicted), [turn(n, t) for n, t in predicted.items()], color=SERIES[1], linewidth=1.8,
                linestyle="--", label="predicted")
    ax.plot(list(measured), [turn(n, t) for n, t in measured.items()], color=SERIES[0], linestyle="none", marker="o",
            markersize=8, markeredgecolor=INK, label="measured")
    ax.set_xscale("log", base=2)
    ax.set_xticks(ranks, [str(n) for n in ranks])
    ax.minorticks_off()
    ax.set_ylim(0, 1.06 * ax.get_ylim()[1])
    ax.yaxis.set_major_formatter(lambda value, _: turn.words(value) if value else "0")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=9, frameon=False, labelcolor=INK)
    said = "; ".join(f"{n} rank{'s' * (n > 1)} {turn.words(turn(n, t))} measured"
                     + (f", {turn.words(turn(n, predicted[n]))} predicted" if n in predicted else "")
                     for n, t in measured.items())
    return Picture(ax.figure, f"{title}, {SHOWS[show]}: {said}.",
                   f"{title}, {SHOWS[show]}: {', '.join(map(str, ranks))} ranks.")


class _Turn:
    """Turns the seconds of n ranks into what is shown, and that into words."""

    def __init__(self, show: str, weak: bool, base: int, seconds: float):
        self.show, self.weak, self.base, self.seconds = show, weak, base, seconds

    def __call__(self, n: int, seconds: float) -> float:
        """Speedup is how much more work a second is done than by one rank, if `base` ranks were ideal."""
        speedup = self.seconds / seconds * (n if self.weak else self.base)
        return {"time": seconds, "speedup": speedup, "efficiency": speedup / n}[self.show]

    def words(self, value: float) -> str:
        if self.show == "time":
            return quantity(value, "s")
        return f"{value:.0%}" if self.show == "efficiency" else f"{quantity(value)}x"


def _check(measured: Mapping[int, float], predicted: Mapping[int, float], show: str) -> None:
    if show not in SHOWS:
        raise ValueError(f"unknown show {show!r}; what can be shown: {', '.join(SHOWS)}")
    if not measured:
        raise ValueError("nothing is measured; give {number of ranks: seconds}")
    for n, seconds in [*measured.items(), *predicted.items()]:
        if n < 1 or not 0 < seconds < float("inf"):
            raise ValueError(f"{n} ranks that take {seconds!r} s cannot be drawn; ranks start at 1, times above 0")
