"""Faults of gradients and state that people really met (case numbers as in the collection of cases): buffers, random
streams, unused and oddly laid out parameters, norms, groups, saved states. Each with its right value by hand, on real
ranks."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from toys import SGD, STILL, Weights, column, linear

from disttutor.cluster import RankError
from disttutor.plans import FORMS, Mesh
from disttutor.strategies import DataParallel, Single, seed_workers
from disttutor.traces import recorder

# ------------------------------------------------------------------------------------------------------ BatchNorm


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(1, momentum=1.0).double()

    def forward(self, x):
        return self.norm(x)


def normed_sum(model, batch):
    return model(batch).sum(), len(batch)


def running_means(rank, sync):
    strategy = DataParallel(Normed(), normed_sum, STILL, sync_batch_norm=sync)
    local = [column(0.0, 2.0), column(4.0, 8.0)][rank][:, None]
    strategy.step_local([local])
    during = strategy.model.norm.running_mean.item()
    answer = strategy.evaluate(normed_sum, torch.full((2, 1), 10.0, dtype=torch.float64))
    return during, strategy.full_state()["model"]["norm.running_mean"].item(), answer


def test_a11_local_statistics_are_rank_0s_before_evaluation(clusters):
    out = clusters(2).run(running_means, False)
    assert [during for during, *_ in out] == [1.0, 6.0]
    assert [saved for _, saved, _ in out] == [1.0, 1.0]
    assert out[0][2] == out[1][2] == pytest.approx(9 / (2 + 1e-5) ** 0.5, abs=1e-12)     # variance of {0, 2} is 2


def test_a11_synchronised_statistics_are_everybodys(clusters):
    out = clusters(2).run(running_means, True)
    variance = ((0 - 3.5) ** 2 + (2 - 3.5) ** 2 + 0.5**2 + 4.5**2) / 3
    for during, saved, answer in out:
        assert during == saved == pytest.approx(3.5, abs=1e-12)
        assert answer == pytest.approx(6.5 / (variance + 1e-5) ** 0.5, abs=1e-12)


# -------------------------------------------------------------------------------------------------------- dropout


def drop(model, batch):
    """Sixteen ones, half of them dropped; what is left stands in the model's `seen`."""
    model.seen = F.dropout(torch.ones(16, dtype=torch.float64), 0.5)
    return (model.w * model.seen.sum()).sum(), len(batch)


def masks(rank):
    strategy = DataParallel(Weights(float(rank + 1)), drop, STILL, seed=0)
    start = strategy.model.w.item()
    seen = []
    for _ in range(2):
        strategy.step_local([column(1.0)])
        seen.append(strategy.model.seen.tolist())
    return start, seen


def test_a12_weights_agree_and_masks_differ(clusters):
    first, again = (clusters(2).run(masks) for _ in range(2))
    assert first == again
    assert [start for start, _ in first] == [1.0, 1.0]
    drawn = [tuple(mask) for _, seen in first for mask in seen]
    assert len(set(drawn)) == 4                               # every rank and every step its own
    assert all(set(mask) == {0.0, 2.0} for mask in drawn)


class Augmented(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return np.random.randint(2**31)


def worker_draws(rank):
    loader = DataLoader(Augmented(), batch_size=1, num_workers=2, worker_init_fn=seed_workers(0, rank),
                        multiprocessing_context="fork")
    return [int(x) for x in loader]


def test_a12_data_workers_draw_differently(clusters):
    first, again = (clusters(2).run(worker_draws) for _ in range(2))
    assert first == again
    assert len({x for rank in first for x in rank}) == 4


# ------------------------------------------------------------------------------------------ gradients


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(torch.ones(1, dtype=torch.float64)) for _ in range(3))


def heads(rank, form):
    def loss(model, batch):
        return ((4 * model.a, 6 * model.b)[rank]).sum(), 1

    strategy = DataParallel(Heads(), loss, partial(torch.optim.SGD, lr=0.1, weight_decay=0.1), form=form)
    strategy.step_local([column(1.0)])
    m = strategy.model
    return m.a.grad.item(), m.b.grad.item(), m.c.grad, m.c.item()


@pytest.mark.parametrize("form", FORMS)
def test_a13_used_on_some_ranks_only(form, clusters):
    assert clusters(2).run(heads, form) == [(2.0, 3.0, None, 1.0)] * 2


def transposed(rank):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(2, 3, dtype=torch.float64).t())

    gradient = torch.tensor([[1.0, 2], [3, 4], [5, 6]], dtype=torch.float64) * (1, 3)[rank]
    strategy = DataParallel(Model(), lambda m, b: ((m.w * gradient).sum(), 1), STILL)
    strategy.step_local([column(1.0)])
    return strategy.model.w.grad.tolist()


def test_a22_transposed_weight(clusters):
    assert clusters(2).run(transposed) == [[[2, 4], [6, 8], [10, 12]]] * 2


def sparse(rank):
    model = nn.Embedding(6, 2, padding_idx=0, sparse=True).double()
    ids = (torch.tensor([0, 0]), torch.tensor([1, 4]))[rank]
    strategy = DataParallel(model, lambda m, b: ((rank + 1) * m(b).sum(), 1), STILL)
    strategy.step_local([ids])
    return strategy.model.weight.grad.to_dense().tolist()


