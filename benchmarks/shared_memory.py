"""All-reduce in shared memory against gloo's over the loopback and a plain copy of the same bytes. Ratios, in one run.

    python benchmarks/shared_memory.py [--rounds 7] [--ranks 2 4]

All ways take turns in the same ranks, one thread each, so that a busy moment of the machine hits all. float32, sum.
Ways: gloo; one-shot and two-shot on a tensor of the rank's own, which is copied in and out; in place, on a tensor that
lies in the shared memory; copy: y.copy_(x) on one rank, while the others wait. Bandwidth is the tensor's bytes by time.
"""

import argparse
import os
import statistics
import time

import torch
from torch.distributed import all_reduce, barrier

from disttutor.cluster import Cluster
from disttutor.strategies import SharedMemory, group_along

SIZES = [1 << k for k in (10, 13, 16, 18, 20, 22, 24, 26)]      # bytes
WAYS = ("gloo", "one-shot", "two-shot", "in place", "copy")


def timed(rank: int, rounds: int) -> dict[int, dict[str, list[float]]]:
    """For each size and way, seconds of one all-reduce on this rank, round by round."""
    with SharedMemory(group_along(None, "data"), SIZES[-1]) as shared:
        inside = shared.empty(SIZES[-1] // 4)
        return {size: _timed(rank, rounds, size, shared, inside[:size // 4]) for size in SIZES}


def _timed(rank: int, rounds: int, size: int, shared: SharedMemory, inside: torch.Tensor) -> dict[str, list[float]]:
    own, other = torch.zeros(size // 4), torch.zeros(size // 4)      # zeros: sums of sums do not grow
    inside.zero_()
    actions = dict(zip(WAYS, (
        lambda: all_reduce(own), lambda: shared.all_reduce(own, shots=1), lambda: shared.all_reduce(own, shots=2),
        lambda: shared.all_reduce(inside, shots=2), lambda: other.copy_(own)), strict=True))
    times = {way: max(1 if way == "gloo" else 3, min(10 if way == "gloo" else 200, (1 << 24) // size)) for way in WAYS}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(rounds):
        for way in WAYS[turn % len(WAYS):] + WAYS[:turn % len(WAYS)]:
            barrier()
            if way == "copy" and rank:
                continue
            actions[way]()
            start = time.perf_counter()
            for _ in range(times[way]):
                actions[way]()
            seconds[way].append((time.perf_counter() - start) / times[way])
    return seconds


def duration(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def over(a: list[float], b: list[float]) -> float:
    """Median of the ratios round by round."""
    return statistics.median(x / y for x, y in zip(a, b, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    arguments = parser.parse_args()
    for ranks in arguments.ranks:
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
        with Cluster(ranks, threads=1) as cluster:
            measured = cluster.run(timed, arguments.rounds)[0]
        print(f"\n{ranks} ranks on {os.cpu_count()} cores, load {load:.1f}, medians of {arguments.rounds} rounds")
        print(f"{'size':>9} " + "".join(f"{way:>11}" for way in WAYS)
              + f" | time as a ratio to gloo's: {'one-shot':>8} {'two-shot':>8} {'in place':>8}"
              + f" | bandwidth by the copy's: {'one-shot':>8} {'in place':>8}")
        for size, seconds in measured.items():
            ratios = [over(seconds[way], seconds["gloo"]) for way in WAYS[1:4]]
            shares = [over(seconds["copy"], seconds[way]) for way in ("one-shot", "in place")]
            label = f"{size >> 10} KB" if size < 1 << 20 else f"{size >> 20} MB"
            print(f"{label:>9} " + "".join(f"{duration(statistics.median(seconds[way])):>11}" for way in WAYS)
                  + f" | {'':26} " + " ".join(f"{r:>8.3f}" for r in ratios)
                  + f" | {'':24} " + " ".join(f"{s:>8.0%}" for s in shares), flush=True)


if __name__ == "__main__":
    main()
