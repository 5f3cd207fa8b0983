"""What a pipeline's ranks really did is what its plan said before, operation by operation, in order, to the byte."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from pipeline_situations import GPT, Several, mlp, sentences, tied_ends, with_ids
from situations import ADAMW, SGD

from disttutor.models import classification, next_token
from disttutor.plans import SCHEDULES, Device, Link, Machine
from disttutor.strategies.pipeline import Pipeline
from disttutor.traces import SlowMotion

QUICK = SlowMotion(Machine(Device(1e9), Link(1e-5, 1e9)))       # quicker than the ranks are: it costs no time


def batch(n: int, features: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(n)
    return torch.randn(n, features, generator=g, dtype=torch.float64), torch.randint(0, 3, (n,), generator=g)


# How a strategy is made, and its batches: even, uneven, fewer samples than micro-batches; tied; whole numbers between.
WAYS = {
    "uneven": (partial(Pipeline, objective=classification, optimizer=SGD), mlp, [batch(10), batch(3), batch(12)]),
    "tied, clipped": (partial(Pipeline, objective=classification, optimizer=ADAMW, clip_norm=0.1), tied_ends,
                      [batch(9)]),
    "tokens": (partial(Pipeline, objective=next_token, optimizer=ADAMW), GPT, sentences()[:1]),
    "several tensors": (partial(Pipeline, objective=with_ids, optimizer=SGD), Several, [batch(7)]),
}


def plans_then_steps(rank: int, way: str, schedules: list[str]) -> list:
    """On each rank: each batch's plan before anything is done, then its step."""
    make, model, batches = WAYS[way]
    plans = []
    for schedule in schedules:
        strategy = make(model(), schedule=schedule)
        plans += [strategy.plan(b) for b in batches]
        for b in batches:
            strategy.step(b)
    return plans


def as_done(ops):
    """Without what an operation waits for: of that a recording knows another part than a plan."""
    return [replace(op, after=()) for op in ops]


def same(plans, trace) -> None:
    assert len(plans) == len(trace.steps)
    for step, plan in zip(trace.steps, plans, strict=True):
        recorded = trace.plan(step)
        for rank in range(plan.world_size):
            assert as_done(recorded.ops[rank]) == as_done(plan.ops[rank]), f"{plan.name}: rank {rank}"
        recorded.check()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("way", WAYS)
def test_what_was_recorded_is_what_was_planned(way, ranks, clusters):
    schedules = list(SCHEDULES) if way == "uneven" else ["1F1B", "ZB-V", "interleaved zero bubble"]
    out = clusters(ranks).run(plans_then_steps, way, schedules, record=True)
    assert all(plans == out[0] for plans in out)
    same(out[0], out.trace)


@pytest.mark.parametrize("ranks", [2, 3])
def test_in_slow_motion_too(ranks, clusters):
    for way in ("uneven", "tied, clipped", "several tensors"):
        out = clusters(ranks).run(plans_then_steps, way, ["1F1B", "DualPipeV"], slow_motion=QUICK)
        same(out[0], out.trace)


def test_bytes_by_hand(clusters):
    """At the end five numbers and one for the boundary: 48. Ten samples in 3, 3, 2, 2; behind the fourth of eight
    layers nine numbers of 8 bytes: 72 a sample, both ways."""
    out = clusters(2).run(plans_then_steps, "uneven", ["GPipe"], record=True)
    sent = [[s.nbytes for s in sorted(out.trace.only(0).of(rank), key=lambda s: s.place) if s.kind == "send"]
            for rank in (0, 1)]
    assert sent == [[216, 216, 144, 144]] * 2
    assert out[0][0].check().nbytes == (720 + 48, 720 + 48)

    # Seven samples. Forth: 8 numbers, a whole number and 8 numbers, of 8 bytes each; back without the whole number.
    out = clusters(2).run(plans_then_steps, "several tensors", ["GPipe"], record=True)
    assert out[0][0].check().nbytes == (7 * 136 + 48, 7 * 128 + 48)

    # Two ranks share 64 weights; with a word on whether they were used, that is 65 numbers.
    out = clusters(2).run(plans_then_steps, "tied, clipped", ["GPipe"], record=True)
    reduced = [s.nbytes for s in out.trace.of(1) if s.kind == "all_reduce"]
    assert reduced == [65 * 8, 48]


def test_work_is_that_of_the_stages_weights(clusters):
    """Two operations for each weight and sample in forward, four in backward, in two halves if it is cut. The stages
    hold 144 + 204 + 130 + 99 = 577 and 80 + 63 + 48 + 21 = 212 weights."""
    def planned(rank):
        return [Pipeline(mlp(), classification, SGD, schedule=s).plan(batch(4)) for s in ("1F1B", "ZB-H1")]

    whole, halves = clusters(2).run(planned)[0]
    assert [[op.flops for op in ops if op.microbatch == 0 and op.peer is None] for ops in whole.ops] == [
        [2 * 577, 4 * 577], [2 * 212, 4 * 212]]
    assert [op.flops for op in halves.ops[1] if op.microbatch == 0 and op.peer is None] == [424, 424, 424]


def test_evaluation_is_recorded_as_a_step_of_its_own(clusters):
    def measured(rank):
        strategy = Pipeline(mlp(), classification, SGD)
        strategy.evaluate(classification, batch(10), 4)

    trace = clusters(3).run(measured, record=True).trace
    assert trace.steps == [0]
    assert [op.label for op in trace.plan(0).ops[1]] == [
        f"{what} microbatch {m}{whom}" for m in range(3) for what, whom in (
            ("recv boundary 0", " from rank 0"), ("forward stage 1", ""), ("send boundary 1", " to rank 2"))]
