"""Data parallelism with its buckets in shared memory: equal to one process, as with messages."""

import pytest
import torch
from test_equivalence import BY_NAME, distance, one_process, same_bits, single, train

from disttutor.cluster import RankError
from disttutor.models import MLP, classification
from disttutor.plans import FORMS
from disttutor.strategies import DataParallel


def in_every_form(rank, name):
    situation = BY_NAME[name]
    return {form: [train(DataParallel(situation.model(), situation.objective, situation.optimizer, form=form,
                                      transport="shared memory", bucket_bytes=600, **situation.options), situation)
                   for _ in range(2)]
            for form in FORMS}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["momentum, decay", "uneven, accumulate", "frozen half-way", "unused, used by some",
                                  "sparse rows", "mixed types", "bfloat16 weights", "CNN, BatchNorm over all"])
def test_data_parallel_equals_one_process(name, ranks, clusters):
    situation = BY_NAME[name]
    oracle = single(situation, ranks) if situation.by_share else one_process(situation)
    floating = {k for k, v in oracle[0].items() if v.is_floating_point()}
    results = clusters(ranks).run(in_every_form, name)
    for form in FORMS:
        first, again = results[0][form]
        assert distance(first, oracle, floating) <= situation.tolerance
        for other in (again, *(result[form][0] for result in results)):
            assert same_bits(first, other, set(oracle[0]))


def strategy_of(form, **options):
    model = MLP([8, 16, 16, 3], seed=0).double()
    return DataParallel(model, classification, lambda named: torch.optim.SGD([p for _, p in named], lr=0.1), form=form,
                        bucket_bytes=600, transport="shared memory", **options)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(12, 8, generator=g, dtype=torch.float64), torch.randint(0, 3, (12,), generator=g)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_recorded_is_the_plan(form, clusters):
    def work(rank):
        strategy = strategy_of(form)
        strategy.step(batch())
        return strategy.plan(12)

    out = clusters(2).run(work, record=True)
    for mine, planned in zip(out.trace.plan(0).ops, out[0].ops, strict=True):
        assert [(op.kind, op.nbytes, op.group, op.subject) for op in mine] == [
            (op.kind, op.nbytes, op.group, op.subject) for op in planned]


@pytest.mark.parametrize("form", FORMS)
def test_a_bucket_that_is_watched(form, clusters):
    """It goes round the ring by hand, also when it lies in the shared memory."""

    def work(rank):
        strategy, other = strategy_of(form), strategy_of(form)
        strategy.watch(1)
        strategy.step(batch())
        other.step(batch())
        return strategy.snapshots, [p.grad for p in strategy.parameters], [p.grad for p in other.parameters]

    for snapshots, watched, plain in clusters(2).run(work):
        assert len(snapshots) == 3                           # before, and after each of two messages
        torch.testing.assert_close(watched, plain, rtol=0, atol=1e-15)


def test_transports_that_cannot_be(clusters):
    model = MLP([8, 16, 3])
    sgd = torch.optim.SGD
    with pytest.raises(ValueError, match="unknown transport 'nvlink'; transports that work: messages, shared memory"):
        DataParallel(model, classification, sgd, transport="nvlink")
    with pytest.raises(ValueError, match="the model lies on meta, and the memory that ranks share is the CPU's"):
        DataParallel(model.to("meta"), classification, sgd, transport="shared memory")

    def work(rank):
        DataParallel(MLP([8, 16, 3]), classification, lambda named: None,
                     transport=("messages", "shared memory")[rank])

    with pytest.raises(RankError, match="agree on transport: it is messages on rank 0 and shared memory on rank 1"):
        clusters(2).run(work)
