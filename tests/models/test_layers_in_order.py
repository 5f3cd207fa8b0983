"""A model's `layers_in_order()`, one after the other, are the model: same output, every weight once, no copies."""

from functools import partial

import pytest
import torch

from disttutor.models import MLP, SmallCNN, SmallGPT

X, PICTURES = torch.randn(5, 8, dtype=torch.float64), torch.randn(5, 64, dtype=torch.float64)
IDS = torch.randint(0, 11, (5, 6))
CASES = {
    "MLP": (partial(MLP, [8, 16, 12, 3]), X, 3),
    "MLP, batch norm, dropout": (partial(MLP, [8, 16, 12, 3], batch_norm=True, dropout=0.5), X, 3),
    "MLP of one layer": (partial(MLP, [8, 3]), X, 1),
    "MLP, flattening": (partial(MLP, [8, 4, 3]), X.view(5, 2, 4), 2),
    "CNN": (SmallCNN, PICTURES, 3),
    "CNN, dropout, pictures": (partial(SmallCNN, dropout=0.5), PICTURES.view(5, 1, 8, 8), 3),
    "GPT": (partial(SmallGPT, 11, 6, 8, 2, 3), IDS, 5),
    "GPT, untied, dropout": (partial(SmallGPT, 11, 6, 8, 2, 3, tied=False, dropout=0.1), IDS, 5),
    "GPT, shorter than its context": (partial(SmallGPT, 11, 6, 8, 2, 1), IDS[:, :4], 3),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("training", [True, False])
def test_one_after_the_other_they_are_the_model(name, training):
    make, x, layers = CASES[name]
    model, twin = (make(seed=0, dtype=torch.float64).train(training) for _ in range(2))
    parts = twin.layers_in_order()
    assert len(parts) == layers

    def once(run):
        torch.manual_seed(1)                # the same dropout
        return run()

    def in_turn():
        passed = x
        for part in parts:
            passed = part(passed)
        return passed

    expected, found = once(lambda: model(x)), once(in_turn)
    assert torch.equal(expected, found)
    expected.square().sum().backward()
    found.square().sum().backward()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)
    for b, c in zip(model.buffers(), twin.buffers(), strict=True):
        assert torch.equal(b, c)            # batch norm's statistics have seen the batch too


@pytest.mark.parametrize("name", CASES)
def test_they_hold_the_models_own_weights_each_once(name):
    model = CASES[name][0](seed=0)
    parts = model.layers_in_order()
    own = list(map(id, (*model.parameters(), *model.buffers())))
    held = [id(t) for part in parts for t in (*part.parameters(), *part.buffers())]
    tied = name.startswith("GPT") and "untied" not in name
    assert set(held) == set(own)
    assert len(held) == len(own) + tied     # the tied table lies in the first and in the last
    if tied:
        assert held.count(id(model.tokens.weight)) == 2
        assert any(p is model.tokens.weight for p in parts[-1].parameters())


def test_called_again_they_are_the_same_weights():
    model = SmallGPT(11, 6, 8, 2, 2, seed=0)
    first, again = model.layers_in_order(), model.layers_in_order()
    for a, b in zip(first, again, strict=True):
        assert list(map(id, a.parameters())) == list(map(id, b.parameters()))


def test_too_many_tokens_are_refused_there_too():
    with pytest.raises(ValueError, match="7 tokens do not fit this model: its context is 6"):
        SmallGPT(11, 6, 8, 2, 2).layers_in_order()[0](torch.zeros(1, 7, dtype=torch.int64))
