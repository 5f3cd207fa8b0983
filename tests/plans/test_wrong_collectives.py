"""Collectives that are wrong are refused before anything starts, and what is wrong is named with rank, round and chunk.
"""

from dataclasses import replace

import pytest

from disttutor.plans import Plan, PlanError
from disttutor.plans.collectives import (
    collective,
    naive_all_reduce,
    pairwise_all_to_all,
    ring_all_reduce,
    ring_broadcast,
    tree_all_reduce,
    tree_broadcast,
)


def changed(plan, rank, change):
    """The plan with another list for one rank."""
    ops = [list(ops) for ops in plan.ops]
    ops[rank] = change(ops[rank])
    return replace(plan, ops=tuple(map(tuple, ops)))


def without(plan, *ranks, **about):
    """The plan without the operations of `ranks` that are about this."""
    return Plan(plan.name, tuple(tuple(op for op in ops if op.rank not in ranks or any(
        getattr(op, name) != value for name, value in about.items())) for ops in plan.ops), plan.mesh, plan.goal)


def refused(plan, *words, **how):
    with pytest.raises(PlanError) as caught:
        plan.check(**how)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_a_missing_receive_is_named():
    refused(without(ring_all_reduce(3, 9), 1, kind="recv", round=2),
            "rank 0's send round 2 to rank 1 has no receive on rank 1")


def test_swapped_order_is_a_cycle_with_ranks_and_rounds():
    """Ranks that wait before they send, all of them."""
    plan = ring_all_reduce(3, 9)
    for rank in range(3):
        plan = changed(plan, rank, lambda ops: [ops[1], ops[0], *ops[2:]])
    refused(plan, "a cycle: rank 0's recv_reduce round 0 from rank 2 waits for rank 2's send round 0 to rank 0, which "
                  "comes after rank 2's recv_reduce round 0 from rank 1")


def test_rounds_in_the_wrong_order_send_what_is_not_summed_yet():
    plan = changed(ring_all_reduce(3, 9), 0, lambda ops: [ops[0], ops[2], ops[1], *ops[3:]])
    refused(plan, "lacks rank 2's part")


def test_adding_what_should_be_taken_over_counts_parts_twice():
    """Rank 1 adds the finished chunk 1 to its own part of it, and hands that on to rank 2."""
    plan = changed(ring_all_reduce(3, 9), 1, lambda ops: [
        replace(op, kind="recv_reduce") if (op.kind, op.round) == ("recv", 2) else op for op in ops])
    with pytest.raises(PlanError) as caught:
        plan.check()
    assert caught.value.faults == ["rank 1's chunk 1 holds rank 1's part twice",
                                   "rank 2's chunk 1 holds rank 1's part twice"]


def test_taking_over_what_should_be_added_loses_parts():
    plan = changed(tree_all_reduce(2, 6), 0, lambda ops: [replace(ops[0], kind="recv"), *ops[1:]])
    refused(plan, "rank 0's chunk 0 lacks rank 0's part", "rank 1's chunk 0 lacks rank 0's part")


def test_a_part_that_is_added_twice_is_named():
    """Rank 1 sends to rank 0 once more, in a round of its own."""
    plan = tree_all_reduce(2, 6)
    send, receive = plan.ops[1][0], plan.ops[0][0]
    plan = changed(plan, 1, lambda ops: [send, replace(send, round=7), *ops[1:]])
    plan = changed(plan, 0, lambda ops: [receive, replace(receive, round=7), *ops[1:]])
    refused(plan, "rank 0's chunk 0 holds rank 1's part twice", "rank 1's chunk 0 holds rank 1's part twice")


def test_a_forgotten_rank_is_named():
    """Rank 2 of a naive all-reduce neither gives nor gets anything."""
    plan = naive_all_reduce(4, 8)
    ops = tuple(tuple(op for op in ops if 2 not in (op.rank, op.peer)) for ops in plan.ops)
    refused(replace(plan, ops=ops), "rank 0's chunk 0 lacks rank 2's part",
            "rank 2's chunk 0 lacks the parts of ranks 0, 1, 3")


