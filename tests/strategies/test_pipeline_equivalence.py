"""A pipeline equals the same training in one process, in float64, to 1e-12 after six steps, with every schedule.

The oracle is the loop of plain torch in test_equivalence. Where a layer looks across the samples of a micro-batch
(BatchNorm) it is `Single` working through the same micro-batches. Each situation meets two or three schedules on each
number of ranks, other ones on each, so all ten in the end.
"""

import hashlib
from functools import partial
from typing import Any

import pytest
import torch
from pipeline_situations import GPT, SITUATIONS, few, mlp, sentences, tied_ends
from situations import ADAMW, CNN, MOMENTUM, Situation, pictures, two_groups, warm_up
from test_equivalence import distance, one_process, same_bits, single, train

from disttutor.models import accuracy, classification, next_token
from disttutor.plans import SCHEDULES, VIRTUAL
from disttutor.strategies import Single
from disttutor.strategies.pipeline import Pipeline

BY_NAME = {s.name: s for s in SITUATIONS}
EVERYWHERE = "uneven: 10 in 4"                          # meets all ten on each
TURNS = {1: (0, 1), 2: (2, 3), 3: (4, 5, 6), 4: (7, 8, 9)}      # which of the ten schedules others meet, from their own


def pipeline(situation: Situation, schedule: Any, **more: Any) -> Pipeline:
    options = dict(situation.options)
    options["microbatches"] = options.pop("accumulate", 4)
    options["lr_schedule"] = options.pop("schedule", None)
    return Pipeline(situation.model(), situation.objective, situation.optimizer, schedule=schedule,
                    **(options | more))


def fingerprint(state: Any) -> str:
    """The same for the same bits of every tensor and the same text of all else."""
    if isinstance(state, torch.Tensor):
        return hashlib.sha256(state.contiguous().numpy().tobytes()).hexdigest()
    if isinstance(state, dict):
        return repr({key: fingerprint(value) for key, value in state.items()})
    return repr([fingerprint(v) for v in state]) if isinstance(state, list | tuple) else repr(state)


def under(rank: int, name: str, schedules: list[str]) -> dict[str, Any]:
    """On each rank: the situation under each schedule, the first of them twice."""
    out = {}
    for turn, schedule in enumerate([*schedules, schedules[0]]):
        strategy = pipeline(BY_NAME[name], schedule)
        result = train(strategy, BY_NAME[name])
        whole = fingerprint(strategy.full_state())
        out["again" if turn == len(schedules) else schedule] = (result if rank == 0 else result[1], whole)
    return out


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", BY_NAME)
def test_equal_to_one_process(name, ranks, clusters):
    situation, everything = BY_NAME[name], list(SCHEDULES)
    oracle = single(situation, 4) if situation.by_share else one_process(situation)
    own = list(BY_NAME).index(name)
    chosen = everything if name == EVERYWHERE else [everything[(own + k) % 10] for k in TURNS[ranks]]
    first, *others = clusters(ranks).run(under, name, chosen)
    for schedule in chosen:
        result, whole = first[schedule]
        assert result[0].keys() == oracle[0].keys()
        gap = distance(result, oracle, set(oracle[0]))
        assert gap <= situation.tolerance, f"{schedule} on {ranks} ranks: {gap}"
        for other in others:
            assert other[schedule] == (result[1], whole), f"{schedule}: a rank has other losses or another full state"
    assert same_bits(first[chosen[0]][0], first["again"][0], set(oracle[0])), "a second run differs"


def test_a_convolutional_network_in_three_stages(clusters):
    """SmallCNN, with BatchNorm: three layers on one to three ranks, as `Single` works through the micro-batches."""
    situation = Situation("", CNN, lambda: pictures()[:5], optimizer=MOMENTUM, by_share=True)
    oracle = single(situation, 4)
    for ranks, schedule in ((1, "1F1B"), (2, "GPipe"), (3, "1F1B"), (3, "ZB-H1")):
        for result in clusters(ranks).run(lambda rank, s=schedule: train(pipeline(situation, s), situation)):
            assert distance(result, oracle, set(oracle[0])) <= 1e-12


