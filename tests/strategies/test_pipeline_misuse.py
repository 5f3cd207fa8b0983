"""What cannot be a pipeline is said in a sentence (what was given, why not, what works), before anything starts;
nothing hangs, and no process is torn down by a message of another size than it expected."""

from functools import partial

import pytest
import torch
from pipeline_situations import mlp
from torch import nn
from toys import differently_made

from disttutor.cluster import RankError
from disttutor.models import MLP, classification
from disttutor.plans import Action, Mesh, PlanError, Schedule, StageWork, build_schedule
from disttutor.strategies import Single
from disttutor.strategies.pipeline import Pipeline
from disttutor.strategies.pipeline_run import PipelineRun

SGD = partial(torch.optim.SGD, lr=0.1)
ADAMW = partial(torch.optim.AdamW, lr=0.01)


def batch(n: int = 12, features: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(n, features, generator=g, dtype=torch.float64), torch.randint(0, 3, (n,), generator=g)


# ------------------------------------------------------------------------------------------------------------ settings


@pytest.mark.parametrize(("settings", "error", "words"), [
    ({"schedule": "2F2B"}, ValueError, "unknown schedule '2F2B'; schedules that work: naive, GPipe, 1F1B, looped BFS"),
    ({"schedule": "GPipe", "virtual_stages": 2}, ValueError, "GPipe puts 1 stage on each rank, not 2; those that"),
    ({"schedule": "looped BFS", "virtual_stages": 0}, ValueError, "virtual_stages is 0; it must be a whole number"),
    ({"schedule": "looped BFS", "virtual_stages": 9}, ValueError, "8 layers cannot be cut into 9 stages"),
    ({"schedule": build_schedule("GPipe", 2, 4)}, ValueError, "schedule 'GPipe' is for 2 ranks and 4 micro-batches; "
                                                             "here are 1 ranks and 4 micro-batches"),
    ({"schedule": build_schedule("GPipe", 1, 3)}, ValueError, "is for 1 ranks and 3 micro-batches; here are 1 ranks"),
    ({"schedule": 5}, TypeError, "schedule is 5 of type int; it must be a name"),
    ({"schedule": lambda ranks, m: "GPipe"}, TypeError, "gave a str; it must give a Schedule"),
    ({"cut": "in half"}, ValueError, "unknown cut 'in half'; cuts that work: 'evenly', 'by weights'"),
    ({"cut": (4, 4)}, ValueError, "has 2 stages, but the schedule has 1"),
    ({"cut": 3}, TypeError, "cut is 3 of type int; it must be 'evenly', 'by weights', or the number of layers"),
    ({"microbatches": 0}, ValueError, "microbatches is 0; it must be 1 or more"),
    ({"microbatches": 2.0}, TypeError, "microbatches is 2.0 of type float; it must be a whole number"),
    ({"microbatches": True}, TypeError, "microbatches is True"),
    ({"accumulate": 2}, TypeError, "accumulates over its micro-batches: give microbatches instead of accumulate"),
    ({"stage_work": [StageWork()] * 3}, ValueError, "stage_work has 3 entries, but the schedule has 1 stages"),
    ({"stage_work": 3.0}, TypeError, "stage_work is 3.0 of type float; it must be a StageWork or one for each stage"),
    ({"clip_norm": -1.0}, ValueError, "clip_norm is -1.0; it must be a number greater than 0"),
    ({"lr_schedule": "cosine"}, TypeError, "the lr_schedule must be callable, not str"),
    ({"mesh": Mesh(data=1, pipeline=2)}, ValueError, "has 2 ranks, but 1 are running"),
    ({"mesh": Mesh(data=2, pipeline=2)}, ValueError, "needs a mesh with only a pipeline axis, not"),
    ({"form": "end"}, TypeError, "form"),
])
def test_settings_that_cannot_be(settings, error, words):
    with pytest.raises(error, match=words):
        Pipeline(mlp(), classification, SGD, **settings)


def test_objective_and_optimizer_must_be_callable():
    with pytest.raises(TypeError, match="the objective must be callable, not str"):
        Pipeline(mlp(), "mse", SGD)
    with pytest.raises(TypeError, match="the optimizer must be callable, not SGD"):
        model = mlp()
        Pipeline(model, classification, SGD(model.parameters()))


def test_a_model_that_cannot_be_cut():
    with pytest.raises(TypeError, match="a Linear cannot be cut into stages: make it a torch.nn.Sequential"):
        Pipeline(nn.Linear(8, 3), classification, SGD)


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda rank: Pipeline(MLP([8, 4, 3]), classification, SGD), ValueError,
     "2 layers cannot be cut into 3 stages, each with a layer; it works with 1 to 2 stages"),
    (lambda rank: Pipeline(mlp(), classification, SGD, mesh=Mesh(data=3)), ValueError,
     "pipeline parallelism alone needs a mesh with only a pipeline axis, not"),
    (lambda rank: Pipeline(mlp(), classification, SGD, mesh=Mesh(pipeline=4)), ValueError,
     "has 4 ranks, but 3 are running"),
    (lambda rank: Pipeline(mlp(), classification, SGD, schedule=build_schedule("1F1B", 2, 4)), ValueError,
     "schedule '1F1B' is for 2 ranks and 4 micro-batches; here are 3 ranks"),
])
def test_what_does_not_fit_the_number_of_ranks(make, error, words, clusters):
    with pytest.raises(RankError, match=f"{error.__name__}: .*{words}"):
        clusters(3).run(make)


