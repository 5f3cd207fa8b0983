"""PipeDream against its own stated recurrence (Narayanan et al. 2019, section 3.3), worked out in one process on plain
torch: the gradient of mini-batch t is taken at the weights that stage s had p-1-s updates ago."""

from functools import partial

import pytest
import torch
from torch import nn

from disttutor.cluster import RankError
from disttutor.models import MLP, SmallGPT, classification, next_token
from disttutor.plans import spans, split_evenly, staleness
from disttutor.strategies import PipeDream, Single

OPTIMIZERS = {"momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9), "AdamW": partial(torch.optim.AdamW, lr=0.01)}
STREAMS = (8, 3, 1)


def model() -> nn.Module:
    return MLP([8, 12, 12, 12, 12, 12, 3], activation="tanh", seed=0, dtype=torch.float64)


def batches(n: int) -> list:
    g = torch.Generator().manual_seed(5)
    return [(torch.randn(5 + i % 3, 8, generator=g, dtype=torch.float64),
             torch.randint(0, 3, (5 + i % 3,), generator=g)) for i in range(n)]


def on_ranks(rank: int, name: str) -> tuple:
    strategy = PipeDream(model(), classification, OPTIMIZERS[name])
    plan = strategy.plan_stream(batches(STREAMS[0]))
    losses = [loss for n in STREAMS for loss in strategy.stream(batches(n))]
    return losses, strategy.full_state(), plan


def recurrence(p: int, name: str) -> tuple[list[float], dict]:
    """Each stage's history of weights; the gradient at a mixture of old versions; each stage's update of its newest."""
    whole, losses = model(), []
    layers = whole.layers_in_order()
    weights = [[w for layer in layers[a:b] for w in layer.parameters()] for a, b in spans(split_evenly(len(layers), p))]
    optimizers = [OPTIMIZERS[name](stage) for stage in weights]

    def put(s, version):
        for w, value in zip(weights[s], version, strict=True):
            w.data.copy_(value)

    for n in STREAMS:
        history = [[[w.detach().clone() for w in stage]] for stage in weights]
        for t, (x, y) in enumerate(batches(n)):
            for s in range(p):
                put(s, history[s][max(0, t - (p - 1 - s))])
            whole.zero_grad()
            loss = nn.functional.cross_entropy(whole(x), y)
            loss.backward()
            losses.append(loss.item())
            for s in range(p):
                put(s, history[s][-1])
                optimizers[s].step()
                history[s].append([w.detach().clone() for w in weights[s]])
    return losses, whole.state_dict()


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_recurrence(ranks, name, clusters):
    losses, weights = recurrence(ranks, name)
    results = clusters(ranks).run(on_ranks, name)
    for found, state, _ in results:
        assert max(abs(a - b) for a, b in zip(found, losses, strict=True)) <= 1e-12
        assert max(float((state["model"][k] - v).abs().max()) for k, v in weights.items()) <= 1e-12
        assert state["updates"] == sum(STREAMS)


def test_one_mini_batch_at_a_time_is_the_training_of_one_process(clusters):
    def one_by_one(rank):
        strategy = PipeDream(model(), classification, OPTIMIZERS["momentum"])
        return [strategy.step(batch) for batch in batches(5)], strategy.full_state()["model"]

    oracle = Single(model(), classification, OPTIMIZERS["momentum"])
    losses = [oracle.step(batch) for batch in batches(5)]
    for found, weights in clusters(3).run(one_by_one):
        assert found == pytest.approx(losses, abs=1e-12)
        assert max(float((weights[k] - v).abs().max()) for k, v in oracle.full_state()["model"].items()) <= 1e-12


def test_what_is_recorded_is_the_plan_and_the_staleness_its_own(clusters):
    results = clusters(3).run(on_ranks, "momentum", record=True)
    plan, recorded = results[0][2], results.trace.plan(0)
    for did, planned in zip(recorded.ops, plan.ops, strict=True):
        assert [(op.key, op.nbytes) for op in did] == [(op.key, op.nbytes) for op in planned]
    assert staleness(recorded) == staleness(plan)
    for (stage, m), missed in staleness(recorded).items():
        assert missed == min(m, 2 - stage)              # p-1-s once the pipeline is full


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: PipeDream(model(), classification, OPTIMIZERS["AdamW"], clip_norm=1.0), ValueError,
     "clip_norm is 1.0: a PipeDream stage updates its weights before"),
    (lambda: PipeDream(model(), classification, OPTIMIZERS["AdamW"], microbatches=4), TypeError,
     "leave out microbatches"),
    (lambda: PipeDream(model(), classification, OPTIMIZERS["AdamW"]).stream([]), ValueError,
     "one or more mini-batches"),
    (lambda: PipeDream(model(), classification, OPTIMIZERS["AdamW"]).step_local(batches(2)), TypeError, "stream"),
])
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_shared_weights_are_refused(clusters):
    def tied(rank):
        try:
            PipeDream(SmallGPT(11, 6, 16, 4, 2, seed=0), next_token, OPTIMIZERS["AdamW"])
        except ValueError as error:
            return str(error)

    assert all("'tokens.weight' lies on several stages" in said for said in clusters(2).run(tied))


def test_a_stage_that_detaches_its_input_is_refused(clusters):
    """In one process the layers before it keep no gradient and do not decay; zeros would make them."""
    def train(rank):
        layers = nn.Linear(8, 8), Detached(8, 3)
        PipeDream(nn.Sequential(*layers).double(), classification, OPTIMIZERS["AdamW"]).stream(batches(3))

    with pytest.raises(RankError, match="stage 1 has no gradient for what it was given .* Pipeline does"):
        clusters(2).run(train, timeout=60)


class Detached(nn.Linear):
    """A layer that lets no gradient pass."""

    def forward(self, x):
        return super().forward(x.detach())
