"""A pipeline step of ours against torch.distributed.pipelining's; bubbles in slow motion against their closed forms;
what predicting a large pipeline costs.

    python benchmarks/pipeline.py [--rounds 11] [--only torch bubbles simulate]

Against torch: the same stages, micro-batches, data and optimizer, turn and turn about in the same ranks, so that a
busy moment of the machine hits both. A ratio below 1 means ours is faster. Ours also tells every rank the loss and
checks that all were given the same batch, which torch's does not.
"""

import argparse
import os
import statistics
import time
from dataclasses import replace
from functools import partial

import torch
from torch import nn
from torch.distributed import barrier
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from disttutor.cluster import Cluster
from disttutor.cost import simulate
from disttutor.models import MLP, classification
from disttutor.plans import BUBBLES, SCHEDULES, Device, Link, Machine, StageWork, build_schedule, pipeline_step
from disttutor.strategies.pipeline import Pipeline
from disttutor.traces import SlowMotion, Trace, bubble_share

SGD = partial(torch.optim.SGD, lr=0.01)
TORCHS = {"GPipe": (ScheduleGPipe, 1), "1F1B": (Schedule1F1B, 1), "interleaved 1F1B": (ScheduleInterleaved1F1B, 2)}
MODELS = {"width 64, 128 samples": (64, 128), "width 512, 512 samples": (512, 512)}
MICROBATCHES = 8


# ------------------------------------------------------------------------------------------------------- against torch


def model_of(width: int) -> nn.Module:
    """Eight layers, so that four ranks can hold two stages each."""
    return MLP([64, *[width] * 7, 10], seed=0)


