"""Slow motion on real ranks: a message takes α + bytes/β, ports carry one at a time, and a pipeline's bubble is that of
its closed form."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from disttutor.cost import simulate
from disttutor.models import MLP, classification
from disttutor.plans import BUBBLES, Device, Link, Machine, StageWork
from disttutor.strategies.groups import group_along
from disttutor.strategies.messages import Messages
from disttutor.strategies.pipeline import Pipeline
from disttutor.traces import SlowMotion, bubble_share, recorder

LINK = Link(0.2, 1e5)                                   # 200 ms, and 10 ms for each 1000 bytes
SLOW = SlowMotion(Machine(Device(100.0), LINK))         # 10 ms a flop


def spans(trace, rank, *kinds):
    return sorted((s for s in trace.of(rank) if s.kind in kinds), key=lambda s: s.place)


def two_messages(rank: int) -> None:
    """Rank 0 sends 10,000 bytes and 5,000 in two parts, and computes beside it for 10 ms; then rank 1 answers."""
    messages, log = Messages(group_along(None, "data")), recorder()
    large, parts = torch.ones(2500), [torch.ones(1000), torch.ones(250)]
    if rank == 0:
        messages.send(large, 1, tag=1, microbatch=0)
        messages.send(parts, 1, tag=2, microbatch=1)
        log.end(log.begin(), "forward", microbatch=0, flops=1.0)
        answer = messages.receive(messages.expect(torch.zeros(250), 1, tag=3), microbatch=2)
        assert all(t.eq(7).all() for t in answer)
    else:
        room = [messages.expect(torch.zeros(2500), 0, tag=1), messages.expect([torch.zeros(1000), torch.zeros(250)], 0,
                                                                             tag=2)]
        for microbatch, expected in enumerate(room):
            messages.receive(expected, microbatch=microbatch)
        messages.send(torch.full((250,), 7.0), 0, tag=3, microbatch=2)
    messages.finish()


def test_messages_take_what_the_link_says_one_after_the_other(clusters):
    trace = clusters(2).run(two_messages, slow_motion=SLOW).trace
    first, second = spans(trace, 0, "send")
    (forward,) = spans(trace, 0, "forward")
    assert first.duration == pytest.approx(0.2 + 0.1, abs=1e-6)
    assert second.duration == pytest.approx(0.2 + 0.05, abs=1e-6)        # two tensors are one message
    assert second.start >= first.end - 1e-9                                 # one port
    assert forward.start < second.start                                     # the rank goes on meanwhile
    one, two = spans(trace, 1, "recv")
    assert one.end >= first.end - 1e-9 and two.end >= second.end - 1e-9     # late perhaps, early never
    (back,), (answer,) = spans(trace, 1, "send"), spans(trace, 0, "recv")
    assert back.start >= two.end - 1e-9 and back.duration == pytest.approx(0.21, abs=1e-6)
    assert answer.end >= back.end - 1e-9
    assert (one.nbytes, two.nbytes, answer.nbytes) == (10_000, 5_000, 1_000)
    recorded = trace.plan(0).check()
    assert recorded.nbytes == (15_000, 1_000) and recorded.messages == (2, 1)


def to_one(rank: int) -> None:
    """Ranks 1 and 2 each send 10,000 bytes to rank 0 at once."""
    messages = Messages(group_along(None, "data"))
    torch.distributed.barrier()
    if rank:
        messages.send(torch.ones(2500), 0, tag=rank, microbatch=rank)
    else:
        room = [messages.expect(torch.zeros(2500), peer, tag=peer) for peer in (1, 2)]
        for microbatch, expected in enumerate(room, 1):
            messages.receive(expected, microbatch=microbatch)
    messages.finish()


def test_what_two_ranks_send_to_one_comes_in_at_its_port_in_turn(clusters):
    trace = clusters(3).run(to_one, slow_motion=SLOW).trace
    first, second = spans(trace, 0, "recv")
    assert second.end - first.end >= 0.3 - 1e-6       # not both at once, though both had crossed by then


def train(rank: int, schedule: str) -> None:
    """Three steps of four equal stages, eight micro-batches of one sample."""
    model = MLP([4, 4, 4, 4, 4, 4, 4, 4, 4], seed=0)
    strategy = Pipeline(model, classification, partial(torch.optim.SGD, lr=0.1), schedule=schedule, microbatches=8,
                        stage_work=StageWork(1.0, 1.0, 1.0), seed=None)
    batch = torch.ones(8, 4), torch.zeros(8, dtype=torch.int64)
    for _ in range(3):
        strategy.step(batch)


@pytest.mark.parametrize(("schedule", "expected"), [("1F1B", 3 / 11), ("ZB-H1", 3 / 27)])
def test_the_bubble_of_a_pipeline_is_its_closed_form(schedule, expected, clusters):
    """4 ranks x 8 micro-batches, F = B = W = 40 ms, from the first forward to the last backward (the update after it
    takes what it takes); the calmest of three steps, as other work on the machine only adds. The bound is generous for
    such work; benchmarks/pipeline.py shows how near it comes."""
    assert BUBBLES[schedule](4, 8, 1, 1, 1).share_of_total == pytest.approx(expected)
    trace = clusters(4).run(train, schedule, slow_motion=SlowMotion(Machine(Device(25.0), Link()))).trace
    alone = replace(trace, spans=tuple(s for s in trace.spans if s.kind.startswith(("forward", "backward"))))
    shares = [bubble_share(alone.only(step)) for step in trace.steps]
    print(f"{schedule}: bubble {min(shares):.4f}, closed form {expected:.4f}, {min(shares) / expected - 1:+.1%}")
    assert min(shares) == pytest.approx(expected, rel=0.1)
    for step in trace.steps:
        assert trace.only(step).makespan >= simulate(trace.plan(step), Machine(Device(25.0), Link())).makespan - 1e-6
