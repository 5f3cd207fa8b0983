"""States that do not fit a pipeline, and odd steps that do."""

from functools import partial

import pytest
import torch
from pipeline_situations import Several, mlp, with_ids

from disttutor.cluster import RankError
from disttutor.models import MLP, classification
from disttutor.strategies import Single
from disttutor.strategies.pipeline import Pipeline

SGD = partial(torch.optim.SGD, lr=0.1)
ADAMW = partial(torch.optim.AdamW, lr=0.01)


def batch(n: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(n, 8, generator=g, dtype=torch.float64), torch.randint(0, 3, (n,), generator=g)


def test_states_that_do_not_fit():
    strategy = Pipeline(mlp(), classification, SGD)
    whole = Single(mlp(), classification, SGD).full_state()

    def two_groups(named):
        named = list(named)
        return torch.optim.SGD([{"params": named[:3]}, {"params": named[3:]}], lr=0.1)

    wrong = dict(whole["model"])
    wrong["layers.linear0.bias"] = torch.zeros(1, dtype=torch.float64)
    for state, words in (({}, "it lacks model, optimizer"),
                         (Single(mlp(), classification, ADAMW).full_state(), "the optimizer AdamW, and this strategy"),
                         (Single(MLP([8, 3]), classification, SGD).full_state(), "is of another model: it differs in"),
                         (whole | {"model": wrong}, r"'layers.linear0.bias' is \(1,\) there and \(16,\) here"),
                         (Single(mlp(), classification, two_groups).full_state(),
                          r"of another optimizer: it has parameter groups of \[3, 13\] parameters, .* of \[16\]")):
        with pytest.raises(ValueError, match=words):
            strategy.load_state(state)
    strategy.load_state(whole)


def test_nothing_of_a_state_is_shared():
    strategy = Pipeline(mlp(), classification, ADAMW)
    strategy.step(batch())
    state = strategy.full_state()
    kept = {name: w.clone() for name, w in state["model"].items()}
    moment = state["optimizer"]["state"][0]["exp_avg"].clone()
    strategy.step(batch())
    assert all(torch.equal(state["model"][name], w) for name, w in kept.items())
    assert torch.equal(state["optimizer"]["state"][0]["exp_avg"], moment)


# ------------------------------------------------------------------------------------------------------- odd but sound


def test_no_samples_at_all(clusters):
    """As in one process: no loss, no gradient, nothing moves; the update counts."""
    def train(rank):
        strategy = Pipeline(mlp(), classification, ADAMW)
        before = strategy.full_state()["model"]
        loss = strategy.step(batch(0))
        after = strategy.full_state()["model"]
        return loss, strategy.updates, all(torch.equal(before[n], after[n]) for n in before)

    assert clusters(2).run(train) == [(0.0, 1, True)] * 2


def test_a_wrong_index_is_the_layers_own_error(clusters):
    """What fails inside a layer is said as in one process, by the rank whose layer it is."""
    def train(rank):
        Pipeline(Several(), with_ids, SGD).step((batch()[0], torch.full((12,), 7)))

    with pytest.raises(RankError, match="IndexError: index out of range"):
        clusters(2).run(train, timeout=60)
