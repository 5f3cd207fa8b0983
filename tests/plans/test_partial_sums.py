"""What every rank holds round by round, followed without numbers and counted by hand here."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans import Gradient, Mesh, data_parallel_step
from disttutor.plans.collectives import (
    ALGORITHMS,
    collective,
    naive_all_reduce,
    recursive_doubling_all_reduce,
    ring_all_reduce,
    ring_all_to_all,
    tree_broadcast,
)
from disttutor.plans.partial_sums import partial_sums


def test_two_ranks_of_a_ring():
    before, scattered, gathered = partial_sums(ring_all_reduce(2, 4))
    assert before.moment == "before" and before.messages == ()
    assert before.holds == (((0,), (0,)), ((1,), (1,)))
    assert scattered.moment == "reduce-scatter 1 of 1"
    assert scattered.messages == ((0, 1, (0,)), (1, 0, (1,)))
    assert scattered.holds == (((0,), (0, 1)), ((0, 1), (1,)))      # rank r has the whole sum of chunk r+1
    assert gathered.holds == (((0, 1), (0, 1)), ((0, 1), (0, 1)))


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_in_a_ring_one_chunk_of_each_rank_grows_by_one_part_a_round(n):
    steps = partial_sums(ring_all_reduce(n, 5 * n))
    for k, step in enumerate(steps[:n]):
        for rank, held in enumerate(step.holds):
            assert held[(rank - k) % n] == tuple(sorted((rank - i) % n for i in range(k + 1)))
    for k, step in enumerate(steps[n - 1:]):
        everything = tuple(range(n))
        assert all(held.count(everything) == k + 1 for held in step.holds)


def test_doubling_doubles():
    steps = partial_sums(recursive_doubling_all_reduce(8, 3))
    assert [len(step.holds[5][0]) for step in steps] == [1, 2, 4, 8]
    assert steps[2].holds[5][0] == (4, 5, 6, 7)


def test_a_rank_without_a_message_in_a_round_holds_what_it_held():
    steps = partial_sums(naive_all_reduce(4, 3))
    assert [step.holds[0][0] for step in steps] == [(0,), (0, 1), (0, 1, 2), *[(0, 1, 2, 3)] * 4]
    assert [step.holds[2][0] for step in steps] == [(2,)] * 5 + [(0, 1, 2, 3)] * 2
    assert [step.messages for step in steps[1:]] == [((r, 0, (0,)),) for r in (1, 2, 3)] + [
        ((0, r, (0,)),) for r in (1, 2, 3)]


def test_chunks_that_are_not_there_hold_nothing():
    first, *_, last = partial_sums(tree_broadcast(3, 6, root=1))
    assert first.holds == (((),), ((1,),), ((),)) and last.holds == (((1,),),) * 3
    passing = partial_sums(ring_all_to_all(3, 3))[1]
    assert passing.holds[1][2] == (0,)                  # the block of rank 0 for rank 2 lies on rank 1 now


def test_a_message_holds_what_its_sender_had_when_it_left():
    """Two ranks swap: what each gets is the other's part alone, though both add before the other's list goes on."""
    swapped = partial_sums(recursive_doubling_all_reduce(2, 1))[1]
    assert swapped.holds == (((0, 1),), ((0, 1),))


def test_a_part_that_is_there_twice_is_named_twice():
    plan = recursive_doubling_all_reduce(2, 2)
    again = tuple((*ops, *(replace(op, round=1) for op in ops)) for ops in plan.ops)
    last = partial_sums(replace(plan, ops=again))[-1]
    assert last.moment == "round 2" and last.holds == (((0, 0, 1, 1),), ((0, 0, 1, 1),))


@given(st.sampled_from([(kind, a) for kind, named in ALGORITHMS.items() for a in named]), st.integers(1, 6),
       st.integers(0, 14))
def test_there_is_a_step_for_every_round_and_its_messages_explain_what_changed(which, n, elements):
    plan = collective(*which, n, elements)
    steps = partial_sums(plan)
    assert [step.moment for step in steps] == list(plan.goal.moments)
    assert sum(len(step.messages) for step in steps) == sum(plan.check().messages)
    for one, other in zip(steps, steps[1:], strict=False):
        arrived = {(dst, c) for _, dst, chunks in other.messages for c in chunks}
        for rank in range(n):
            for c, (before, after) in enumerate(zip(one.holds[rank], other.holds[rank], strict=True)):
                assert before == after or (rank, c) in arrived
                assert len(set(after)) == len(after)


def test_a_plan_of_something_else_has_no_partial_sums():
    plan = data_parallel_step([Gradient("w", 3)], Mesh(data=2))
    with pytest.raises(ValueError, match="'data parallel, overlapped' is no collective's: its goal is None"):
        partial_sums(plan)