@pytest.mark.parametrize("cut", [(1, 1, 6), (6, 1, 1), (3, 1, 4), "by weights"])
def test_any_cut_is_equal(cut, clusters):
    situation = BY_NAME["all of them"]
    oracle = one_process(situation)
    for result in clusters(3).run(lambda rank: train(pipeline(situation, "1F1B", cut=cut), situation)):
        assert distance(result, oracle, set(oracle[0])) <= 1e-12


@pytest.mark.parametrize("schedule", VIRTUAL)
def test_any_number_of_stages_a_rank(schedule, clusters):
    situation = BY_NAME["GPT, tied, valid tokens"]
    oracle = one_process(situation)
    for result in clusters(2).run(lambda rank: [
            train(pipeline(situation, schedule, virtual_stages=v), situation) for v in (1, 3, 4)]):
        assert max(distance(r, oracle, set(oracle[0])) for r in result) <= 1e-12


def test_one_rank_and_one_stage_is_one_process_to_the_bit(clusters):
    """Case A-26: no group is needed. Micro-batches are then gradient accumulation, with dropout's very masks."""
    dropout = Situation("", partial(mlp, dropout=0.5), partial(few, 10), optimizer=ADAMW, by_share=True,
                        options={"clip_norm": 0.2})
    oracle = single(dropout, 4)
    here = train(pipeline(dropout, "1F1B"), dropout)
    assert same_bits(here, oracle, set(oracle[0]))
    (there,) = clusters(1).run(lambda rank: train(pipeline(dropout, "GPipe"), dropout))
    assert same_bits(there, oracle, set(oracle[0]))


def test_dropout_is_drawn_by_step_micro_batch_and_stage(clusters):
    """So it is the same in each run, with every schedule, and wherever a stage lies; other micro-batches draw anew."""
    situation = Situation("", partial(mlp, dropout=0.5), partial(few, 10), optimizer=MOMENTUM)

    def four_stages(rank, schedules, v):
        return [train(pipeline(situation, s, virtual_stages=v), situation) for s in schedules]

    on_four = clusters(4).run(four_stages, ["GPipe", "GPipe", "1F1B", "ZB-H1"], None)[3]
    on_two = clusters(2).run(four_stages, ["looped BFS", "interleaved 1F1B"], 2)[1]
    names = set(on_four[0][0])
    assert same_bits(on_four[0], on_four[1], names)
    for result in (*on_four[2:], *on_two):
        assert distance(on_four[0], result, names) <= 1e-12
    alike = [(x[:1].expand(8, -1), y[:1].expand(8)) for x, y in few(1)]       # eight times the same sample
    losses = clusters(2).run(lambda rank: pipeline(situation, "1F1B", seed=rank).step(alike[0]))
    plain = one_process(Situation("", mlp, lambda: alike[:1]))[1][0]
    assert losses[0] == losses[1] != pytest.approx(plain)


# ------------------------------------------------------------------------------------------------ states and evaluation


def close(a: Any, b: Any) -> None:
    """Two full states are equal to 1e-12, and in all that is no tensor."""
    torch.testing.assert_close(a["model"], b["model"], rtol=0, atol=1e-12)
    torch.testing.assert_close(a["optimizer"]["state"], b["optimizer"]["state"], rtol=0, atol=1e-12)
    plain = [[{k: v for k, v in group.items() if k != "param_names"} for group in s["optimizer"]["param_groups"]]
             for s in (a, b)]
    assert plain[0] == plain[1]
    assert (a["updates"], a["optimizer kind"], a["schedule"]) == (b["updates"], b["optimizer kind"], b["schedule"])


STOPS = Situation("", tied_ends, partial(few, 10), optimizer=two_groups,
                  options={"schedule": warm_up, "clip_norm": 0.5})


def go_on(rank: int, state: Any, batches: list[Any], schedule: str) -> Any:
    strategy = pipeline(STOPS, schedule)
    if state:
        strategy.load_state(state)
    losses = [strategy.step(batch) for batch in batches]
    return strategy.full_state(), losses