# ------------------------------------------------------------------------------------------------- schedules by hand


def by_hand(*orders: str) -> Schedule:
    """One stage a rank, two micro-batches; an order such as "F0 B0"."""
    kinds = {"F": "forward", "B": "backward"}
    return Schedule("mine", tuple(tuple(Action(kinds[word[0]], rank, int(word[1])) for word in order.split())
                                  for rank, order in enumerate(orders)), tuple((r,) for r in range(len(orders))), 2)


@pytest.mark.parametrize(("orders", "words"), [
    (("F0 F1 B0", "F0 B0 F1 B1"), "stage 0 has no backward of micro-batch 1"),
    (("F0 B0 F1 B1", "F0 F1 B0 B1"), "a cycle: rank 0's recv boundary 0 microbatch 0 from rank 1 waits for rank 1"),
    (("F0 F1 B0 B1", "B0 F0 F1 B1"), "rank 1 does backward stage 1 microbatch 0 before its forward"),
    (("F0 F1 F1 B0 B1", "F0 F1 B0 B1"), "rank 0 does forward stage 0 microbatch 1 2 times"),
])
def test_a_schedule_with_an_error_in_it(orders, words, clusters):
    def train(rank):
        strategy = Pipeline(mlp(), classification, SGD, schedule=by_hand(*orders), microbatches=2)
        strategy.step(batch())

    with pytest.raises(RankError, match=f"PlanError: plan 'mine, 2 ranks, 2 micro-batches' cannot run: .*{words}"):
        clusters(2).run(train, timeout=60)


def test_a_schedule_by_hand_that_is_sound_runs_and_is_one_processs(clusters):
    """Backwards in an order of their own: the gradient is the same."""
    def train(rank):
        strategy = Pipeline(mlp(), classification, SGD, schedule=by_hand("F0 F1 B1 B0", "F0 F1 B1 B0"), microbatches=2)
        strategy.step(batch())
        return strategy.step(batch())

    single = Single(mlp(), classification, SGD)
    single.step(batch())
    assert clusters(2).run(train) == [pytest.approx(single.step(batch()), abs=1e-12)] * 2


def test_a_schedule_by_hand_has_its_number_of_micro_batches(clusters):
    def train(rank, samples):
        strategy = Pipeline(mlp(), classification, SGD, schedule=by_hand("F0 F1 B0 B1", "F0 F1 B0 B1"), microbatches=2)
        return strategy.step(batch(samples))

    assert len(set(clusters(2).run(train, 2))) == 1
    with pytest.raises(RankError, match="is for 2 ranks and 2 micro-batches; here are 2 ranks and 1 micro-batches"):
        clusters(2).run(train, 1)


def test_own_stages_in_the_wrong_order_are_refused_and_not_computed():
    order = tuple(Action(kind, stage, 0) for kind in ("forward", "backward") for stage in (1, 0))
    mine = Schedule("mine", (order,), ((0, 1),), 1)
    strategy = Pipeline(mlp(), classification, SGD, microbatches=1, schedule=mine)
    with pytest.raises(PlanError, match="rank 0 does forward stage 1 microbatch 0 without having done forward stage 0"):
        strategy.step(batch())
    run = PipelineRun(strategy.stages, None, [[]], classification, [batch()], divisor=1,
                      surroundings=strategy._surroundings, device=strategy.device)
    with pytest.raises(KeyError):               # even unchecked, no stage takes the batch for its input
        run.do["forward"](strategy_op(order[0]))


def strategy_op(action: Action):
    from disttutor.plans import Op

    return Op(kind=action.kind, rank=0, stage=action.stage, microbatch=action.microbatch)


# ---------------------------------------------------------------------------------------------------------- objectives


def twice(model, data):
    x, y = data
    return (model(x) + model(x)).sum(), len(y)


def never(model, data):
    return data[0].sum(), len(data[1])


@pytest.mark.parametrize(("objective", "words"), [
    (twice, "the objective calls the model more than once; a pipeline passes each micro-batch through its stages once"),
    (never, "the objective does not call the model: a pipeline cannot see what its first stage is given"),
])
def test_objectives_that_cannot_be(objective, words, clusters):
    with pytest.raises(RankError, match=words):
        clusters(2).run(lambda rank: Pipeline(mlp(), objective, SGD).step(batch()), timeout=60)


