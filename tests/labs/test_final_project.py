"""The final project: each order can be met, by the plans that should, and not by the first thing that one tries."""

from types import SimpleNamespace

import pytest

from disttutor import run
from disttutor.labs import final_project as project
from disttutor.labs.final_project import (
    DATA,
    ORDERS,
    PIPE,
    HandedIn,
    activations_of_layers,
    held,
    predict,
    train,
    verdicts,
)

PARAMETERS = 96 * 32 + 32 * 32 + 6 * (12 * 32**2 + 13 * 32) + 2 * 32        # SmallGPT's formula, tied
LAB, SCHOOL, FRIENDS = ORDERS


def settings(order, strategy=DATA, ranks=4, microbatches=1, form="overlapped", schedule="1F1B") -> dict:
    return {"order": order, "strategy": strategy, "ranks": ranks, "microbatches": microbatches, "form": form,
            "schedule": schedule}


def predicted(clusters, chosen: dict) -> HandedIn:
    (answer, *_) = clusters(chosen["ranks"]).run(train, project.batches()[:1], chosen)
    trace = predict(answer["plan"], ORDERS[chosen["order"]].machine)
    return HandedIn(trace, trace, 0.0, answer["losses"])


def met(clusters, chosen: dict) -> list[bool]:
    return [fine for *_, fine in verdicts(predicted(clusters, chosen), chosen)]


SERVED = [
    settings(LAB), settings(LAB, PIPE, 4, 16, schedule="ZB-H1"),
    settings(SCHOOL, PIPE, 4, 16), settings(SCHOOL, PIPE, 4, 16, schedule="ZB-H1"),
    settings(FRIENDS, PIPE, 2, 4), settings(FRIENDS, PIPE, 2, 8, schedule="ZB-H1"),
]
NOT_SERVED = [  # and which of weights, time and memory is the reason
    (settings(LAB, form="end"), [True, False, True]),                    # 80 messages, each with its latency
    (settings(LAB, form="bucketed"), [True, False, True]),               # nothing is hidden behind backward
    (settings(LAB, PIPE, 4, 1), [True, False, True]),                    # three of four ranks idle
    (settings(SCHOOL), [True, True, False]),                             # every rank a copy of all states
    (settings(SCHOOL, PIPE, 4, 16, schedule="GPipe"), [True, True, False]),      # 16 micro-batches in flight
    (settings(FRIENDS), [True, False, True]),                            # all gradients over a slow line
    (settings(FRIENDS, PIPE, 4, 16), [True, False, True]),               # more ranks, more messages
]


@pytest.mark.parametrize("chosen", SERVED, ids=lambda s: f"{s['order'][:1]} {s['strategy']} {s['microbatches']}")
def test_every_order_can_be_met_in_two_ways(clusters, chosen):
    assert met(clusters, chosen) == [True, True, True]


@pytest.mark.parametrize(("chosen", "fine"), NOT_SERVED)
def test_what_one_tries_first_is_not_enough(clusters, chosen, fine):
    assert met(clusters, chosen) == fine


def test_what_a_rank_holds_by_hand(clusters):
    kept = activations_of_layers()
    of_four_texts = [4 * sum(kept) + 4 * 8 * PARAMETERS] * 4                    # 16 texts over 4 ranks
    data = settings(LAB)
    assert held(predicted(clusters, data).predicted, data) == of_four_texts
    pipe = settings(SCHOOL, PIPE, 4, 16)
    block, embedding = 12 * 32**2 + 13 * 32, 96 * 32 + 32 * 32
    states = [embedding + block, 2 * block, 2 * block, block + 96 * 32 + 2 * 32]
    pairs = [kept[2 * stage] + kept[2 * stage + 1] for stage in range(4)]       # eight layers, two on a stage
    expected = [4 * 8 * own + (4 - stage) * pair for stage, (own, pair) in enumerate(zip(states, pairs, strict=True))]
    assert held(predicted(clusters, pipe).predicted, pipe) == expected


def test_activations_are_those_that_autograd_keeps():
    """Every block keeps the same, about what its products need."""
    kept = activations_of_layers()
    assert len(kept) == 8 and len(set(kept[1:7])) == 1
    least = 8 * 32 * (5 * 32 + 2 * 128 + 3 * 32)     # inputs of both norms and projections, queries, keys, values, MLP
    assert least <= kept[1] <= 2.5 * least


def test_real_ranks_end_with_the_weights_of_one_process_and_the_customer_is_served(monkeypatch):
    solved = []
    monkeypatch.setattr("disttutor.cards.progress.here", lambda: SimpleNamespace(solved=solved.append))
    chosen = settings(FRIENDS, PIPE, 2, 8)
    result = project._run(chosen, run)
    assert result.distance < 1e-12
    drawn = project._draw(result, chosen)
    assert "The customer is served" in str(drawn[2]) and solved == ["final-project-3"]


def test_what_cannot_be_is_said_before_anything_starts():
    with pytest.raises(ValueError, match="a share of 4 texts cannot be cut into 16 micro-batches; at most 4 work"):
        project._run(settings(LAB, microbatches=16), None)
