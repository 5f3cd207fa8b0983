"""Objectives and optimizers as people really write them: a pipeline does with them what one process does, or says why
it cannot."""

from functools import partial
from typing import Any

import pytest
import torch
from test_pipeline_oddities import SGD, D, data, equal_to_one_process, plain, trained
from torch import Tensor, nn
from torch.nn import functional as F

from disttutor.cluster import RankError
from disttutor.models import classification
from disttutor.strategies import PipeDream, Pipeline, Single

# ------------------------------------------------------------------------------------------------------- objectives


def denoise(model: nn.Module, batch: Any) -> tuple[Tensor, int]:
    """The noise that the model is given is the noise that it is to find: the first stage's and the last one's."""
    x, _ = batch
    noise = torch.randn_like(x)
    return (model(x + noise) - noise[:, :3]).square().sum(), len(x)


def test_noise_drawn_by_the_objective_is_one_for_all_ranks(clusters):
    equal_to_one_process(clusters, plain, denoise)


def test_noise_in_a_stream_of_mini_batches_is_that_of_one_process(clusters):
    """Of the first mini-batch of each stream, which meets no weights that lack updates."""
    expected = trained(Single, plain, denoise)[0][0]

    def streamed(rank):
        strategy = PipeDream(plain(), denoise, SGD)
        return strategy.stream(data())[0], PipeDream(plain(), denoise, partial(SGD, lr=0.0)).stream(data())

    still = trained(Single, plain, denoise, optimizer=partial(SGD, lr=0.0))[0]
    for first, losses in clusters(3).run(streamed):
        assert first == pytest.approx(expected, abs=1e-12) and losses == pytest.approx(still, abs=1e-12)


def test_an_evaluation_that_draws_is_the_same_on_all_ranks_and_leaves_the_users_numbers_alone(clusters):
    def evaluated(rank):
        torch.manual_seed(rank)
        strategy = Pipeline(plain(), denoise, SGD, seed=3)
        before = torch.get_rng_state()
        value = [strategy.evaluate(denoise, data()[0]) for _ in range(2)]
        strategy.step(data()[0])
        return value, torch.equal(before, torch.get_rng_state())

    (first, same), *others = clusters(3).run(evaluated)
    assert first[0] == first[1] and same and all(other == (first, True) for other in others)


def test_noise_without_a_seed_is_refused(clusters):
    with pytest.raises(RankError, match="draws random numbers for what it gives the model, and seed is None: the"):
        clusters(2).run(lambda rank: trained(Pipeline, plain, denoise, seed=None))
    assert len(trained(Pipeline, plain, denoise, seed=None)[0]) == 3        # one stage: nobody draws apart


def penalised(model: nn.Module, batch: Any) -> tuple[Tensor, int]:
    x, y = batch
    return F.cross_entropy(model(x), y, reduction="sum") + sum(p.square().sum() for p in model.parameters()), len(x)


def scaled(model: nn.Module, batch: Any) -> tuple[Tensor, int]:
    x, y = batch
    return F.cross_entropy(model(x) * model.temperature, y, reduction="sum"), len(x)


def sloped(model: nn.Module, batch: Any) -> tuple[Tensor, int]:
    x = batch[0].clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True, allow_unused=True)
    return slope.square().sum(), len(x)


@pytest.mark.parametrize(("objective", "words"), [
    (penalised, "ValueError: the objective asks the model for its weights, and no rank of a pipeline has them all"),
    (scaled, "AttributeError: the objective asks the model for 'temperature', and no rank of a pipeline has the whole"),
    (sloped, "ValueError: the objective gives the model an input that requires a gradient, which the ranks of a pipel"),
])
def test_objectives_that_want_more_than_a_pipeline_has(objective, words, clusters):
    with pytest.raises(RankError, match=words):
        clusters(2).run(lambda rank: trained(Pipeline, plain, objective), timeout=60)


@pytest.mark.parametrize(("objective", "words"), [
    (lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]), "the objective gave a Tensor; it must give the"),
    (lambda model, batch: None, "the objective gave a NoneType; it must give the sum of the losses and how many"),
    (lambda model, batch: (F.cross_entropy(model(batch[0]), batch[1], reduction="none"), 7),
     r"the objective gave losses of shape \(.,\); it must give their sum, one number"),
])
def test_objectives_that_give_no_sum_and_count(objective, words, clusters):
    strategy = Single(plain(), objective, SGD, accumulate=3)
    for call in (lambda: strategy.step(data()[0]), lambda: strategy.evaluate(objective, data(3)[0])):
        with pytest.raises((TypeError, ValueError), match=words):
            call()
    if "NoneType" not in words:
        with pytest.raises(RankError, match=words):
            clusters(2).run(lambda rank: trained(Pipeline, plain, objective), timeout=60)


