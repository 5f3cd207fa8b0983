"""What else lesson 08 runs: PipeDream beside the synchronous pipeline, two ranks that wait for each other for ever, the
price of a split backward on so small a network, and layers that see one micro-batch at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from disttutor.cluster import RankError
from disttutor.figures import equality, losses, timeline
from disttutor.labs.data_parallelism import calmest
from disttutor.labs.lab import Lab
from disttutor.labs.page import Table
from disttutor.labs.pipelines import RATE, SAMPLES, Batch, apart, batches, machine_of, network, work
from disttutor.models import classification
from disttutor.plans import Plan, PlanError, Schedule, StageWork, build_schedule, pipeline_step, staleness
from disttutor.strategies import PipeDream, Pipeline, Single, Strategy
from disttutor.traces import SlowMotion, Trace

# ------------------------------------------------------------------------------ whole mini-batches in flight


MINIBATCH = 32                  # samples
DRAWN = 8                       # mini-batches of the stream in slow motion
FORWARD = 0.015                 # seconds of a mini-batch's forward on one stage, modelled
WEIGHTS, LOSS = "distance from one process", "loss"
KINDS = {"PipeDream": PipeDream, "pipeline": Pipeline, "one process": Single}


def weights_after_each(strategy: Strategy) -> list[dict[str, Tensor]]:
    """A list that gets this rank's weights after every update, by name."""
    seen: list[dict[str, Tensor]] = []
    strategy.optimizer.register_step_post_hook(lambda *_: seen.append(
        {name: p.detach().clone() for name, p in strategy.model.named_parameters() if p.numel()}))
    return seen


def train_as(rank: int, kind: str, data: list[Batch], rate: float) -> dict[str, Any]:
    """Train on each mini-batch of `data`: whole ones in a stream (PipeDream), each in 4 micro-batches (pipeline), or
    undivided. Losses, and this rank's weights after every update."""
    optimizer = partial(torch.optim.SGD, lr=rate, momentum=0.9)
    own = {"pipeline": {"microbatches": 4}}.get(kind, {})
    strategy = KINDS[kind](network(8), classification, optimizer, **own)
    history = weights_after_each(strategy)
    found = strategy.stream(data) if kind == "PipeDream" else [strategy.step(batch) for batch in data]
    return {"losses": found, "history": history}


def slow_stream(rank: int, data: list[Batch]) -> None:
    """Some streams of whole mini-batches, for the picture; the first warms up."""
    flops = FORWARD * RATE / MINIBATCH
    strategy = PipeDream(network(8), classification, partial(torch.optim.SGD, lr=0.05),
                         stage_work=StageWork(flops, flops, flops))
    for _ in range(4):
        strategy.stream(data)


@dataclass(frozen=True)
class Streams:
    """A stream in slow motion, and by kind of training the losses and the distance from one process after each
    mini-batch."""

    slow: Trace
    losses: dict[str, list[float]]
    distances: dict[str, list[float]]


def pipedream(ranks: int = 4, minibatches: int = 32) -> Lab:
    """Whole mini-batches in flight: which weights each stage used, and how far that leads from one process."""
    import ipywidgets as w

    controls = {
        "ranks": w.IntSlider(ranks, 1, 4, description="ranks"),
        "minibatches": w.IntSlider(minibatches, 8, 48, step=8, description="mini-batches"),
        "rate": w.SelectionSlider(options=[0.005, 0.01, 0.02, 0.05, 0.1], value=0.05, description="learning rate"),
        "view": w.ToggleButtons(options=[WEIGHTS, LOSS], description="look at", style={"button_width": "auto"}),
    }
    return Lab(controls, _run_streams, _draw_streams, redraw_only={"view"},
               title="PipeDream: whole mini-batches in flight", trace=lambda result, settings: result.slow).show()


def _run_streams(settings: dict[str, Any], run: Callable) -> Streams:
    ranks, data = settings["ranks"], batches(MINIBATCH, settings["minibatches"])
    machine = machine_of({"latency": 1.0, "bandwidth": 50})
    slow = run(slow_stream, data[:DRAWN], ranks=ranks, slow_motion=SlowMotion(machine)).trace
    found = {kind: run(train_as, kind, data, settings["rate"], ranks=1 if kind == "one process" else ranks, threads=1)
             for kind in KINDS}
    whole = {kind: [{name: t for part in parts for name, t in part.items()}
                    for parts in zip(*(answer["history"] for answer in answers), strict=True)]
             for kind, answers in found.items()}
    return Streams(calmest(slow), {kind: answers[0]["losses"] for kind, answers in found.items()},
                   {kind: list(map(apart, whole[kind], whole["one process"])) for kind in ("PipeDream", "pipeline")})


def _draw_streams(result: Streams, settings: dict[str, Any]) -> list[Any]:
    stream, pipeline = result.distances["PipeDream"], result.distances["pipeline"]
    said = "less than 1e-12" if max(pipeline) < 1e-12 else f"{max(pipeline):.0e}"
    chart = (equality(result.distances, eps=["float64"], title="Weights after each mini-batch")
             if settings["view"] == WEIGHTS else
             losses({kind: result.losses[kind] for kind in reversed(KINDS)}, title="Loss of each mini-batch"))
    return [
        timeline(result.slow, title="Whole mini-batches in flight, an update after every backward"),
        versions(result.slow), chart,
        f"After {settings['minibatches']} mini-batches PipeDream's weights are up to {stream[-1]:.1g} away from those "
        f"of one process, and the loss of the last one is {result.losses['PipeDream'][-1]:.2f} instead of "
        f"{result.losses['one process'][-1]:.2f}. The synchronous pipeline's weights were {said} away after every one."]


