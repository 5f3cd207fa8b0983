"""Faults that people who train in pipelines really met (../shared/cases.md), each with its value by hand."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from toys import column

from disttutor.cluster import RankError
from disttutor.models import classification
from disttutor.plans import PlanError
from disttutor.strategies.messages import Messages
from disttutor.strategies.pipeline import Pipeline
from disttutor.strategies.pipeline_run import PipelineRun

SGD = partial(torch.optim.SGD, lr=0.1)
PLAIN = partial(torch.optim.SGD, lr=1.0)


class Times(nn.Module):
    """w·x, one weight."""

    def __init__(self, w: float):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.w * x


class Plus(nn.Module):
    """x + c·w, where w is 0 at the start: its gradient is c for each sample."""

    def __init__(self, c: float):
        super().__init__()
        self.c, self.w = c, nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.c * self.w


def total(model: nn.Module, batch: Tensor) -> tuple[Tensor, int]:
    """The loss of a sample is what the model gives."""
    return model(batch).sum(), len(batch)


def gradients(strategy: Pipeline) -> list[float]:
    return [p.grad.item() for p in strategy.parameters]


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B", "ZB-H1", "interleaved 1F1B"])
def test_a08_gradients_are_divided_once(schedule, clusters):
    """Eight micro-batches whose gradients are 1 each, in one go, in two halves, or in unequal ones: the mean is 1."""
    def train(rank):
        found = []
        for cut in (8, 4, 3):
            strategy = Pipeline(nn.Sequential(*(Times(1.0) for _ in range(4))), total, PLAIN, schedule=schedule,
                                microbatches=cut)
            strategy.step(torch.ones(8, 1, dtype=torch.float64))
            found += gradients(strategy)
        strategy = Pipeline(nn.Sequential(*(Times(1.0) for _ in range(4))), total, PLAIN, schedule=schedule,
                            microbatches=8)
        for samples in (None, 8):
            strategy.load_state(strategy.full_state() | {"model": {f"{i}.w": column(1.0)[0] for i in range(4)}})
            strategy.step_local([torch.ones(1, 1, dtype=torch.float64)] * 8, samples)
            found += gradients(strategy)
        return found

    for found in clusters(2).run(train):
        assert found == [pytest.approx(1.0, abs=1e-15)] * 10


def test_a14_a_weight_tied_over_stages_is_one_weight(clusters):
    """y = w·(w·x) with w = 2, x = 3: dy/dw = 2wx = 12 on both stages, w = 2 - 0.1·12 = 0.8; it counts once."""
    def train(rank, schedule):
        first, second = Times(2.0), Times(1.0)
        second.w = first.w
        strategy = Pipeline(nn.Sequential(first, second), total, SGD, schedule=schedule, clip_norm=100.0)
        loss = strategy.step(column(3.0)[:, None])
        state = strategy.full_state()
        return (loss, strategy.parameters[0].item(), strategy.grad_norm, strategy.stages.work, len(strategy.parameters),
                {name: w.item() for name, w in state["model"].items()}, state["optimizer"]["param_groups"][0]["params"])

    for schedule in ("1F1B", "ZB-H1"):
        for loss, w, norm, held, own, whole, numbers in clusters(2).run(train, schedule):
            assert (loss, w, norm) == (12.0, pytest.approx(0.8), 12.0)
            assert whole == {"0.w": pytest.approx(0.8), "1.w": pytest.approx(0.8)}
            assert (own, numbers) == (1, [0]) and held == [1, 1]


def test_a15_the_norm_is_that_of_all_stages(clusters):
    """Gradients 3 and 4, one a stage; limit 1: 0.6 and 0.8, and the norm before is 5 on both ranks."""
    def train(rank):
        strategy = Pipeline(nn.Sequential(Plus(3.0), Plus(4.0)), total, PLAIN, clip_norm=1.0)
        strategy.step(torch.zeros(6, 1, dtype=torch.float64))
        weights = strategy.full_state()["model"]
        return gradients(strategy)[0], strategy.grad_norm, weights["0.w"].item(), weights["1.w"].item()

    def about(*values):
        return tuple(pytest.approx(v, abs=1e-6) for v in values)

    assert clusters(2).run(train) == [about(0.6, 5.0, -0.6, -0.8), about(0.8, 5.0, -0.6, -0.8)]


def wide_layers() -> nn.Sequential:
    return nn.Sequential(Times(1.5), Times(-0.5))


def test_a27_one_forward_one_backward_with_8_mb_activations_finishes(clusters):
    """Both ranks send before they receive, four micro-batches of 2^20 numbers. Gradients by hand: the means of the
    inputs' sums, times the other weight."""
    def train(rank):
        x = torch.arange(4.0, dtype=torch.float64)[:, None].expand(4, 2**20)
        strategy = Pipeline(wide_layers(), total, SGD, schedule="1F1B", microbatches=4)
        strategy.step(x)
        return gradients(strategy)[0]

    run = clusters(2).run(train, record=True, timeout=120)
    mean = (0 + 1 + 2 + 3) * 2**20 / 4
    assert run == [pytest.approx(-0.5 * mean), pytest.approx(1.5 * mean)]
    orders = [" ".join(f"{'F' if s.kind == 'forward' else 'B'}{s.op.microbatch}"
                       for s in run.trace.of(rank, "compute") if s.op.microbatch is not None) for rank in (0, 1)]
    assert orders == ["F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"]
    assert {s.nbytes for s in run.trace.spans if s.kind == "send"} == {8 * 2**20}


