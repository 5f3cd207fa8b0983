"""The parts that strategies are made of, each against a value from elsewhere."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint

from disttutor.cluster import RankError
from disttutor.models import MLP, classification
from disttutor.plans import FORMS, PlanError
from disttutor.strategies import (
    DataParallel,
    EpochSampler,
    Single,
    group_along,
    groups,
    share_sizes,
    split,
    stream_seed,
    synchronize_batch_norm,
)
from disttutor.strategies.collectives import all_reduce

SGD = partial(torch.optim.SGD, lr=0.1)


def batch(n: int = 10, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, 8, generator=g, dtype=torch.float64), torch.randint(0, 3, (n,), generator=g)


def mlp(**kw) -> nn.Module:
    return MLP([8, 16, 16, 3], seed=0, **kw).double()


# ------------------------------------------------------------------------------------------------------------- shares


@given(st.integers(0, 200), st.integers(1, 40))
def test_shares_hold_each_sample_once_and_differ_by_one(samples, parts):
    sizes = share_sizes(samples, parts)
    assert sum(sizes) == samples and len(sizes) == parts
    assert max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)
    pieces = split({"x": torch.arange(samples), "y": (torch.arange(samples),)}, parts)
    assert torch.cat([p["x"] for p in pieces]).tolist() == list(range(samples))
    assert [len(p["y"][0]) for p in pieces] == sizes


@given(st.integers(0, 50), st.integers(1, 9))
def test_groups_lose_nothing(n, k):
    made = list(groups(range(n), k))
    assert [x for g in made for x in g] == list(range(n))
    assert all(len(g) == k for g in made[:-1])


# ------------------------------------------------------------------------------------------------------------ sampler


@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 5))
def test_an_epoch_sees_each_sample_once(samples, size, seed):
    sampler = EpochSampler(samples, size, seed=seed)
    batches = list(sampler)
    assert len(batches) == len(EpochSampler(samples, size))
    assert sorted(torch.cat(batches).tolist()) == list(range(samples))


def test_a_stopped_epoch_goes_on_where_it_was():
    whole = EpochSampler(23, 4, seed=1)
    all_batches = [b.tolist() for _ in range(2) for b in whole]
    first, resumed = EpochSampler(23, 4, seed=1), EpochSampler(23, 4, seed=1)
    seen = [b.tolist() for b, _ in zip(first, range(3), strict=False)][:3]
    # zip drew a fourth batch to see that it was over: a state is that after the last batch handed out
    resumed.load_state({**first.state(), "batch": 3})
    seen += [b.tolist() for _ in range(2) for b in resumed]
    assert seen == all_batches


def test_sampler_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="batch sizes that work: 1 to 5"):
        EpochSampler(5, 6, drop_last=True)
    with pytest.raises(ValueError, match="would not see the same batches"):
        EpochSampler(5, 2, seed=1).load_state(EpochSampler(5, 2, seed=2).state())
    assert [len(b) for b in EpochSampler(5, 2, drop_last=True)] == [2, 2]
    assert torch.cat(list(EpochSampler(5, 2, shuffle=False))).tolist() == [0, 1, 2, 3, 4]


def test_streams_of_different_places_differ():
    assert len({stream_seed(s, u, r) for s in range(9) for u in range(9) for r in range(9)}) == 9**3
    assert stream_seed(1, 23) != stream_seed(12, 3)


# -------------------------------------------------------------------------------------------------------------- plans


def recorded_and_planned(rank, form, accumulate):
    strategy = DataParallel(mlp(), classification, SGD, form=form, bucket_bytes=1500, accumulate=accumulate)
    for _ in range(2):
        strategy.step(batch(12))
    return strategy.plan(12)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_is_recorded_is_the_plan(ranks, form, accumulate, clusters):
    """Kind, order, group, subject and bytes of each operation, and what the exchange and the update waited for."""
    out = clusters(ranks).run(recorded_and_planned, form, accumulate, record=True)
    plan = out[0]
    plan.check()
    for step in (0, 1):
        recorded = out.trace.plan(step)
        recorded.check()
        for mine, planned in zip(recorded.ops, plan.ops, strict=True):
            assert [(op.kind, op.nbytes, op.group, op.subject) for op in mine] == [
                (op.kind, op.nbytes, op.group, op.subject) for op in planned]
            assert set(mine[-1].after) == set(planned[-1].after)
            assert [op.flops for op in mine] == pytest.approx([op.flops for op in planned])


def test_bytes_of_a_step_by_hand(clusters):
    """8·16+16 + 16·16+16 + 16·3+3 = 467 weights in 6 tensors, one bucket, float64: 467 + 6 flags + 4 of the header."""
    def train(rank):
        DataParallel(mlp(), classification, SGD).step(batch())

    trace = clusters(2).run(train, record=True).trace
    assert [s.nbytes for s in trace.spans if s.kind == "all_reduce"] == [(467 + 6 + 4) * 8] * 2


# --------------------------------------------------------------------------------------------------------- collectives


def ring(rank, length):
    group, moments = group_along(None, "data"), []
    buffer = torch.arange(length, dtype=torch.float64) + 1000.0 * rank
    all_reduce(buffer, group, observe=lambda moment: moments.append((moment, buffer.clone())))
    return buffer, moments


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 24])
def test_ring_of_any_length(ranks, length, clusters):
    expected = ranks * torch.arange(length, dtype=torch.float64) + 1000.0 * sum(range(ranks))
    for buffer, moments in clusters(ranks).run(ring, length):
        assert torch.equal(buffer, expected)
        assert len(moments) == 1 + 2 * (ranks - 1)


def watched(rank):
    strategy = DataParallel(mlp(), classification, SGD, bucket_bytes=1500)
    strategy.step(batch())
    strategy.watch(1)
    strategy.step(batch())
    strategy.step(batch())
    return strategy.snapshots, strategy.buckets, strategy.full_state()["model"]


def test_a_watched_bucket_is_exchanged_all_the_same(clusters):
    plain = Single(mlp(), classification, SGD)
    for _ in range(3):
        plain.step(batch())
    out = clusters(3).run(watched)
    for snapshots, buckets, state in out:
        assert [moment for moment, _ in snapshots] == ["before", "reduce-scatter 1 of 2", "reduce-scatter 2 of 2",
                                                       "all-gather 1 of 2", "all-gather 2 of 2"]
        assert len(buckets) > 1 and sum(buckets, []) == [n for n, _ in plain.model.named_parameters()][::-1]
        for k, v in plain.model.state_dict().items():
            torch.testing.assert_close(state[k], v, rtol=0, atol=1e-12)
    before = torch.stack([snapshots[0][1] for snapshots, *_ in out])
    after = [snapshots[-1][1] for snapshots, *_ in out]
    assert not torch.equal(before[0], before[1]) and torch.equal(after[0], after[1])
    torch.testing.assert_close(after[0], before.sum(0), rtol=0, atol=1e-12)


def test_watching_what_is_not_there():
    with pytest.raises(ValueError, match="none on one rank"):
        DataParallel(mlp(), classification, SGD).watch(0)


# ---------------------------------------------------------------------------------------------------------- BatchNorm


def synchronised(rank, make, xs, training):
    model = nn.Sequential(make())
    synchronize_batch_norm(model, group_along(None, "data"))
    model.train(training)
    x = xs[rank].clone().requires_grad_()
    for _ in range(2):
        y = model(x)
        (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)).sum().backward()
    return y.detach(), x.grad, dict(model.state_dict()), model[0].weight is not None and model[0].weight.grad


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("make, shape", [
    (partial(nn.BatchNorm1d, 3, dtype=torch.float64), ()),
    (partial(nn.BatchNorm2d, 3, momentum=None, dtype=torch.float64), (4, 5)),
    (partial(nn.BatchNorm2d, 3, affine=False, dtype=torch.float64), (2, 2)),
    (partial(nn.BatchNorm1d, 3, track_running_stats=False, dtype=torch.float64), (4,)),
])
def test_synchronised_batch_norm_is_torchs_on_the_whole_batch(make, shape, training, clusters):
    """Shares of 5, 2 and 0 samples."""
    g = torch.Generator().manual_seed(0)
    xs = [3 + torch.randn(n, 3, *shape, generator=g, dtype=torch.float64) for n in (5, 2, 0)]
    plain = make().train(training)
    whole = torch.cat(xs).requires_grad_()
    for _ in range(2):
        y = plain(whole)
        weights = [torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x) for x in xs]
        (y * torch.cat(weights)).sum().backward()
    out = clusters(3).run(synchronised, make, xs, training)
    close = partial(torch.testing.assert_close, rtol=0, atol=1e-12)
    close(torch.cat([o[0] for o in out]), y.detach())
    close(torch.cat([o[1] for o in out]), whole.grad)
    for _, _, state, _ in out:
        for k, v in plain.state_dict().items():
            close(state["0." + k], v)
    if plain.weight is not None:
        close(sum(o[3] for o in out), plain.weight.grad)


# ------------------------------------------------------------------------------------------ precision, return, refusal


def autocast_run(rank):
    model = MLP([8, 16, 3], seed=0)
    strategy = DataParallel(model, classification, SGD, autocast=torch.bfloat16)
    x, y = batch(12)
    losses = [strategy.step((x.float(), y)) for _ in range(5)]
    return losses, {p.dtype for p in model.parameters()}


def test_bf16_autocast_equals_one_process_as_far_as_bf16_goes(clusters):
    x, y = batch(12)
    single = Single(MLP([8, 16, 3], seed=0), classification, SGD, autocast=torch.bfloat16)
    alone = [single.step((x.float(), y)) for _ in range(5)]
    full = Single(MLP([8, 16, 3], seed=0), classification, SGD)
    exact = [full.step((x.float(), y)) for _ in range(5)]
    assert alone != exact                                       # autocast did something
    first, again = (clusters(3).run(autocast_run) for _ in range(2))
    assert first == again
    for losses, types in first:
        assert types == {torch.float32}
        assert losses == pytest.approx(alone, abs=2.0**-7)      # bfloat16 keeps 8 bits
        assert losses == first[0][0]


def test_float32_differs_in_the_last_bits_and_comes_back(clusters):
    x, y = batch(64)

    def train(rank):
        strategy = DataParallel(MLP([8, 64, 3], seed=0), classification, SGD)
        for _ in range(10):
            strategy.step((x.float(), y))
        return torch.cat([p.detach().reshape(-1) for p in strategy.model.parameters()])

    runs = {n: clusters(n).run(train)[0] for n in (1, 3, 4)}
    assert torch.equal(runs[3], clusters(3).run(train)[0])
    assert not torch.equal(runs[1], runs[3]) and not torch.equal(runs[3], runs[4])
    assert max(float((runs[1] - runs[n]).abs().max()) for n in (3, 4)) < 1e-5


def test_a_trained_model_comes_home(clusters):
    def train(rank):
        strategy = DataParallel(mlp(batch_norm=True), classification, SGD, sync_batch_norm=True)
        strategy.step(batch())
        return strategy.model

    models = clusters(2).run(train)
    x, _ = batch()
    assert torch.equal(models[0].eval()(x), models[1].eval()(x))
    models[0].train()(x).sum().backward()                       # it works alone, too


class Reentrant(nn.Module):
    """One layer inside two reentrant checkpoints: its gradient arrives twice."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(8, 8).double()

    def forward(self, x):
        for _ in range(2):
            x = checkpoint(self.layer, x.requires_grad_(), use_reentrant=True)
        return x