def test_sending_what_one_does_not_have_is_named():
    plan = changed(ring_broadcast(3, 9), 1, lambda ops: [next(op for op in ops if op.kind == "send"),
                                                         *[op for op in ops if op.kind != "send" or op.round > 1]])
    refused(plan, "rank 1's send round 1 to rank 2 carries chunk 0, of which it has nothing")


def test_what_belongs_to_somebody_else_is_named():
    """Rank 0 sends its block for rank 1 to rank 2 and the other way round."""
    plan = pairwise_all_to_all(3, 9)
    other = {1: (2,), 2: (1,)}
    ops = tuple(tuple(replace(op, chunks=other[op.chunks[0]]) if op.chunks in ((1,), (2,)) else op for op in ops)
                for ops in plan.ops)
    refused(replace(plan, ops=ops), "rank 1 has no chunk 1", "rank 2 has no chunk 2")


def test_chunks_that_are_not_there_and_sizes_that_are_not_theirs():
    plan = tree_broadcast(2, 6)
    refused(replace(plan, ops=tuple(tuple(replace(op, chunks=(5,)) for op in ops) for ops in plan.ops)),
            "rank 0's send round 0 to rank 1 carries chunk 5; there are 1")
    refused(replace(plan, ops=tuple(tuple(replace(op, nbytes=23) for op in ops) for ops in plan.ops)),
            "rank 0's send round 0 to rank 1 has 23 bytes, and its chunks [0] 24")
    refused(replace(plan, goal=tree_broadcast(3, 6).goal), "it is of 2 ranks, and its goal of 3")


def test_of_a_thousand_faults_the_first_are_named():
    plan = ring_all_reduce(9, 90)
    with pytest.raises(PlanError) as caught:
        Plan(plan.name, ((),) * 9, plan.mesh, plan.goal).check()
    assert len(caught.value.faults) == 21 and caught.value.faults[-1] == "and 61 more of the kind"


# ------------------------------------------------------------------------------------------------- blocking sends


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_trees_and_stars_survive_sends_that_wait_for_their_receive(n):
    for kind, algorithm in [("all_reduce", "naive"), ("all_reduce", "tree"), ("broadcast", "tree"), ("reduce", "tree"),
                            ("broadcast", "ring"), ("reduce", "ring")]:
        collective(kind, algorithm, n, 40, root=0).check(blocking_sends=True)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_where_everybody_sends_first_such_sends_wait_in_a_circle(n):
    for kind, algorithm in [("all_reduce", "ring"), ("all_reduce", "recursive doubling"),
                            ("all_reduce", "halving-doubling"), ("all_reduce", "hierarchical"), ("all_gather", "Bruck"),
                            ("reduce_scatter", "ring"), ("all_to_all", "pairwise")]:
        # Where ranks are folded first (doubling and halving of 3 or 5), the first circle is in the second round.
        folded = algorithm in ("recursive doubling", "halving-doubling") and n not in (2, 4, 8)
        refused(collective(kind, algorithm, n, 40), "a cycle: rank ", f"'s send round {int(folded)} to rank ",
                blocking_sends=True)


def test_the_cycle_of_a_ring_names_rank_and_round():
    refused(ring_all_reduce(3, 9), "a cycle: rank 0's send round 0 to rank 1 waits for rank 1's recv_reduce round 0 "
            "from rank 0, which comes after rank 1's send round 0 to rank 2", blocking_sends=True)


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_a_ring_survives_if_one_rank_receives_first(n):
    changed(ring_all_reduce(n, 9 * n), 0, lambda ops: [op for k in range(0, len(ops), 2) for op in
                                                       (ops[k + 1], ops[k])]).check(blocking_sends=True)
