"""Models as people really write them: a pipeline trains them as one process does, or says before why it cannot."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from disttutor.cluster import RankError
from disttutor.models import classification
from disttutor.strategies import Pipeline, Single

D = torch.float64
SGD = partial(torch.optim.SGD, lr=0.1, momentum=0.9)


def data(n: int = 7, steps: int = 3) -> list[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(5)
    return [(torch.randn(n, 8, generator=g, dtype=D), torch.randint(0, 3, (n,), generator=g)) for _ in range(steps)]


def linear(*sizes: int) -> list[nn.Module]:
    return [nn.Linear(a, b, dtype=D) for a, b in zip(sizes, sizes[1:], strict=False)]


def plain() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(*linear(8, 8), nn.Tanh(), *linear(8, 8), nn.Tanh(), *linear(8, 3))


def trained(kind: type, make: Callable[[], nn.Module], objective: Any = classification, *, prepare: Any = None,
            **options: Any) -> tuple[list[float], dict[str, Tensor]]:
    """Losses and weights after a step on each batch. prepare(step, model) is called before each."""
    strategy = kind(make(), objective, options.pop("optimizer", SGD), **options)
    losses = []
    for step, batch in enumerate(data()):
        if prepare:
            prepare(step, strategy.model)
        losses.append(strategy.step(batch))
    return losses, strategy.full_state()["model"]


def equal_to_one_process(clusters: Any, make: Callable[[], nn.Module], objective: Any = classification, *,
                         ranks: tuple[int, ...] = (2, 3), microbatches: int = 3, **more: Any) -> None:
    losses, weights = trained(Single, make, objective, accumulate=microbatches, **more)
    for n in ranks:
        for schedule in ("1F1B", "ZB-H1"):
            for found, state in clusters(n).run(lambda rank, s=schedule: trained(
                    Pipeline, make, objective, schedule=s, microbatches=microbatches, **more), timeout=60):
                assert found == pytest.approx(losses, abs=1e-12)
                assert state.keys() == weights.keys()
                assert max(float((state[name] - w).abs().max()) for name, w in weights.items()) <= 1e-12


# ----------------------------------------------------------------------------------------------------------- models


class Rewrites(nn.Module):
    """Writes over what it is given, and has no attribute that says so."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(2).relu_()


def rewriting() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(*linear(8, 8), Rewrites(), *linear(8, 8), Rewrites(), *linear(8, 8), Rewrites(),
                         *linear(8, 3))


def test_layers_that_write_over_their_input(clusters):
    equal_to_one_process(clusters, rewriting)


class Kept(nn.Module):
    """Its masks lie in a list in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.masks = {"ours": [torch.tensor([0.5, 1.0] * 4, dtype=D)]}

    def forward(self, x: Tensor) -> Tensor:
        return x * self.masks["ours"][0]


def test_constants_in_lists_and_dictionaries(clusters):
    equal_to_one_process(clusters, lambda: (torch.manual_seed(1), nn.Sequential(
        *linear(8, 8), Kept(), *linear(8, 8, 8), Kept(), *linear(8, 3)))[1])


class Turn(nn.Module):
    """A complex weight times what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, dtype=torch.complex128))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.w


