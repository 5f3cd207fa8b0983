"""What goes wrong when ranks, states or settings do not fit together: each is said, on the rank, in a sentence; nothing
hangs and nothing diverges in silence."""

from functools import partial

import pytest
import torch
from torch import nn
from toys import differently_made

from disttutor.cluster import RankError
from disttutor.models import MLP, classification
from disttutor.strategies import DataParallel, EpochSampler, Single, fit, synchronize_batch_norm
from disttutor.strategies.groups import Group
from disttutor.traces import replay

SGD = partial(torch.optim.SGD, lr=0.1)
ADAMW = partial(torch.optim.AdamW, lr=0.01)


def batch(n: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(n, 8, generator=g, dtype=torch.float64), torch.randint(0, 3, (n,), generator=g)


def mlp(**kw) -> nn.Module:
    return MLP([8, 16, 3], seed=0, **kw).double()


# ---------------------------------------------------------------------------------------------- ranks that do not agree


def test_batches_of_different_size(clusters):
    def train(rank):
        DataParallel(mlp(), classification, SGD).step(batch(4 + 2 * rank))

    with pytest.raises(RankError, match=r"rank . was given a batch of . samples, and all 2 ranks together 10: .* "
                                        r"call step_local"):
        clusters(2).run(train)


def test_a_state_loaded_on_one_rank_only(clusters):
    def train(rank):
        strategy = DataParallel(mlp(), classification, SGD)
        strategy.step(batch())
        state = strategy.full_state()
        strategy.step(batch())
        if rank == 0:
            strategy.load_state(state)
        strategy.step(batch())

    with pytest.raises(RankError, match=r"rank . has made . updates, and all 2 ranks together 3: .* on every rank"):
        clusters(2).run(train)


@pytest.mark.parametrize(("differ", "words"), [
    (lambda rank: (MLP([8, 16 + rank, 3]), {}), r"parameter 'layers.linear0.weight': it is .*16, 8.* on rank 0 and "
                                               r".*17, 8.* on rank 1"),
    (lambda rank: (MLP([8, 16, 3]).requires_grad_(rank == 0), {}), "trained'. on rank 0 and .*frozen'. on rank 1"),
    (lambda rank: (MLP([8, 16, 3]), {"bucket_bytes": 1000 + rank}), "bucket_bytes: it is 1000 on rank 0 and 1001"),
    (lambda rank: (MLP([8, 16, 3]), {"accumulate": 1 + rank}), "accumulate: it is 1 on rank 0 and 2 on rank 1"),
    (lambda rank: (MLP([8, 3, 3] if rank else [8, 3]), {}), "linear1.weight': it is missing on rank 0"),
])
def test_models_and_settings_that_differ(differ, words, clusters):
    with pytest.raises(RankError, match=words):
        clusters(2).run(differently_made, DataParallel, differ)


def test_micro_batches_that_ranks_meet_in_must_be_as_many(clusters):
    def train(rank, counts):
        strategy = DataParallel(mlp(batch_norm=True), classification, SGD, sync_batch_norm=True)
        return strategy.step_local([batch(4)] * counts[rank])

    with pytest.raises(RankError, match="number of micro-batches in this step: it is 1 on rank 0 and 2 on rank 1"):
        clusters(2).run(train, (1, 2), timeout=60)
    assert len(set(clusters(2).run(train, (2, 2)))) == 1


# ----------------------------------------------------------------------------------------------------- states and modes


@pytest.mark.parametrize("make", [Single, DataParallel])
def test_a_full_state_is_a_snapshot(make):
    """Going on and coming back gives the very same weights, moments and step counts included."""
    strategy = make(mlp(), classification, ADAMW,
                    schedule=partial(torch.optim.lr_scheduler.LinearLR, start_factor=0.1, total_iters=4))
    strategy.step(batch())
    state = strategy.full_state()
    ends = []
    for _ in range(2):
        for _ in range(3):
            strategy.step(batch())
        ends.append([p.detach().clone() for p in strategy.model.parameters()])
        strategy.load_state(state)
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_states_that_do_not_fit():
    adamw, sgd = Single(mlp(), classification, ADAMW), Single(mlp(), classification, SGD)
    for wrong, words in (({}, "it lacks model, optimizer"), (None, "not the full state"),
                         (adamw.full_state(), "optimizer AdamW, and this strategy has SGD")):
        with pytest.raises(ValueError, match=words):
            sgd.load_state(wrong)
    scheduled = Single(mlp(), classification, SGD,
                       schedule=partial(torch.optim.lr_scheduler.LinearLR, total_iters=4))
    with pytest.raises(ValueError, match="the saved state has none"):
        scheduled.load_state(sgd.full_state())
    with pytest.raises(ValueError, match="this strategy has none"):
        sgd.load_state(scheduled.full_state())
    with pytest.raises(ValueError, match="has shuffle True, this sampler False"):
        EpochSampler(5, 2, shuffle=False).load_state(EpochSampler(5, 2).state())


def test_evaluation_gives_back_every_modules_mode():
    strategy = Single(mlp(batch_norm=True), classification, SGD)
    frozen = next(m for m in strategy.model.modules() if isinstance(m, nn.BatchNorm1d)).eval()
    strategy.evaluate(classification, batch())
    assert strategy.model.training and not frozen.training

    def broken(model, piece):
        raise RuntimeError("measure failed")

    with pytest.raises(RuntimeError, match="measure failed"):
        strategy.evaluate(broken, batch())
    assert strategy.model.training and not frozen.training


def test_no_gradient_is_left_at_an_epochs_end():
    strategy = Single(mlp(), classification, SGD)
    fit(strategy, batch(), EpochSampler(12, 5))
    assert all(p.grad is None for p in strategy.model.parameters())


# -------------------------------------------------------------------------------------------- BatchNorm, sparse, traces


def test_synchronising_keeps_the_module_its_hooks_and_its_class_of_input():
    model, seen = nn.Sequential(nn.BatchNorm1d(3)), []
    norm = model[0]
    norm.register_forward_hook(lambda *_: seen.append("hook"))
    synchronize_batch_norm(model, Group((0,), 0))
    assert model[0] is norm
    model(torch.randn(4, 3))
    assert seen == ["hook"]
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        model(torch.randn(4, 3, 2, 2))


def test_a_batch_norm_with_code_of_its_own_is_refused():
    class Mine(nn.BatchNorm1d):
        pass

    with pytest.raises(ValueError, match="0 is a Mine, which cannot be synchronised; types that work: BatchNorm1d"):
        synchronize_batch_norm(nn.Sequential(Mine(3)), Group((0,), 0))


class TiedTable(nn.Module):
    """A sparse table that is the output layer's weight too: its gradient is dense."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(5, 4, sparse=True)
        self.out = nn.Linear(4, 5, bias=False)
        self.out.weight = self.table.weight
        self.double()

    def forward(self, ids):
        return self.out(self.table(ids).mean(1))


class FunctionalTable(nn.Module):
    """Sparse by use, not by module."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.linspace(-1, 1, 15, dtype=torch.float64).view(5, 3))

    def forward(self, ids):
        return nn.functional.embedding(ids, self.w, sparse=True).sum(1)


@pytest.mark.parametrize("make", [TiedTable, FunctionalTable])
def test_sparse_gradients_that_no_module_tells_of(make, clusters):
    data = torch.tensor([[0, 1], [1, 1], [4, 2]]), torch.tensor([0, 1, 2])

    def train(rank):
        strategy = DataParallel(make(), classification, SGD)
        for _ in range(3):
            strategy.step(data)
        return strategy.full_state()["model"]

    single = Single(make(), classification, SGD)
    for _ in range(3):
        single.step(data)
    for state in clusters(2).run(train):
        for k, v in single.model.state_dict().items():
            torch.testing.assert_close(state[k], v, rtol=0, atol=1e-12)


def test_two_strategies_in_one_recorded_run(clusters):
    def train(rank):
        for form in ("end", "overlapped"):
            strategy = DataParallel(mlp(), classification, SGD, form=form)
            for _ in range(2):
                strategy.step(batch())

    trace = clusters(2).run(train, record=True).trace
    assert trace.steps == [0, 1, 2, 3]
    for step in trace.steps:
        trace.plan(step).check()
    assert replay(trace).makespan > 0


# ------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(("settings", "error", "words"), [
    ({"accumulate": 2.5}, TypeError, "accumulate is 2.5 of type float"),
    ({"accumulate": "2"}, TypeError, "accumulate is '2'"),
    ({"accumulate": True}, TypeError, "accumulate is True"),
    ({"accumulate": 0}, ValueError, "accumulate is 0; it must be 1 or more"),
    ({"seed": "a"}, TypeError, "seed is 'a'"),
    ({"autocast": "bfloat16"}, ValueError, "types that work: torch.bfloat16"),
    ({"autocast": torch.float64}, ValueError, "autocast is torch.float64"),
    ({"clip_norm": "1"}, ValueError, "clip_norm is '1'"),
    ({"clip_norm": float("nan")}, ValueError, "clip_norm is nan"),
    ({"bucket_bytes": 1.5}, TypeError, "bucket_bytes is 1.5"),
    ({"bucket_bytes": True}, TypeError, "bucket_bytes is True"),
])
def test_settings_that_cannot_be(settings, error, words):
    with pytest.raises(error, match=words):
        DataParallel(mlp(), classification, SGD, **settings)


def test_other_numbers_that_cannot_be():
    strategy = Single(mlp(), classification, SGD)
    with pytest.raises(ValueError, match="batch_size is 0"):
        strategy.evaluate(classification, batch(), batch_size=0)
    with pytest.raises(TypeError, match="samples is 10.5"):
        EpochSampler(10.5, 2)
    with pytest.raises(TypeError, match="bucket is 0.0"):
        DataParallel(mlp(), classification, SGD).watch(0.0)
    with pytest.raises(ValueError, match="'table' has sparse gradients"):
        Single(nn.ModuleDict({"table": nn.Embedding(3, 2, sparse=True)}), classification, SGD, clip_norm=1.0)