def alone(state: Any, batches: list[Any]) -> Any:
    strategy = Single(STOPS.model(), STOPS.objective, STOPS.optimizer, **STOPS.options)
    if state:
        strategy.load_state(state)
    losses = [strategy.step(batch) for batch in batches]
    return strategy.full_state(), losses


@pytest.mark.parametrize("way", [(3, 2, 1), (1, 2, 3), (4, 1, 2), (2, 4, 3)])
def test_a21_saved_on_some_ranks_loaded_on_others(way, clusters):
    """Two steps on each number of ranks in turn (1: `Single`), in a schedule of another kind each time."""
    batches, state, losses = few(10)[:6], None, []
    whole = [alone(None, batches[:stop]) for stop in (2, 4, 6)]
    for turn, (ranks, schedule) in enumerate(zip(way, ("1F1B", "ZB-V", "interleaved 1F1B"), strict=True)):
        piece = batches[2 * turn:2 * turn + 2]
        state, more = alone(state, piece) if ranks == 1 else clusters(ranks).run(go_on, state, piece, schedule)[-1]
        losses += more
        close(state, whole[turn][0])
    assert losses == pytest.approx(whole[-1][1], abs=1e-12)


def test_a_full_state_is_a_snapshot(clusters):
    def there_and_back(rank):
        strategy = pipeline(STOPS, "1F1B")
        strategy.step(few(10)[0])
        state, ends = strategy.full_state(), []
        for _ in range(2):
            for batch in few(10)[1:4]:
                strategy.step(batch)
            ends.append(fingerprint(strategy.full_state()))
            strategy.load_state(state)
        return ends

    for first, second in clusters(3).run(there_and_back):
        assert first == second


def test_evaluation_is_one_processs(clusters):
    """Losses and whole numbers (accuracy), in pieces of any size, in evaluation mode; training goes on unharmed."""
    situation = Situation("", partial(mlp, dropout=0.5, batch_norm=True), partial(few, 12), by_share=True)
    data = few(50)[0]

    def measured(strategy):
        before = [strategy.evaluate(m, data, size) for m in (classification, accuracy) for size in (7, 50, 1024)]
        strategy.step(few(12)[0])
        return [*before, strategy.evaluate(accuracy, data)], [m.training for m in strategy.model.modules()]

    def on_ranks(rank):
        return measured(pipeline(situation, "1F1B", microbatches=1, seed=None))

    oracle = Single(mlp(dropout=0.5, batch_norm=True), classification, situation.optimizer)
    expected = [oracle.evaluate(m, data, size) for m in (classification, accuracy) for size in (7, 50, 1024)]
    for values, modes in clusters(4).run(on_ranks):
        assert values[:6] == pytest.approx(expected, abs=1e-12) and all(modes)

    def of_its_own(model, x):               # data and a way to call the model of its own
        return model(x * 2).square().sum(), 3 * len(x)

    value = Single(mlp(), classification, ADAMW).evaluate(of_its_own, data[0])
    assert clusters(2).run(lambda rank: Pipeline(mlp(), classification, ADAMW).evaluate(of_its_own, data[0], 9)) == [
        pytest.approx(value, abs=1e-12)] * 2

    def language(rank):
        return Pipeline(GPT(), next_token, ADAMW).evaluate(next_token, sentences()[0], 2)

    value = Single(GPT(), next_token, ADAMW).evaluate(next_token, sentences()[0])
    assert clusters(3).run(language) == [pytest.approx(value, abs=1e-12)] * 3


def test_a_layer_that_is_no_part_of_the_model_evaluates_too(clusters):
    class Loose(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 3).double()

        def layers_in_order(self):
            return [torch.nn.Dropout(0.9), self.linear]

    torch.manual_seed(0)
    model = Loose()
    (x, y) = few(12)[0]
    expected = torch.nn.functional.cross_entropy(model.linear(x), y).item()
    weights = model.state_dict()

    def evaluated(rank):
        mine = Loose()
        mine.load_state_dict(weights)
        return Pipeline(mine, classification, ADAMW).evaluate(classification, (x, y))

    assert clusters(2).run(evaluated) == [pytest.approx(expected, abs=1e-12)] * 2