class Measure(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.real + x.imag**2


@pytest.mark.parametrize("clip_norm", [None, 0.1])
def test_complex_numbers_between_stages_and_in_the_norm(clip_norm, clusters):
    equal_to_one_process(clusters, lambda: (torch.manual_seed(1), nn.Sequential(
        *linear(8, 8), Turn(), Turn(), Turn(), Measure(), *linear(8, 3)))[1], clip_norm=clip_norm)


class Conjugate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.conj()


def test_what_is_sent_is_what_a_view_stands_for(clusters):
    """A conjugate is not computed until someone needs it; what lies in memory is something else."""
    equal_to_one_process(clusters, lambda: (torch.manual_seed(1), nn.Sequential(
        *linear(8, 8), Turn(), Conjugate(), Turn(), Conjugate(), Measure(), *linear(8, 3)))[1], ranks=(3, 4))


def test_an_evaluation_in_inference_mode(clusters):
    def evaluated(rank):
        strategy = Pipeline(rewriting(), classification, SGD)
        with torch.inference_mode():
            value = strategy.evaluate(classification, data()[0])
        return value, strategy.step(data()[0])

    expected = Single(rewriting(), classification, SGD).step(data()[0])
    for found in clusters(3).run(evaluated, timeout=60):
        assert found == pytest.approx((expected, expected), abs=1e-12)


class Sentence(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, None]


class First(nn.Module):
    """Takes what an LSTM gives, as a Sequential hands it on: one tuple."""

    def forward(self, given: tuple[Tensor, Any]) -> Tensor:
        return given[0][:, 0]


def recurrent() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(Sentence(), nn.LSTM(8, 8, batch_first=True, dtype=D), First(), nn.Tanh(), *linear(8, 3))


def test_a_sequential_hands_a_tuple_on_as_one(clusters):
    equal_to_one_process(clusters, recurrent, ranks=(2,))
    with pytest.raises(RankError, match="stage 0 passes on a tuple within a tuple; between stages go tensors, or tup"):
        clusters(3).run(lambda rank: trained(Pipeline, recurrent))


class Pack(nn.Module):
    def __init__(self, kind: type) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Tensor) -> Any:
        return self.kind([x])


class Unpack(nn.Module):
    def forward(self, given: Any) -> Tensor:
        return given[0] * 1.0


@pytest.mark.parametrize("kind", [tuple, list])
def test_what_comes_over_a_boundary_is_what_was_given(kind, clusters):
    """A tuple of one tensor is no tensor: its first entry is not the first sample."""
    equal_to_one_process(clusters, lambda: (torch.manual_seed(1), nn.Sequential(
        *linear(8, 8), Pack(kind), Unpack(), *linear(8, 3)))[1], ranks=(2, 3, 4))


class Residual(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :3] + super().forward(x)


def test_a_sequential_with_a_forward_of_its_own_is_not_cut_without_it():
    with pytest.raises(TypeError, match="a Residual has a forward of its own, of which its layers .* know nothing"):
        Pipeline(Residual(*linear(8, 8, 3)), classification, SGD)


def test_running_statistics_in_two_stages_are_refused():
    norm = nn.BatchNorm1d(8, dtype=D)
    model = nn.Sequential(norm, *linear(8, 8), norm, *linear(8, 3))
    with pytest.raises(ValueError, match="'0' is in the stages 0 and 1, and each would have running statistics of its "
                                         "own: make a BatchNorm1d for each"):
        Pipeline(model, classification, SGD, schedule="looped BFS", virtual_stages=2)
    Pipeline(model, classification, SGD)                # in one stage it is as in one process


def test_a_tied_weight_that_thaws_is_added_up(clusters):
    """Frozen at the start, trained from the second step on, frozen again at the third."""
    def make():
        torch.manual_seed(1)
        model = nn.Sequential(*linear(8, 8), nn.Tanh(), *linear(8, 8), nn.Tanh(), *linear(8, 8, 3))
        model[4].weight = model[0].weight
        return model

    def thaw(step, model):
        model[0].weight.requires_grad_(step == 1)

    equal_to_one_process(clusters, make, prepare=thaw)

    def planned(rank):
        strategy, sums = Pipeline(make(), classification, SGD), []
        for trains in (True, False, True):
            strategy.model[0].weight.requires_grad_(trains)
            sums.append(sum(op.kind == "all_reduce" for op in strategy.plan(data()[0]).ops[rank]))
        return sums

    assert clusters(2).run(planned) == [[2, 1, 2]] * 2


def test_weights_that_thaw_on_one_rank_only_are_refused(clusters):
    def train(rank):
        model = nn.Sequential(*linear(8, 8, 8, 8, 3))
        model[2].weight = model[0].weight
        strategy = Pipeline(model, classification, SGD)
        strategy.model[0].weight.requires_grad_(rank == 0)
        strategy.step(data()[0])

    with pytest.raises(RankError, match=r"for something else \(or other weights are frozen here\): a pipeline's"):
        clusters(2).run(train, timeout=60)