def test_a22_sparse_rows(clusters):
    half = [1.0, 1.0]                                          # rank 1's gradient is 2
    assert clusters(2).run(sparse) == [[[0, 0], half, [0, 0], [0, 0], half, [0, 0]]] * 2


def penalised(rank):
    def loss(model, batch):
        x = batch.clone().requires_grad_()
        (slope,) = torch.autograd.grad((model.w * x * x).sum(), x, create_graph=True)
        return slope.square().sum(), len(batch)

    strategy = DataParallel(Weights(3.0), loss, STILL)
    strategy.step_local([column((1.0, 2.0)[rank])])
    return strategy.model.w.grad.item()


def test_a23_gradient_of_a_gradient(clusters):
    assert clusters(2).run(penalised) == [60.0, 60.0]          # (24 + 96)/2


# ------------------------------------------------------------------- norms, groups, saved state


def clipped(rank):
    """Gradient (3, 4); then one weight used twice, w·w·x, of gradient 12 at w = 2, x = 3."""
    strategy = DataParallel(Weights(0.0, 0.0), linear, STILL, clip_norm=1.0)
    strategy.step_local([torch.tensor([[3.0, 4.0]], dtype=torch.float64)])
    tied = DataParallel(Weights(2.0), lambda m, b: ((m.w * (m.w * b)).sum(), len(b)), SGD, clip_norm=100.0)
    tied.step_local([column(3.0)])
    return strategy.grad_norm, strategy.model.w.grad.tolist(), tied.grad_norm, tied.model.w.item()


def test_a14_a15_norm_of_the_whole_gradient_once(clusters):
    for norm, gradient, tied_norm, w in clusters(2).run(clipped):
        assert norm == 5.0 and gradient == pytest.approx([0.6, 0.8], abs=1e-6)
        assert tied_norm == 12.0 and w == pytest.approx(0.8, abs=1e-12)


def decay_groups(rank):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (nn.Parameter(torch.ones(n, dtype=torch.float64)) for n in (4, 2))

    def optimizer(named):
        (_, a), (_, b) = named
        return torch.optim.AdamW([{"params": [a], "weight_decay": 0.1}, {"params": [b], "weight_decay": 0.0}], lr=0.5)

    strategy = DataParallel(Two(), lambda m, b: (0 * (m.a.sum() + m.b.sum()), 1), optimizer)
    strategy.step_local([column(1.0)])
    return strategy.model.a.tolist(), strategy.model.b.tolist(), len(strategy.full_state()["optimizer"]["param_groups"])


def test_a20_two_groups_stay_two(clusters):
    assert clusters(2).run(decay_groups) == [([pytest.approx(0.95)] * 4, [1.0] * 2, 2)] * 2


def seven(rank, state, batches):
    strategy = DataParallel(Weights(*range(1, 8)), lambda m, b: ((m.w * b).square().sum(), len(b)),
                            partial(torch.optim.Adam, lr=0.1))
    if state:
        strategy.load_state(state)
    for batch in batches:
        strategy.step(batch)
    return strategy.full_state()


@pytest.mark.parametrize("after", [1, 2, 4])
def test_a21_saved_on_three_ranks_loaded_on_another_number(after, clusters):
    batches = list(torch.randn(4, 6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    whole = clusters(1).run(seven, None, batches)[0]
    saved = clusters(3).run(seven, None, batches[:2])[2]
    resumed = clusters(after).run(seven, saved, batches[2:])[0]
    torch.testing.assert_close(resumed["model"], whole["model"], rtol=0, atol=1e-12)
    torch.testing.assert_close(resumed["optimizer"]["state"], whole["optimizer"]["state"], rtol=0, atol=1e-12)
    assert resumed["optimizer"]["state"][0]["step"] == 4 and resumed["updates"] == 4


# ----------------------------------------------------------------------------------------------- what cannot be is said


def test_bad_settings_are_refused_at_once():
    for wrong, words in (({"form": "ring"}, "forms that work: end, bucketed, overlapped"),
                         ({"bucket_bytes": 0}, "greater than 0"), ({"accumulate": 0}, "1 or more"),
                         ({"clip_norm": -1.0}, "greater than 0")):
        with pytest.raises(ValueError, match=words):
            DataParallel(Weights(0.0), linear, SGD, **wrong)
    with pytest.raises(TypeError, match="objective must be callable"):
        Single(Weights(0.0), "mse", SGD)
    with pytest.raises(ValueError, match="at least one micro-batch"):
        Single(Weights(0.0), linear, SGD).step_local([])
    with pytest.raises(ValueError, match="same number of samples"):
        Single(Weights(0.0), linear, SGD).step((torch.ones(3), torch.ones(4)))
    with pytest.raises(TypeError, match="dict of them, not str"):
        Single(Weights(0.0), linear, SGD).step("batch")


def test_a_mesh_that_does_not_fit_is_refused(clusters):
    with pytest.raises(RankError, match="has 3 ranks, but 2 are running"):
        clusters(2).run(lambda rank: DataParallel(Weights(0.0), linear, SGD, mesh=Mesh(data=3)))


def test_nothing_is_recorded_unless_asked():
    assert not recorder().recording
