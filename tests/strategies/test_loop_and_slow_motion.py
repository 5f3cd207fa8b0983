"""Training over epochs, stopped and gone on with; and slow motion, which may be late but never early."""

from functools import partial

import pytest
import torch

from disttutor.cost import simulate
from disttutor.models import MLP, accuracy, classification
from disttutor.plans import FORMS, Device, Link, Machine
from disttutor.strategies import DataParallel, EpochSampler, Single, fit
from disttutor.traces import SlowMotion

ADAMW = partial(torch.optim.AdamW, lr=0.01)


def data(n: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(2)
    x = torch.randn(n, 8, generator=g, dtype=torch.float64)
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


def epochs(rank, count, state):
    """`count` epochs of batches of 12 (the last one of 2), with dropout; going on from `state` if given."""
    strategy = DataParallel(MLP([8, 16, 3], seed=0, dropout=0.2).double(), classification, ADAMW)
    sampler = EpochSampler(50, 12, seed=3)
    if state:
        strategy.load_state(state["strategy"])
        sampler.load_state(state["sampler"])
    losses = fit(strategy, data(), sampler, count)
    return {"losses": losses, "accuracy": strategy.evaluate(accuracy, data()),
            "state": {"strategy": strategy.full_state(), "sampler": sampler.state()}}


def test_epochs_stopped_and_gone_on_with(clusters):
    whole = clusters(2).run(epochs, 3, None)
    first = clusters(2).run(epochs, 1, None)
    rest = clusters(2).run(epochs, 2, first[1]["state"])
    assert first[0]["losses"] + rest[0]["losses"] == whole[0]["losses"]
    assert len(whole[0]["losses"]) == 3 * 5
    assert rest[0]["accuracy"] == whole[0]["accuracy"] == whole[1]["accuracy"]
    for a, b in zip(rest[0]["state"]["strategy"]["model"].values(), whole[0]["state"]["strategy"]["model"].values(),
                    strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("ranks", [3, 4])
def test_epochs_without_dropout_are_one_processs(ranks, clusters):
    def train(rank):
        strategy = DataParallel(MLP([8, 16, 3], seed=0).double(), classification, ADAMW)
        return fit(strategy, data(), EpochSampler(50, 12, seed=3), 15), strategy.evaluate(accuracy, data())

    single = Single(MLP([8, 16, 3], seed=0).double(), classification, ADAMW)
    alone = fit(single, data(), EpochSampler(50, 12, seed=3), 15)
    for losses, right in clusters(ranks).run(train):
        assert losses == pytest.approx(alone, abs=1e-12)
        assert right == single.evaluate(accuracy, data())
    assert right > 0.8                                    # it learned


def test_losses_are_told_as_they_come():
    told = []
    fit(Single(MLP([8, 4, 3], seed=0).double(), classification, ADAMW), data(), EpochSampler(50, 25), 1,
        lambda update, loss: told.append((update, loss > 0)))
    assert told == [(1, True), (2, True)]


@pytest.mark.parametrize("form", FORMS)
def test_slow_motion_is_never_early(form, clusters):
    """Each operation lasts at least what the machine's model says, and so does each step."""
    machine = Machine(Device(4e6), Link(0.002, 2e6))

    def train(rank):
        strategy = DataParallel(MLP([8, 16, 16, 3], seed=0).double(), classification, ADAMW, form=form,
                                bucket_bytes=1500)
        for _ in range(2):
            strategy.step(data(12))
        return strategy.plan(12)

    out = clusters(3).run(train, slow_motion=SlowMotion(machine))
    assert out.trace.source == "slow motion"
    predicted = {s.op.key: s for s in simulate(out[0], machine).spans}
    for step in (0, 1):
        for span in out.trace.only(step).spans:
            if span.group:
                least = machine.collective_seconds(span.kind, span.nbytes, 3)
                assert span.end - max(s.start for s in out.trace.only(step).spans
                                      if s.op.subject == span.op.subject and s.group) >= least - 1e-6
            else:
                assert span.duration >= predicted[span.op.key].duration - 1e-6
        assert out.trace.only(step).makespan >= simulate(out[0], machine).makespan - 1e-6


def test_slow_motion_changes_no_number(clusters):
    def train(rank):
        strategy = DataParallel(MLP([8, 16, 3], seed=0).double(), classification, ADAMW)
        return [strategy.step(data(12)) for _ in range(3)]

    slow = SlowMotion(Machine(Device(1e8), Link(0.001, 1e8)))
    assert clusters(2).run(train, slow_motion=slow) == clusters(2).run(train)
