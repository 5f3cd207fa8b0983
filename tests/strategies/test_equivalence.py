"""Rule of the house: every strategy equals the same training in one process, in float64, to 1e-12 after ten steps.

The oracle is a loop of a few lines on plain torch, not our own code: the mean loss of the whole batch, backward,
update. Where a layer looks across the samples of a share (BatchNorm) or draws at random (dropout), no undivided batch
is equal; there the oracle is `Single` working through the same shares: what that shows is that nothing else differs.
"""

import pytest
import torch
from situations import SITUATIONS, Situation
from torch import nn

from disttutor.plans import FORMS
from disttutor.strategies import DataParallel, Single

BY_NAME = {s.name: s for s in SITUATIONS}
STRATEGIES = ["Single", *(f"DataParallel, {form}" for form in FORMS)]
NOTED: dict[tuple[str, int, str], float] = {}      # (strategy, ranks, situation) -> distance; printed by conftest.py


def freeze(situation: Situation, model: nn.Module, step: int) -> None:
    if step == 5 and situation.freezes:
        for name, p in model.named_parameters():
            if name.startswith(situation.freezes):
                p.requires_grad_(False)


def one_process(situation: Situation) -> tuple[dict, list[float]]:
    """The oracle, by hand."""
    model, losses = situation.model(), []
    optimizer = situation.optimizer(list(model.named_parameters()))
    schedule = situation.options["schedule"](optimizer) if "schedule" in situation.options else None
    for step, batch in enumerate(situation.batches()):
        freeze(situation, model, step)
        optimizer.zero_grad()
        total, count = situation.objective(model, batch)
        (total / count).backward()
        if "clip_norm" in situation.options:
            nn.utils.clip_grad_norm_(model.parameters(), situation.options["clip_norm"])
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(total.item() / count)
    return model.state_dict(), losses


def train(strategy, situation: Situation) -> tuple[dict, list[float]]:
    losses = []
    for step, batch in enumerate(situation.batches()):
        freeze(situation, strategy.model, step)
        losses.append(strategy.step(batch))
    return strategy.full_state()["model"], losses


def single(situation: Situation, parts: int = 1) -> tuple[dict, list[float]]:
    options = {k: v for k, v in situation.options.items() if k != "sync_batch_norm"}
    options["accumulate"] = parts * options.get("accumulate", 1)
    return train(Single(situation.model(), situation.objective, situation.optimizer, **options), situation)


def in_every_form(rank: int, name: str) -> dict:
    """On each rank: every form of data parallelism twice. Buckets of 600 bytes: several, and some gradients larger."""
    situation = BY_NAME[name]
    return {form: [train(DataParallel(situation.model(), situation.objective, situation.optimizer, form=form,
                                      bucket_bytes=600, **situation.options), situation) for _ in range(2)]
            for form in FORMS}


def distance(a: tuple[dict, list[float]], b: tuple[dict, list[float]], names: set[str]) -> float:
    """Largest difference of any weight or loss."""
    weights = max(float((a[0][k] - b[0][k]).abs().max()) for k in names)
    return max(weights, *(abs(x - y) for x, y in zip(a[1], b[1], strict=True)))


def same_bits(a: tuple[dict, list[float]], b: tuple[dict, list[float]], names: set[str]) -> bool:
    return a[1] == b[1] and all(torch.equal(a[0][k], b[0][k]) for k in names)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.name)
def test_equal_to_one_process(situation, ranks, clusters):
    oracle = single(situation, ranks) if situation.by_share else one_process(situation)
    everything = set(oracle[0])
    # Running statistics within shares are each rank's own; the weights must be equal all the same.
    compared = {n for n, _ in situation.model().named_parameters()} if situation.by_share else everything
    compared = {k for k in compared if oracle[0][k].is_floating_point()}
    if ranks == 1:
        NOTED["Single", 1, situation.name] = distance(single(situation), oracle, compared)
        assert NOTED["Single", 1, situation.name] <= situation.tolerance
    results = clusters(ranks).run(in_every_form, situation.name)
    for form in FORMS:
        first, again = results[0][form]
        gap = NOTED[f"DataParallel, {form}", ranks, situation.name] = distance(first, oracle, compared)
        assert gap <= situation.tolerance, f"{form} on {ranks} ranks: {gap}"
        assert same_bits(first, again, everything), f"{form} on {ranks} ranks: a second run differs"
        for rank in range(1, ranks):
            assert same_bits(first, results[rank][form][0], everything), f"{form}: rank {rank} differs from rank 0"


def test_every_situation_is_another():
    assert len(BY_NAME) == len(SITUATIONS)