def test_the_objective_sees_the_mode_of_the_model(clusters):
    def doubled(model, batch):
        x, y = batch
        x = x if model.training else 2 * x
        out = model(x)
        return F.cross_entropy(out if model.training else out * 3, y, reduction="sum"), len(y)

    expected = Single(plain(), doubled, SGD).evaluate(doubled, data()[0])
    assert clusters(3).run(lambda rank: Pipeline(plain(), doubled, SGD).evaluate(doubled, data()[0])) == [
        pytest.approx(expected, abs=1e-12)] * 3


# ------------------------------------------------------------------------------------------------------- optimizers


@pytest.mark.parametrize("kind", [Single, Pipeline])
def test_steps_that_need_an_argument_are_refused_before_any(kind):
    with pytest.raises(TypeError, match="LBFGS.step needs closure, and a step of training takes the optimizer's step"):
        kind(plain(), classification, torch.optim.LBFGS)
    schedule = "schedule" if kind is Single else "lr_schedule"
    with pytest.raises(TypeError, match="ReduceLROnPlateau.step needs metrics, .* one that goes by the number of"):
        kind(plain(), classification, SGD, **{schedule: torch.optim.lr_scheduler.ReduceLROnPlateau})
    with pytest.raises(TypeError, match="the optimizer that was made is of type list, which has no step"):
        kind(plain(), classification, list)


def without_empty_groups(named: Any) -> torch.optim.Optimizer:
    first, others = ([p for name, p in named if name.startswith("0.") is mine] for mine in (True, False))
    groups = [{"params": first, "lr": 0.5}, {"params": others, "lr": 0.01}]
    return torch.optim.SGD([group for group in groups if group["params"]])


def test_groups_that_some_ranks_do_not_have(clusters):
    """Without a learning-rate schedule they do no harm; one would have another number of rates on each rank."""
    equal_to_one_process(clusters, plain, optimizer=without_empty_groups)
    halved = partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.5)
    with pytest.raises(RankError, match="for the weights of this rank the optimizer has 1 groups, and for those of"):
        clusters(2).run(lambda rank: trained(Pipeline, plain, optimizer=without_empty_groups, lr_schedule=halved))


@pytest.mark.parametrize("optimizer", [
    partial(torch.optim.AdamW, fused=True), partial(torch.optim.AdamW, foreach=True), torch.optim.Adagrad,
    torch.optim.Rprop, torch.optim.ASGD, torch.optim.Adafactor])
def test_optimizers_with_a_state_of_their_own(optimizer, clusters):
    equal_to_one_process(clusters, plain, optimizer=optimizer, ranks=(3,))


def test_sentences_of_ever_other_lengths_do_not_fill_the_memory():
    model = nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 1)).double()
    strategy = Pipeline(model, lambda m, x: (m(x).sum(), len(x)), SGD, schedule="looped BFS", microbatches=1)
    for length in range(1, 400):
        strategy.step(torch.ones(1, length, 1, dtype=D))
    assert len(strategy._plans) < 100 and len(strategy.stages._known) < 300


# ----------------------------------------------------------------------------------------------- streams and states


@pytest.mark.parametrize(("given", "words"), [
    (lambda rank: data(3 + rank), "rank 1 was given 12 samples in 3 micro-batches for its stream after 0 updates, and"),
    (lambda rank: data(4, steps=2 + rank), "rank 1 was given 12 samples in 3 micro-batches for its stream"),
])
def test_streams_that_differ_are_refused_before_a_message_of_another_size_ends_the_process(given, words, clusters):
    with pytest.raises(RankError, match=words):
        clusters(2).run(lambda rank: PipeDream(plain(), classification, SGD).stream(given(rank)), timeout=60)


@pytest.mark.parametrize(("wrong", "words"), [
    ({"updates": "3"}, "this is not the full state of a strategy: its 'updates' is of type str"),
    ({"model": None}, "its 'model' is of type NoneType"),
    ({"optimizer": {}}, "its 'optimizer' is of type dict, and not what full_state"),
])
def test_states_with_something_else_in_them(wrong, words):
    for kind in (Single, Pipeline):
        strategy = kind(plain(), classification, SGD)
        with pytest.raises(ValueError, match=words):
            strategy.load_state(strategy.full_state() | wrong)
