"""A training step of ours against torch's DistributedDataParallel, and what recording it costs. Ratios, in one run.

    python benchmarks/data_parallel.py [--rounds 15]

Both train the same model on the same shares with the same optimizer, turn and turn about in the same ranks, so that a
busy moment of the machine hits both. A ratio below 1 means ours is faster.
"""

import argparse
import statistics
import time
from functools import partial
from itertools import product

import torch
from torch import nn
from torch.distributed import barrier
from torch.nn.parallel import DistributedDataParallel

from disttutor.cluster import Cluster
from disttutor.models import MLP, classification
from disttutor.strategies import DataParallel
from disttutor.traces import recorder, start_recording, stop_recording

SGD = partial(torch.optim.SGD, lr=0.01)
CAPS = 1, 25                # MiB; 25 is what both take unless told otherwise
MODELS = {"MLP, 0.1 M weights": ([64, 256, 256, 10], 128), "MLP, 1.3 M weights": ([64, 1024, 1024, 128, 10], 128),
          "MLP, 12 layers": ([64, *[128] * 11, 10], 128)}
WAYS = "overlapped", "bucketed", "end", "shared memory"      # the last: overlapped too, its sums not by messages


def timed(rank: int, widths: list[int], samples: int, rounds: int, cap: int) -> dict[str, list[float]]:
    """Seconds of a step on this rank, round by round. cap: of a bucket, in MiB."""
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(samples, widths[0], generator=g), torch.randint(0, 10, (samples,), generator=g)
    steps = {}
    for name in WAYS:
        transport, form = ("shared memory", "overlapped") if name == "shared memory" else ("messages", name)
        ours = DataParallel(MLP(widths, seed=0), classification, SGD, form=form, seed=None, bucket_bytes=cap * 2**20,
                            transport=transport)
        steps[name] = partial(ours.step, (x, y))
    steps["DDP"] = _torchs(MLP(widths, seed=0), x, y, cap)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(3):                # DDP remakes its buckets after the first step
            step()
    for turn in range(rounds):
        names = list(steps)[turn % len(steps):] + list(steps)[:turn % len(steps)]
        for name in names:
            barrier()
            start = time.perf_counter()
            for _ in range(5):
                steps[name]()
            seconds[name].append((time.perf_counter() - start) / 5)
    seconds["event"], seconds["events a step"] = _recording(rank, steps["overlapped"])
    return seconds


def _torchs(model: nn.Module, x: torch.Tensor, y: torch.Tensor, cap: int):
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    ddp = DistributedDataParallel(model, bucket_cap_mb=cap)
    optimizer = SGD(model.parameters())
    mine = x.tensor_split(world)[rank], y.tensor_split(world)[rank]

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(mine[0]), mine[1])
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def _recording(rank: int, step, times: int = 2000) -> tuple[list[float], list[float]]:
    """Seconds that an event costs, and how many a step writes down: their product is measured better than the small
    difference of two large times."""
    start_recording(rank)
    step()
    events = len(stop_recording()["events"])
    start_recording(rank)
    log, costs = recorder(), []
    for _ in range(5):
        start = time.perf_counter()
        for m in range(times):
            log.end(log.begin(), "forward", microbatch=m, flops=1.0)
        costs.append((time.perf_counter() - start) / times)
    stop_recording()
    return costs, [events]


def ratio(a: list[float], b: list[float]) -> str:
    """Median of the ratios round by round, and their quartiles."""
    low, middle, high = statistics.quantiles([x / y for x, y in zip(a, b, strict=True)], n=4)
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=15)
    rounds = arguments.parse_args().rounds
    print(f"{'step time as a ratio, median (quartiles)':<48} {'DDP, ms':>8} "
          + " ".join(f"{way:>18}" for way in WAYS) + f" {'recording':>10}")
    for ranks in (2, 4):
        with Cluster(ranks) as cluster:
            for (name, (widths, samples)), cap in product(MODELS.items(), CAPS):
                seconds = cluster.run(timed, widths, samples, rounds, cap)[0]
                row = [ratio(seconds[form], seconds["DDP"]) for form in WAYS]
                cost = statistics.median(seconds["event"]) * seconds["events a step"][0]
                label = f"{name}, {cap} MiB buckets, {ranks} ranks"
                print(f"{label:<48} {statistics.median(seconds['DDP']) * 1e3:>8.2f} "
                      + " ".join(f"{r:>18}" for r in row)
                      + f" {cost / statistics.median(seconds['overlapped']):>10.1%}", flush=True)


if __name__ == "__main__":
    main()
