"""What a message costs on this machine: α and β of lesson 02, measured by sending messages there and back.

Between two ranks, in two ways: through the network's loopback (gloo), which is how the collectives of this course send,
and through memory that both ranks share.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist

from disttutor.figures import sizes
from disttutor.figures.style import quantity
from disttutor.labs.lab import Lab
from disttutor.labs.page import Table, Timed
from disttutor.plans import Link
from disttutor.strategies.groups import group_along
from disttutor.strategies.shared_barrier import Barrier, make_barrier
from disttutor.strategies.shared_segment import Segment

LOOPBACK, SHARED = "loopback network", "shared memory"
SIZES = (8, 64, 512, 4096, 32_768, 262_144, 1_048_576, 4_194_304)       # bytes
REPEATS = 25
LINE = 64                                                               # bytes: a cache line
UNSTEADY = 2.0              # the median of what was measured over the best of it, above which a machine is called busy


@dataclass(frozen=True)
class Fit:
    """α + n/β as it fits measured points (bytes, seconds): the link, and the largest relative distance of a point from
    it, with the size where that is."""

    link: Link
    worst: float
    at: float


def fit(points: Sequence[tuple[float, float]], name: str = "link") -> Fit:
    """α and β such that the sum of squared relative distances is least: a small message counts as much as a large one.

    Neither is below 0; where the points say so (times that fall with size) it is 0, or no limit. Raises ValueError for
    fewer than two sizes.
    """
    if len({n for n, _ in points}) < 2:
        raise ValueError(f"a line through {len(points)} point(s) says nothing; give times of two sizes or more")
    # Least squares of (α + n/β)/t - 1, by hand: two unknowns, a = α and b = 1/β.
    u, v = [1 / t for _, t in points], [n / t for n, t in points]
    uu, uv, vv = (sum(x * y for x, y in zip(*pair, strict=True)) for pair in ((u, u), (u, v), (v, v)))
    det = uu * vv - uv * uv
    a, b = (vv * sum(u) - uv * sum(v)) / det, (uu * sum(v) - uv * sum(u)) / det
    if b <= 0:
        a, b = sum(u) / uu, 0.0
    elif a < 0:
        a, b = 0.0, sum(v) / vv
    link = Link(a, 1 / b if b else float("inf"), name)
    worst, at = max((abs(link.seconds(n) / t - 1), n) for n, t in points)
    return Fit(link, worst, at)


# ---------------------------------------------------------------------------------------------- what the ranks do


def ping_pong(rank: int, repeats: int = REPEATS, nbytes: Sequence[int] = SIZES) -> dict[str, dict[int, list[float]]]:
    """Seconds of one way, for each link and size: half of what a message takes from rank 0 to rank 1 and back.

    The sizes take turns, so that a disturbance hits all of them.
    """
    links = {LOOPBACK: _network(rank), SHARED: _memory(rank, max(nbytes))}
    out: dict[str, dict[int, list[float]]] = {name: {n: [] for n in nbytes} for name in links}
    for attempt in range(-2, repeats):
        for name, there_and_back in links.items():
            for i, n in enumerate((min(nbytes), *nbytes)):
                message = torch.zeros(n, dtype=torch.uint8)
                dist.barrier()
                begun = perf_counter()
                there_and_back(message)
                # The first ones open connections and touch memory, and the first over a link wakes its threads.
                if attempt >= 0 and i > 0:
                    out[name][n].append((perf_counter() - begun) / 2)
    return out


def _network(rank: int) -> Callable[[torch.Tensor], None]:
    def there_and_back(message: torch.Tensor) -> None:
        for sender in (0, 1):
            (dist.isend if rank == sender else dist.irecv)(message, 1 - rank).wait()

    return there_and_back


def _memory(rank: int, most: int) -> Callable[[torch.Tensor], None]:
    """A message is written into the shared memory, both meet, and the other reads it out."""
    group, room = group_along(None, "data"), -(-most // LINE) * LINE
    segment = Segment(group, room + Barrier.room(2))
    barrier = make_barrier(group, segment, room, timeout=60.0)

    def there_and_back(message: torch.Tensor) -> None:
        place = segment.tensor(0, len(message), torch.uint8)
        for sender in (0, 1):
            if rank == sender:
                place.copy_(message)
            barrier.wait()
            if rank != sender:
                message.copy_(place)

    return there_and_back


# ------------------------------------------------------------------------------------------------------- the lab


def message_times(repeats: int = REPEATS) -> Lab:
    """Messages of growing size between two ranks, and the line α + n/β through them."""
    import ipywidgets as w

    controls = {
        "repeats": w.IntSlider(repeats, 3, 101, step=2, description="times each"),
        "most": w.SelectionSlider(options=[(quantity(n, "B"), n) for n in SIZES[3:]], value=SIZES[-1],
                                  description="largest message"),
    }
    return Lab(controls, run_times, draw_times, title="One message between two ranks, there and back").show()


def run_times(settings: dict[str, Any], run: Callable) -> dict[str, dict[int, list[float]]]:
    """What rank 0 measured."""
    chosen = [n for n in SIZES if n <= settings["most"]]
    return run(ping_pong, settings["repeats"], chosen, ranks=2, threads=1)[0]


def medians(result: dict[int, list[float]]) -> list[tuple[int, float]]:
    """Points (bytes, median seconds)."""
    return [(n, median(times)) for n, times in result.items()]


def draw_times(result: dict[str, dict[int, list[float]]], settings: dict[str, Any]) -> list[Any]:
    """Medians and the lines through them; α, β and how well they fit; whether the machine was quiet."""
    points = {name: medians(times) for name, times in result.items()}
    fits = {name: fit(some, name) for name, some in points.items()}
    predicted = {name: [(n, f.link.seconds(n)) for n, _ in points[name]] for name, f in fits.items()}
    rows = [[name, quantity(f.link.latency, "s"), *_slope(f.link), f"{f.worst:.0%}, at {quantity(f.at, 'B')}"]
            for name, f in fits.items()]
    return [
        sizes(points, predicted, title=f"One message, one way: medians of {settings['repeats']}, and α + n/β",
              xlabel="size of the message"),
        Table(["link", "α", "β", "α·β: takes as long to begin as to carry", "farthest point from the line"], rows,
              timed=[1, 2, 3, 4]),
        Timed(quietness(result)),
    ]


def _slope(link: Link) -> list[str]:
    """β, and the size that takes as long to begin as to carry; words where no size was large enough to see them."""
    if link.bandwidth == inf:
        return ["not to be seen: all as fast as the smallest", "–"]
    return [quantity(link.bandwidth, "B/s"), quantity(link.latency * link.bandwidth, "B")]


def quietness(result: dict[str, dict[int, list[float]]]) -> str:
    """Whether other work disturbed the measurement, told from how far the median lies above the best."""
    worst = max((median(times) / min(times), name, n) for name, some in result.items() for n, times in some.items())
    ratio, name, n = worst
    where = f"{quantity(n, 'B')} over the {name}"
    if ratio < UNSTEADY:
        return (f"The machine was quiet: no median is more than {ratio:.1f} times the best of its size ({where}).")
    return (f"The machine did other things too: the median of {where} is {ratio:.1f} times the best. A message then "
            "waits until its receiver gets a core, so α is larger than this link's own; run it again when it is quiet.")
