"""Faults of counting that people really met (case numbers as in the collection of cases): samples, tokens,
micro-batches, updates, epochs. Each with its right value worked out by hand, on real ranks."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F
from toys import SGD, STILL, Weights, column, linear

from disttutor.models import MLP, classification
from disttutor.plans import FORMS
from disttutor.strategies import DataParallel, EpochSampler, Single, groups
from disttutor.traces import operations

# --------------------------------------------------------------------------------------------------------- A-06, tokens


def per_token(model, batch):
    """x [B, T] and a mask of the tokens that count."""
    x, valid = batch
    return (model.w * x * valid).sum(), int(valid.sum())


def padded(*rows: tuple[int, float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Micro-batches of one row each: so many tokens that are x, padded to 8."""
    x = torch.stack([torch.full((8,), value, dtype=torch.float64) for _, value in rows])
    return x, torch.stack([torch.arange(8) < tokens for tokens, _ in rows]).double()


def token_gradient(rank, ranks):
    strategy = DataParallel(Weights(1.0), per_token, STILL)
    mine = [padded((2, 1.0)), padded((8, 3.0)), padded((0, 5.0))][rank::ranks]
    loss = strategy.step_local(mine)
    return strategy.model.w.grad.item(), loss


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a06_tokens_count_not_micro_batches(ranks, clusters):
    for gradient, loss in clusters(ranks).run(token_gradient, ranks):
        assert gradient == pytest.approx(2.6, abs=1e-12)      # (2·1 + 8·3)/10, not the mean of means 2.0
        assert loss == pytest.approx(2.6, abs=1e-12)


def test_a06_nothing_valid_anywhere_is_no_nan():
    strategy = Single(Weights(1.0), per_token, SGD)
    assert strategy.step(padded((0, 1.0), (0, 2.0))) == 0.0
    assert strategy.model.w.item() == 1.0


# --------------------------------------------------------------------------------- accumulation


def test_a07_last_group_counts_for_what_it_holds():
    strategy = Single(Weights(0.0), linear, SGD)
    steps = [strategy.step_local(group) for group in groups([column(float(g)) for g in range(1, 8)], 4)]
    assert len(steps) == 2
    assert strategy.model.w.item() == pytest.approx(-0.85, abs=1e-12)      # not -0.70, not -0.25


def mean_of_eight(rank):
    """Two ranks, each four micro-batches in two rounds of two; every gradient 1."""
    strategy = DataParallel(Weights(0.0), linear, STILL)
    strategy.step_local([column(1.0) for _ in range(4)])
    return strategy.model.w.grad.item()


def test_a08_divided_once(clusters):
    assert clusters(2).run(mean_of_eight) == [1.0, 1.0]


def warm_up(rank):
    strategy = DataParallel(Weights(0.0), linear, partial(torch.optim.SGD, lr=1.0), accumulate=2,
                            schedule=partial(torch.optim.lr_scheduler.LambdaLR, lr_lambda=lambda u: min(1.0, u / 10)))
    for group in groups([column(1.0)] * 10, 2):
        strategy.step_local(group)
    return strategy.updates, strategy.optimizer.param_groups[0]["lr"]


def test_a17_schedule_counts_updates(clusters):
    assert clusters(4).run(warm_up) == [(5, pytest.approx(0.5))] * 4




@pytest.mark.parametrize("form", FORMS)
def test_a18_one_exchange_for_three_micro_batches(form, clusters):
    def train(rank):
        strategy = DataParallel(Weights(0.0), linear, STILL, form=form)
        gradients = ((1.0, 2.0, 3.0), (5.0, 6.0, 7.0))[rank]
        strategy.step_local([column(g) for g in gradients])
        return strategy.model.w.grad.item()

    out = clusters(2).run(train, record=True)
    assert out == [4.0, 4.0]                                   # (6 + 18)/6 samples
    assert [operations(out.trace, r, "all_reduce") for r in (0, 1)] == [1, 1]
    assert [operations(out.trace, r, "forward") for r in (0, 1)] == [3, 3]


# ----------------------------------------------------------------------------------------------- data order


def epochs_seen(rank, ranks):
    sampler = EpochSampler(8, 4, seed=0)
    return [[i for indices in sampler for i in indices.tensor_split(ranks)[rank].tolist()] for _ in range(3)]


def test_a09_epochs_differ_and_come_back(clusters):
    runs = [clusters(2).run(epochs_seen, 2) for _ in range(2)]
    assert runs[0] == runs[1]
    rank0, rank1 = runs[0]
    assert len({tuple(epoch) for epoch in rank0}) == 3
    for a, b in zip(rank0, rank1, strict=True):
        assert sorted(a + b) == list(range(8))


def right_answers(rank):
    """Ten samples of which only 0 and 1 are answered right; loss of sample i is i."""
    def right(model, batch):
        return (batch < 2).double().sum(), len(batch)

    def loss(model, batch):
        return batch.sum(), len(batch)

    strategy = DataParallel(Weights(0.0), linear, SGD)
    samples = torch.arange(10, dtype=torch.float64)
    return strategy.evaluate(right, samples), strategy.evaluate(loss, samples, batch_size=2)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a10_no_sample_counts_twice(ranks, clusters):
    assert clusters(ranks).run(right_answers) == [(pytest.approx(0.2), pytest.approx(4.5))] * ranks


# ------------------------------------------------------------------------------------------ sizes and edges


def shares_of_ten(rank):
    seen = []

    def loss(model, batch):
        seen.append(len(batch))
        return linear(model, batch)

    strategy = DataParallel(Weights(0.0), loss, STILL)
    strategy.step(torch.arange(10, dtype=torch.float64))
    return seen[0], strategy.model.w.grad.item()


def test_a24_ten_samples_on_four_ranks(clusters):
    out = clusters(4).run(shares_of_ten)
    assert [size for size, _ in out] == [3, 3, 2, 2]
    assert [gradient for _, gradient in out] == [pytest.approx(4.5, abs=1e-12)] * 4


@pytest.mark.parametrize("make", [Single, *(partial(DataParallel, form=form) for form in FORMS)])
def test_a26_one_rank_without_a_group_is_plain_training_to_the_bit(make):
    x = torch.randn(12, 8, generator=torch.Generator().manual_seed(1))
    y = torch.arange(12) % 3
    plain = MLP([8, 16, 3], seed=0)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=0.01)
    strategy = make(MLP([8, 16, 3], seed=0), classification, partial(torch.optim.AdamW, lr=0.01))
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(plain(x), y)
        loss.backward()
        optimizer.step()
        assert strategy.step((x, y)) == pytest.approx(loss.item(), rel=1e-6)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), strategy.model.parameters(), strict=True))
