"""Layers that pass on something else at times: what goes between stages is known, or an error says why not."""

from typing import Any

import pytest
import torch
from test_pipeline_oddities import SGD, D, data, equal_to_one_process, linear
from torch import Tensor, nn

from disttutor.cluster import RankError
from disttutor.models import classification
from disttutor.strategies import Pipeline, Single


class Wide(nn.Module):
    """In training it passes on something else than in evaluation."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, x]) if self.training else x


class Narrow(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:len(x) // 2] * 1.0 if self.training else x * 1.0


def test_shapes_of_training_and_of_evaluation(clusters):
    def make():
        torch.manual_seed(1)
        return nn.Sequential(*linear(8, 8), Wide(), Narrow(), *linear(8, 3))

    equal_to_one_process(clusters, make, ranks=(2,))
    alone = Single(make(), classification, SGD)
    expected = alone.step(data()[0]), alone.evaluate(classification, data()[1])

    def both(rank):
        strategy = Pipeline(make(), classification, SGD, microbatches=1)
        return strategy.step(data()[0]), strategy.evaluate(classification, data()[1])

    assert clusters(2).run(both) == [pytest.approx(expected, abs=1e-12)] * 2


class Twofold(nn.Module):
    """In training it passes on two tensors, in evaluation one."""

    def __init__(self) -> None:
        super().__init__()
        self.side = nn.Linear(8, 8, dtype=D)

    def forward(self, x: Tensor) -> Any:
        return (x, self.side(x)) if self.training else x


class Sum(nn.Module):
    def forward(self, given: Any) -> Tensor:
        return given[0] + given[1] if isinstance(given, tuple) else given * 2


def test_what_passes_in_training_and_in_evaluation_by_turns(clusters):
    def train(kind, **options):
        torch.manual_seed(1)
        strategy = kind(nn.Sequential(*linear(8, 8), Twofold(), Sum(), *linear(8, 3)), classification, SGD, **options)
        return [value for batch in data() for value in (strategy.step(batch), strategy.evaluate(classification, batch))]

    expected = train(Single)
    for n in (2, 4):
        for found in clusters(n).run(lambda rank: train(Pipeline, microbatches=1), timeout=60):
            assert found == pytest.approx(expected, abs=1e-12)


class Picky(nn.Module):
    """Cannot do without numbers at all."""

    def forward(self, x: Tensor) -> Tensor:
        return x * float(x.detach().numpy().max())


def test_the_last_stage_may_ask_for_numbers_as_it_likes(clusters):
    equal_to_one_process(clusters, lambda: (torch.manual_seed(1), nn.Sequential(*linear(8, 8, 8), Picky(),
                                                                                *linear(8, 3)))[1], ranks=(2,))


class Chosen(nn.Module):
    """How many rows it passes on depends on the numbers in them."""

    def forward(self, x: Tensor) -> Tensor:
        return x[x[:, 0] > 0]


class Guessed(nn.Module):
    """A shape that without numbers looks like another."""

    def forward(self, x: Tensor) -> Tensor:
        return x if x.is_meta else x.t().contiguous()


@pytest.mark.parametrize(("layer", "words"), [
    (Chosen, "the shape of what stage 0 passes on must be known before anything is sent, and asked without numbers"),
    (Guessed, r"stage 0 passes on \[\(8, 4\)\] for micro-batch 0, and of an input of this shape \[\(4, 8\)\] was"),
])
def test_shapes_that_nobody_can_know_before(layer, words, clusters):
    def train(rank):
        Pipeline(nn.Sequential(*linear(8, 8), layer(), *linear(8, 8, 3)), classification, SGD).step(data(16)[0])

    with pytest.raises(RankError, match=words):
        clusters(2).run(train, timeout=60)
