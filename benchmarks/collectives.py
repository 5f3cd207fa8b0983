"""Our all-reduces, message by message, against torch's own over gloo. Ratios, in one run.

    python benchmarks/collectives.py [--rounds 21] [--ranks 2 4]

All take turns on the same array in the same ranks, so that a busy moment of the machine hits all. A time is that of the
slowest rank, from a barrier on. A ratio below 1 means ours is faster.
"""

import argparse
import os
import statistics
import time
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from disttutor.cluster import Cluster
from disttutor.plans.collectives import ALL_REDUCES
from disttutor.strategies.collectives import all_reduce

SIZES = [2**10, 2**14, 2**17, 2**20, 2**22, 2**24, 2**26]


def timed(rank: int, nbytes: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of an all-reduce of float32 by each algorithm, round by round, on this rank."""
    array = torch.zeros(nbytes // 4)
    calls = {"gloo": dist.all_reduce} | {name: partial(all_reduce, algorithm=name) for name in ALL_REDUCES}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call(array)
    for turn in range(rounds):
        names = list(calls)[turn % len(calls):] + list(calls)[:turn % len(calls)]
        for name in names:
            dist.barrier()
            seconds[name].append(_time(calls[name], array))
    return seconds


def _time(call, array: Tensor) -> float:
    repeats = max(1, min(10, 2**18 // array.nbytes))
    start = time.perf_counter()
    for _ in range(repeats):
        call(array)
    return (time.perf_counter() - start) / repeats


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=21)
    arguments.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    given = arguments.parse_args()
    for ranks in given.ranks:
        print(f"{ranks} ranks, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
              "time as a ratio to gloo's, median (quartiles)")
        print(f"{'size':>8} {'gloo, ms':>9} " + " ".join(f"{name:>18}" for name in ALL_REDUCES))
        with Cluster(ranks, threads=1) as cluster:
            for nbytes in SIZES:
                answers = cluster.run(timed, nbytes, given.rounds)
                slowest = {name: [max(times) for times in zip(*(a[name] for a in answers), strict=True)]
                           for name in answers[0]}
                row = [_ratio(slowest[name], slowest["gloo"]) for name in ALL_REDUCES]
                size = f"{nbytes // 2**20} MiB" if nbytes >= 2**20 else f"{nbytes // 2**10} KiB"
                print(f"{size:>8} {statistics.median(slowest['gloo']) * 1e3:>9.2f} "
                      + " ".join(f"{ratio:>18}" for ratio in row), flush=True)


def _ratio(a: list[float], b: list[float]) -> str:
    """Median of the ratios round by round, and their quartiles."""
    low, middle, high = statistics.quantiles([x / y for x, y in zip(a, b, strict=True)], n=4)
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


if __name__ == "__main__":
    main()