def order(plan, rank):
    """As planned on rank 1, on rank 0 all receives first."""
    return sorted(plan.ops[rank], key=lambda op: rank == 0 and op.kind != "recv")


def test_a27_a_real_deadlock_ends_at_its_deadline_with_both_positions(clusters):
    """Rank 0 waits for its first gradient before it has sent anything. The check says so; run it all the same."""
    def train(rank):
        strategy = Pipeline(wide_layers(), total, SGD, microbatches=2)
        batch = torch.ones(2, 1, dtype=torch.float64)
        mine = order(strategy.plan(batch), rank)
        run = PipelineRun(strategy.stages, Messages(strategy.pipe), [strategy._shapes_of(batch[:1])] * 2, total,
                          [batch[:1], batch[1:]], divisor=2, surroundings=strategy._surroundings,
                          device=strategy.device)
        run.execute(mine)

    with pytest.raises(RankError) as error:
        clusters(2).run(train, timeout=3)
    message = str(error.value)
    for rank in (0, 1):
        assert f"rank {rank} stood here" in message
    assert message.count("in receive  (messages.py") == 2
    assert clusters(2).run(lambda rank: rank) == [0, 1]         # the next run has new ranks


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B", "ZB-H2", "interleaved 1F1B", "DualPipeV"])
def test_a28_fewer_micro_batches_than_stages(schedule, clusters):
    """Four stages on four ranks, two micro-batches, then one (their times are in tests/plans/test_pipelines.py)."""
    def train(rank):
        found = []
        for cut, samples in ((2, 4), (1, 4), (4, 1)):
            strategy = Pipeline(nn.Sequential(*(Times(1.0) for _ in range(8))), total, PLAIN, schedule=schedule,
                                microbatches=cut)
            strategy.step(torch.full((samples, 1), 2.0, dtype=torch.float64))
            found += gradients(strategy)
        return found

    for found in clusters(4).run(train, timeout=60):
        assert set(found) == {2.0}


@pytest.mark.parametrize(("layers", "ranks", "sizes"), [(10, 3, [4, 3, 3]), (7, 2, [4, 3])])
def test_a29_every_layer_lies_on_one_rank(layers, ranks, sizes, clusters):
    def make():
        torch.manual_seed(0)
        return nn.Sequential(*(nn.Linear(4, 4) for _ in range(layers))).double()

    x, y = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), torch.arange(5) % 4

    def train(rank):
        strategy = Pipeline(make(), classification, SGD)
        held, own = [len(stage) for stage in strategy.stages.modules], strategy.stages.own_parameters()
        return held, [name for name, _ in own], strategy.step((x, y))

    expected = nn.functional.cross_entropy(make()(x), y).item()
    out = clusters(ranks).run(train)
    assert [name for _, names, _ in out for name in names] == [n for n, _ in make().named_parameters()]
    for held, _, loss in out:
        assert held == sizes and loss == pytest.approx(expected, abs=1e-12)


def test_a_plan_that_deadlocks_with_blocking_calls_is_known_before(clusters):
    def dry(rank):
        with pytest.raises(PlanError, match="a cycle: rank 0's send boundary 0 microbatch 1 to rank 1 waits for"):
            Pipeline(wide_layers(), total, SGD).plan(torch.ones(4, 1).double()).check(blocking_sends=True)

    clusters(2).run(dry)
