"""Objectives return sums and counts: worked out by hand, and safe where nothing counts."""

import math

import pytest
import torch
from torch import nn

from disttutor.models import IGNORE, MLP, SmallCNN, SmallGPT, accuracy, classification, next_token, regression


class Fixed(nn.Module):
    """Answers with the same logits, whatever is asked."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits, dtype=torch.float64))

    def forward(self, x):
        return self.logits


def test_classification_sums_over_the_samples():
    # softmax of (ln 3, 0) is (3/4, 1/4): losses ln(4/3) for label 0 and ln 4 for label 1
    model = Fixed([[math.log(3), 0.0], [math.log(3), 0.0], [math.log(3), 0.0]])
    total, count = classification(model, (torch.zeros(3, 1), torch.tensor([0, 1, 1])))
    assert total.item() == pytest.approx(math.log(4 / 3) + 2 * math.log(4), abs=1e-12)
    assert count == 3


def test_regression_is_each_samples_mean_square_summed():
    model = Fixed([[1.0, 3.0], [0.0, 0.0]])
    y = torch.tensor([[0.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
    total, count = regression(model, (torch.zeros(2, 1), y))
    assert (total.item(), count) == ((1 + 9) / 2 + 16 / 2, 2)
    assert (total / count).item() == nn.functional.mse_loss(model.logits, y).item()


def test_regression_refuses_targets_that_would_broadcast():
    model = MLP([3, 1])
    with pytest.raises(ValueError, match=r"output is \[4, 1\], the targets are \[4\]"):
        regression(model, (torch.zeros(4, 3), torch.zeros(4)))


def test_next_token_counts_valid_tokens_only():
    model = Fixed([[[math.log(3), 0.0]] * 3, [[math.log(3), 0.0]] * 3])
    targets = torch.tensor([[0, 1, IGNORE], [IGNORE, IGNORE, 1]])
    total, count = next_token(model, (torch.zeros(2, 3), targets))
    assert total.item() == pytest.approx(math.log(4 / 3) + 2 * math.log(4), abs=1e-12)
    assert count == 3
    total.backward()
    assert (model.logits.grad.abs().sum(-1) > 0).tolist() == [[True, True, False], [False, False, True]]


@pytest.mark.parametrize("rows", [2, 0])
def test_nothing_valid_adds_zero_and_stays_part_of_the_graph(rows):
    model = SmallGPT(11, 6, 8, heads=2, layers=1, seed=0)
    ids = torch.zeros(rows, 6, dtype=torch.long)
    total, count = next_token(model, (ids, torch.full((rows, 6), IGNORE)))
    assert (total.item(), count) == (0.0, 0)
    total.backward()
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in model.parameters())


@pytest.mark.parametrize("objective", [classification, regression])
def test_an_empty_share_adds_zero(objective):
    model = MLP([3, 2])
    y = torch.zeros(0, dtype=torch.long) if objective is classification else torch.zeros(0, 2)
    total, count = objective(model, (torch.zeros(0, 3), y))
    assert (total.item(), count) == (0.0, 0)
    total.backward()
    assert all(p.grad is not None and p.grad.abs().sum() == 0 for p in model.parameters())


def test_sums_and_counts_of_shares_add_up_to_the_whole():
    model = MLP([64, 16, 10], seed=0, dtype=torch.float64)
    x = torch.rand(10, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.arange(10)
    whole, count = classification(model, (x, y))
    shares = [classification(model, (x[part], y[part])) for part in (slice(0, 3), slice(3, 10))]
    assert sum(total.item() for total, _ in shares) == pytest.approx(whole.item(), rel=1e-14)
    assert sum(n for _, n in shares) == count == 10


def test_accuracy_counts_what_is_right_of_what_counts():
    model = Fixed([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    y = torch.tensor([1, 1, 1, IGNORE])
    assert accuracy(model, (torch.zeros(4, 1), y)) == (2, 3)


def test_accuracy_evaluates_and_leaves_the_model_as_it_was():
    model = SmallCNN(dropout=0.9, seed=0)
    model.norm1.eval()  # a learner froze this one
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x = torch.rand(20, 64)
    y = torch.arange(20) % 10
    assert accuracy(model, (x, y)) == accuracy(model, (x, y))
    assert (model.training, model.norm1.training, model.norm2.training) == (True, False, True)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