def test_a_gradient_in_two_parts_is_refused_or_right(clusters):
    def train(rank, form):
        strategy = DataParallel(Reentrant(), classification, SGD, form=form)
        strategy.step(batch())
        return strategy.full_state()["model"]

    plain = Single(Reentrant(), classification, SGD)
    plain.step(batch())
    with pytest.raises(RankError, match="'layer.*' arrived again after its bucket had been sent"):
        clusters(2).run(train, "overlapped")
    for k, v in clusters(2).run(train, "bucketed")[0].items():
        torch.testing.assert_close(v, plain.model.state_dict()[k], rtol=0, atol=1e-12)


def test_a_recorded_plan_that_lost_an_operation_is_refused(clusters):
    plan = clusters(2).run(recorded_and_planned, "bucketed", 1)[0]
    from dataclasses import replace

    broken = replace(plan, ops=(plan.ops[0][:2] + plan.ops[0][3:], plan.ops[1]))
    with pytest.raises(PlanError, match="all_reduce bucket 0 of ranks .0, 1. is not entered by rank 0"):
        broken.check()


def test_batch_norm_of_each_micro_batch_is_recorded_apart(clusters):
    def train(rank):
        strategy = DataParallel(mlp(batch_norm=True), classification, SGD, sync_batch_norm=True, accumulate=2)
        strategy.step(batch(12))

    trace = clusters(2).run(train, record=True).trace
    trace.plan(0).check()
    met = [(s.kind, dict(s.op.subject)) for s in trace.of(0, "comm") if s.op.layer == 0]
    assert met == [("all_gather", {"microbatch": 0, "layer": 0}), ("all_reduce", {"microbatch": 0, "layer": 0}),
                   ("all_gather", {"microbatch": 1, "layer": 0}), ("all_reduce", {"microbatch": 1, "layer": 0})]
    # 16 channels: mean, squares and a count from each rank; two sums a channel, float64
    assert [s.nbytes for s in trace.of(0, "comm") if s.op.layer == 0] == [2 * 33 * 8, 2 * 16 * 8] * 2