def timed(rank: int, width: int, samples: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of a whole step on this rank, round by round: forward, backward, update."""
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(samples, 64, generator=g), torch.randint(0, 10, (samples,), generator=g)
    steps, seconds = {}, {}
    for name in TORCHS:
        ours = Pipeline(model_of(width), classification, SGD, schedule=name, microbatches=MICROBATCHES, seed=None)
        steps[name, "ours"] = partial(ours.step, (x, y))
        steps[name, "torch"] = torchs(name, width, x, y)
    for step in steps.values():
        for _ in range(2):
            step()
    for turn in range(rounds):
        order = list(steps)[turn % len(steps):] + list(steps)[:turn % len(steps)]
        for which in order:
            barrier()
            start = time.perf_counter()
            for _ in range(3):
                steps[which]()
            barrier()                                       # a step is over when it is on every rank
            seconds.setdefault(which, []).append((time.perf_counter() - start) / 3)
    return seconds


def torchs(name: str, width: int, x: torch.Tensor, y: torch.Tensor):
    """A step of torch's own pipeline, with the stages that ours has."""
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    make, held = TORCHS[name]
    layers = model_of(width).layers_in_order()
    number = world * held
    each = -(-len(layers) // number)
    one = torch.empty(len(x) // MICROBATCHES, 64)
    stages = []
    for stage in range(number):
        module = nn.Sequential(*layers[stage * each:(stage + 1) * each])
        given, one = one, torch.empty(len(one), 10 if stage == number - 1 else width, requires_grad=True)
        if stage % world == rank:
            stages.append(PipelineStage(module, stage, number, torch.device("cpu"), input_args=given,
                                        output_args=one))
    schedule = make(stages if held > 1 else stages[0], MICROBATCHES, loss_fn=nn.functional.cross_entropy)
    optimizer = SGD([p for stage in stages for p in stage.submod.parameters()])
    arguments = (x,) if rank == 0 else ()
    more = {"target": y, "losses": []} if rank == world - 1 else {}

    def step() -> None:
        optimizer.zero_grad()
        schedule.step(*arguments, **more)
        optimizer.step()

    return step


def ratio(a: list[float], b: list[float]) -> str:
    """Median of the ratios round by round, and their quartiles."""
    low, middle, high = statistics.quantiles([x / y for x, y in zip(a, b, strict=True)], n=4)
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def against_torch(rounds: int) -> None:
    print(f"{'step time, ours over torch, median (quartiles)':<48} {'torch, ms':>10} {'ratio':>18}")
    for ranks in (2, 4):
        with Cluster(ranks, threads=1) as cluster:
            for label, (width, samples) in MODELS.items():
                seconds = cluster.run(timed, width, samples, rounds)[0]
                for name in TORCHS:
                    ours, theirs = seconds[name, "ours"], seconds[name, "torch"]
                    print(f"{f'{name}, {label}, {ranks} ranks':<48} {statistics.median(theirs) * 1e3:>10.2f} "
                          f"{ratio(ours, theirs):>18}", flush=True)


# ------------------------------------------------------------------------------------------------------------- bubbles


def train(rank: int, schedules: list[str], microbatches: int, steps: int) -> None:
    ranks = torch.distributed.get_world_size()
    batch = torch.ones(microbatches, 4), torch.zeros(microbatches, dtype=torch.int64)
    for name in schedules:
        strategy = Pipeline(MLP([4] * (2 * ranks + 1), seed=0), classification, SGD, schedule=name, seed=None,
                            microbatches=microbatches, stage_work=work_of(name, ranks))
        for _ in range(steps):
            strategy.step(batch)


def work_of(name: str, ranks: int) -> StageWork:
    """F = B = W = 1 for a rank's whole share of the layers."""
    return StageWork(*[1 / len(build_schedule(name, ranks, 1).stages_of[0])] * 3)


def bubbles(steps: int, operation: float = 0.04) -> None:
    """The calmest of some steps; F of a rank's share lasts `operation` seconds. Alone: from the first forward to the
    last backward, which is what the forms are of; whole: up to the weights' update, of which the model knows nothing.
    """
    machine = Machine(Device(1 / operation), Link())
    print(f"\n{'bubble in slow motion':<32} {'closed form':>12} {'predicted':>10} {'alone':>8} {'off by':>8} "
          f"{'whole':>8} {'off by':>8}")
    for ranks, microbatches in ((4, 8), (8, 16)):
        names = list(SCHEDULES)
        if ranks == 8:
            names = [n for n in names if n != "naive"]          # 8 x 16 x 3 x 40 ms a step
        with Cluster(ranks, threads=1) as cluster:
            for name in names:
                trace = cluster.run(train, [name], microbatches, steps, slow_motion=SlowMotion(machine)).trace
                whole = min(bubble_share(trace.only(step)) for step in trace.steps)
                alone = min(bubble_share(alone_of(trace.only(step))) for step in trace.steps)
                plan = pipeline_step(build_schedule(name, ranks, microbatches), work=work_of(name, ranks))
                predicted = bubble_share(simulate(plan, machine))
                form = BUBBLES[name](ranks, microbatches, 1, 1, 1).share_of_total if name in BUBBLES else predicted
                stated = f"{form:.4f}" if name in BUBBLES else "-"
                print(f"{f'{name}, {ranks} x {microbatches}':<32} {stated:>12} {predicted:>10.4f} {alone:>8.4f} "
                      f"{alone / form - 1:>+8.1%} {whole:>8.4f} {whole / form - 1:>+8.1%}", flush=True)


def alone_of(trace: Trace) -> Trace:
    """The pipeline's own work, without the end of the step."""
    return replace(trace, spans=tuple(s for s in trace.spans if s.kind.startswith(("forward", "backward"))))


# ------------------------------------------------------------------------------------------------------------ simulate


def large() -> None:
    machine = Machine(Device(1.0), Link(0.01, 100.0))
    print(f"\n{'simulate 1F1B':<32} {'operations':>12} {'seconds':>10} {'us each':>10}")
    for ranks, microbatches in ((8, 64), (16, 128), (32, 256), (64, 512)):
        plan = pipeline_step(build_schedule("1F1B", ranks, microbatches), boundary_bytes=1)
        best = min(_seconds(lambda plan=plan: simulate(plan, machine)) for _ in range(3))
        print(f"{f'{ranks} stages x {microbatches} micro-batches':<32} {len(plan):>12} {best:>10.2f} "
              f"{best / len(plan) * 1e6:>10.2f}", flush=True)


def _seconds(act) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--steps", type=int, default=2, help="of each slow-motion run, of which the calmest counts")
    arguments.add_argument("--only", nargs="+", choices=("torch", "bubbles", "simulate"),
                           default=["torch", "bubbles", "simulate"])
    options = arguments.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if "torch" in options.only:
        against_torch(options.rounds)
    if "bubbles" in options.only:
        bubbles(options.steps)
    if "simulate" in options.only:
        large()
    print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