def versions(trace: Trace) -> Table:
    """Which version of its weights each stage used for a mini-batch (forward and backward), out of what was recorded:
    version v has seen v updates."""
    missed = staleness(trace.plan(trace.steps[0]))
    stages, minibatches = (max(key[i] for key in missed) + 1 for i in (0, 1))
    rows = [[f"stage {stage}", *(m - missed[stage, m] for m in range(minibatches)),
             max(missed[stage, m] for m in range(minibatches))] for stage in range(stages)]
    return Table(["mini-batch", *range(minibatches), "updates missing"], rows,
                 caption="Version of its weights that each stage used, as recorded: version v has seen v updates. One "
                         "process would use version m for mini-batch m.")


# ------------------------------------------------------------------------------------ two ranks that wait


LINE = 108                      # letters


def by_blocking_calls(rank: int, plan: Plan, nbytes: int, blocking: bool) -> int:
    """Carry out the messages of a pipeline's plan with `dist.send`, which returns when the other rank has taken the
    message, or with `dist.isend`, which returns at once. Says where it is; returns how many it has passed."""
    passed, leaving = 0, []
    for op in plan.ops[rank]:
        print(op.label, flush=True)
        content = torch.zeros(nbytes, dtype=torch.uint8)
        if op.kind == "recv":
            dist.recv(content, op.peer)
        elif op.kind == "send" and blocking:
            dist.send(content, op.peer)
        elif op.kind == "send":
            leaving.append(dist.isend(content, op.peer))
        passed += op.kind in ("send", "recv")
    for message in leaving:
        message.wait()
    return passed


def two_wait(run: Callable, *, blocking: bool, microbatches: int = 4, seconds: float = 2.5) -> str:
    """1F1B of two stages on real ranks, its messages of 8 MB sent with calls that block or do not: what came of it."""
    plan = pipeline_step(build_schedule("1F1B", 2, microbatches))
    at: dict[int, str] = {}

    def listen(rank: int | None, text: str) -> None:
        if rank is not None and text.strip():
            at[rank] = text.strip().splitlines()[-1]

    try:
        passed = run(by_blocking_calls, plan, 8_000_000, blocking, ranks=2, timeout=seconds if blocking else 60.0,
                     output=listen)
    except RankError as error:
        if error.kind != "timeout":
            raise
        return "\n".join([str(error).splitlines()[0], *(f"  rank {rank} stands at: {at[rank]}" for rank in sorted(at))])
    return f"both ranks came to their end, after {passed[0]} messages each"


def faults(schedule: Schedule, **how: Any) -> str:
    """What `check` says against the plan of a schedule, a line or more for each fault."""
    try:
        pipeline_step(schedule).check(**how)
    except PlanError as error:
        return "\n".join(fill(fault, LINE, initial_indent="  ", subsequent_indent="    ") for fault in error.faults)
    return "  nothing"


# ------------------------------------------------------------------------- the price of two halves, here


def steps_as_they_run(rank: int, data: list[Batch], schedule: str) -> None:
    """A step on each batch, with nothing stretched."""
    strategy = Pipeline(network(), classification, partial(torch.optim.SGD, lr=0.05), schedule=schedule,
                        microbatches=8, stage_work=work(0.01, 1))
    for batch in data:
        strategy.step(batch)


def price_of_splitting(run: Callable, ranks: int = 2) -> Table:
    """Processor time of one micro-batch on rank 1, with backward whole and in its two halves."""
    kinds = {"F": "forward", "B": "backward", "W": "backward_weight"}
    rows = []
    for schedule in ("1F1B", "ZB-H1"):
        recorded = run(steps_as_they_run, batches(8 * SAMPLES, 6), schedule, ranks=ranks, record=True).trace
        spans = list(recorded.only(*range(1, 6)).of(1))                 # without the first step, which loads things
        taken = {letter: [s.cpu for s in spans if s.kind == kind] for letter, kind in kinds.items()}
        rows.append([schedule, *(f"{1e3 * min(some):.2f} ms" if some else "in B" for some in taken.values()),
                     f"{1e3 * sum(min(some) for some in taken.values() if some):.2f} ms"])
    return Table(["schedule", *kinds, "together"], rows, timed=[1, 2, 3, 4],
                 caption="Processor time of one micro-batch on rank 1, as it ran here: the quickest of 40.")


# ------------------------------------------------------------------------------ layers that are not alone


WAYS = {"one process, undivided": 1, "one process, 4 micro-batches": 1, "4 stages on one rank": 1,
        "4 stages on 4 ranks": 4}                                   # to ranks


def weights_of(rank: int, data: list[Batch], way: str, layers: dict[str, Any]) -> dict[str, Tensor]:
    """All weights after a step on each batch in one of `WAYS`, of a network with `layers` ({"dropout": 0.2}, say)."""
    optimizer, model = partial(torch.optim.SGD, lr=0.05), network(8, **layers)
    if "stages" in way:
        schedule = {"schedule": "looped BFS", "virtual_stages": 4} if WAYS[way] == 1 else {}
        strategy: Strategy = Pipeline(model, classification, optimizer, microbatches=4, **schedule)
    else:
        strategy = Single(model, classification, optimizer, accumulate=1 if "undivided" in way else 4)
    for batch in data:
        strategy.step(batch)
    return strategy.full_state()["model"]


def distances_of(layers: dict[str, Any], run: Callable) -> dict[str, float]:
    """How far the pipeline of 4 ranks is from the other `WAYS` after three batches of 64 digits."""
    data = batches(64)
    found = {way: run(weights_of, data, way, layers, ranks=ranks, threads=1)[0] for way, ranks in WAYS.items()}
    pipeline = found.pop("4 stages on 4 ranks")
    return {way: apart(pipeline, weights) for way, weights in found.items()}