# ------------------------------------------------------------------------------------------- ranks that do not agree


@pytest.mark.parametrize(("sizes", "words"), [
    ((8, 12, 12), r"rank 1 was given 12 samples in 4 micro-batches for its step after 0 updates, and rank 0 8 in 4"),
    ((12, 8, 8), r"rank 1 was given 8 samples in 4 micro-batches .* and rank 0 12 in 4"),
    ((12, 12, 3), r"rank 2 was given 3 samples in 3 micro-batches .* and rank 1 12 in 4"),
    ((0, 12, 12), r"rank 1 was given 12 samples in 4 micro-batches .* and rank 0 0 in 0"),
])
def test_batches_of_different_size(sizes, words, clusters):
    def train(rank):
        Pipeline(mlp(), classification, SGD).step(batch(sizes[rank]))

    with pytest.raises(RankError, match=f"{words}.*: a pipeline's ranks take the same batches"):
        clusters(3).run(train, timeout=60)


def test_batches_of_different_size_in_a_later_step(clusters):
    def train(rank):
        strategy = Pipeline(mlp(), classification, SGD)
        for samples in (12, 8, 12 - 4 * rank):
            strategy.step(batch(samples))

    with pytest.raises(RankError, match="rank 1 was given 8 samples in 4 micro-batches for its step after 2 updates"):
        clusters(2).run(train, timeout=60)


def test_sentences_of_different_length(clusters):
    """As many samples, of another shape: layers that take any length would send messages of another size."""
    def train(rank):
        model = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1)).double()
        x = torch.ones(4, 5 + rank, 1, dtype=torch.float64)
        Pipeline(model, lambda m, data: (m(data).sum(), len(data)), SGD).step(x)

    with pytest.raises(RankError, match="and rank 0 4 in 4 after 0, of other shapes or for something else"):
        clusters(2).run(train, timeout=60)


def test_one_rank_evaluates_while_the_other_trains(clusters):
    def train(rank):
        strategy = Pipeline(mlp(), classification, SGD)
        return strategy.step(batch(8)) if rank else strategy.evaluate(classification, batch(8), 2)

    with pytest.raises(RankError, match="for its step .* rank 0 8 in 4 after 0, of other shapes or for something else"):
        clusters(2).run(train, timeout=60)


def test_a_state_loaded_on_one_rank_only(clusters):
    def train(rank):
        strategy = Pipeline(mlp(), classification, SGD)
        strategy.step(batch())
        state = strategy.full_state()
        strategy.step(batch())
        if rank == 0:
            strategy.load_state(state)
        strategy.step(batch())

    with pytest.raises(RankError, match="for its step after 2 updates, and rank 0 12 in 4 after 1"):
        clusters(2).run(train, timeout=60)


@pytest.mark.parametrize(("differ", "words"), [
    (lambda rank: (MLP([8, 16 + rank, 3]), {}), r"parameter 'layers.linear0.weight': it is .*16, 8.* on rank 0 and "
                                               r".*17, 8.* on rank 1"),
    (lambda rank: (MLP([8, 16, 3]).requires_grad_(rank == 0), {}), "trained'. on rank 0 and .*frozen'. on rank 1"),
    (lambda rank: (MLP([8, 16, 3]), {"microbatches": 1 + rank}), "microbatches: it is 1 on rank 0 and 2 on rank 1"),
    (lambda rank: (MLP([8, 16, 3]), {"schedule": ("GPipe", "1F1B")[rank]}), "the schedule: it is GPipe on rank 0"),
    (lambda rank: (MLP([8, 4, 4, 3]), {"cut": (1 + rank, 2 - rank)}), r"cut: it is \[1, 2\] on rank 0 and \[2, 1\]"),
    (lambda rank: (MLP([8, 4, 3]), {"microbatches": 2, "schedule": by_hand(*(
        ("F0 F1 B0 B1", "F0 F1 B0 B1"), ("F0 F1 B0 B1", "F0 B0 F1 B1"))[rank])}),
     "the order of rank 1: it is F0 F1 B0 B1 on rank 0 and F0 B0 F1 B1 on rank 1"),
])
def test_models_and_settings_that_differ(differ, words, clusters):
    with pytest.raises(RankError, match=words):
        clusters(2).run(differently_made, Pipeline, differ)


def test_weights_that_differ_at_the_start_become_rank_0s(clusters):
    def made(rank):
        return Pipeline(MLP([8, 8, 3], seed=rank), classification, SGD).full_state()["model"]

    expected = MLP([8, 8, 3], seed=0).state_dict()
    for state in clusters(2).run(made):
        assert all(torch.equal(state[name], w) for name, w in expected.items())
