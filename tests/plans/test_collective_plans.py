"""Collectives as plans: right for any number of ranks and elements, refused where they are wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans.collectives import (
    ALGORITHMS,
    ALL_REDUCES,
    bruck_all_gather,
    collective,
    halving_doubling_all_reduce,
    hierarchical_all_reduce,
    naive_all_reduce,
    recursive_doubling_all_reduce,
    ring_all_reduce,
    tree_all_reduce,
    tree_broadcast,
)

EVERYTHING = [(kind, algorithm) for kind, named in ALGORITHMS.items() for algorithm in named]


def executed(plan, arrays):
    """What every rank has in the end, chunk by chunk, with lists of whole numbers: ranks take turns, each going on
    until a message that it needs has not come."""
    goal = plan.goal
    stores = [{c: list(arrays(rank, c, goal.sizes[c])) for c in goal.at_first(rank)} for rank in range(plan.world_size)]
    place, wires = [0] * plan.world_size, {}
    moved = True
    while moved:
        moved = False
        for rank, ops in enumerate(plan.ops):
            while place[rank] < len(ops):
                op, store = ops[place[rank]], stores[rank]
                if op.kind == "send":
                    wires[rank, op.peer, op.round] = [(c, list(store[c])) for c in op.chunks]
                elif (message := wires.pop((op.peer, rank, op.round), None)) is None:
                    break
                else:
                    for c, numbers in message:
                        store[c] = numbers if op.kind == "recv" else [a + b for a, b in
                                                                      zip(store[c], numbers, strict=True)]
                place[rank] += 1
                moved = True
    assert [p == len(ops) for p, ops in zip(place, plan.ops, strict=True)] == [True] * plan.world_size and not wires
    return stores


def number(rank, chunk, i):
    return 10**6 * rank + 1000 * chunk + i


def numbers(rank, chunk, size):
    return [number(rank, chunk, i) for i in range(size)]


def summed(ranks, chunk, size):
    return [sum(number(r, chunk, i) for r in range(ranks)) for i in range(size)]


@given(st.sampled_from(EVERYTHING), st.integers(1, 9), st.integers(0, 40), st.data())
def test_every_plan_is_sound_and_does_what_it_is_called(which, n, elements, data):
    kind, algorithm = which
    root, k = data.draw(st.integers(0, n - 1)), data.draw(st.integers(1, 5))
    plan = collective(kind, algorithm, n, elements, 2, root=root, ranks_per_node=k)
    report = plan.check()
    assert plan.world_size == n and len(report.nbytes) == n
    sizes = plan.goal.sizes
    assert sum(sizes) == elements * (n if kind == "all_to_all" else 1)
    assert max(sizes) - min(sizes) <= 1 and (kind == "all_to_all" or list(sizes) == sorted(sizes, reverse=True))
    for rank, store in enumerate(executed(plan, numbers)):
        whole = {c: store.get(c) for c, size in enumerate(sizes) if size}
        if kind == "all_reduce" or (kind == "reduce" and rank == root):
            assert whole == {c: summed(n, c, sizes[c]) for c in whole}
        elif kind == "broadcast":
            assert whole == {c: numbers(root, c, sizes[c]) for c in whole}
        elif kind == "all_gather":
            assert whole == {c: numbers(c, c, sizes[c]) for c in whole}
        elif kind == "reduce_scatter":
            assert store[rank] == summed(n, rank, sizes[rank])
        elif kind == "all_to_all":
            assert [store.get(s * n + rank, []) for s in range(n)] == [
                numbers(s, s * n + rank, sizes[s * n + rank]) for s in range(n)]


@given(st.sampled_from(EVERYTHING), st.integers(1, 9), st.integers(0, 40))
def test_messages_say_exactly_what_they_carry_and_empty_ones_are_not_sent(which, n, elements):
    plan = collective(*which, n, elements, 8)
    sizes, rounds = plan.goal.sizes, len(plan.goal.moments) - 1
    for ops in plan.ops:
        assert all(op.nbytes == 8 * sum(sizes[c] for c in op.chunks) > 0 and 0 not in [sizes[c] for c in op.chunks]
                   for op in ops)
        order = [(op.round, op.kind != "send") for op in ops]
        assert order == sorted(order)                           # round by round, in each the sends first
        assert all(0 <= op.round < rounds for op in ops)


def test_a_ring_of_three_message_by_message():
    """7 elements in chunks of 3, 2 and 2; the textbook's order."""
    plan = ring_all_reduce(3, 7, 4)
    assert plan.goal.sizes == (3, 2, 2)
    assert [(op.kind, op.peer, op.round, op.chunks, op.nbytes) for op in plan.ops[0]] == [
        ("send", 1, 0, (0,), 12), ("recv_reduce", 2, 0, (2,), 8),
        ("send", 1, 1, (2,), 8), ("recv_reduce", 2, 1, (1,), 8),
        ("send", 1, 2, (1,), 8), ("recv", 2, 2, (0,), 12),
        ("send", 1, 3, (0,), 12), ("recv", 2, 3, (2,), 8)]
    assert plan.goal.moments == ("before", "reduce-scatter 1 of 2", "reduce-scatter 2 of 2", "all-gather 1 of 2",
                                 "all-gather 2 of 2")


def pairs(plan, number):
    """Who sends what to whom in a round."""
    return sorted((op.rank, op.peer, op.chunks) for op in plan if op.kind == "send" and op.round == number)


def test_a_tree_of_five():
    plan = tree_all_reduce(5, 10)
    assert [[(a, b) for a, b, _ in pairs(plan, k)] for k in range(6)] == [
        [(1, 0), (3, 2)], [(2, 0)], [(4, 0)], [(0, 4)], [(0, 2)], [(0, 1), (2, 3)]]


def test_recursive_doubling_of_six_folds_two_pairs():
    plan = recursive_doubling_all_reduce(6, 10)
    assert [[(a, b) for a, b, _ in pairs(plan, k)] for k in range(4)] == [
        [(0, 1), (2, 3)],
        [(1, 3), (3, 1), (4, 5), (5, 4)], [(1, 4), (3, 5), (4, 1), (5, 3)],
        [(1, 0), (3, 2)]]


def test_halving_doubling_of_four_swaps_halves_then_quarters():
    plan = halving_doubling_all_reduce(4, 16)
    assert pairs(plan, 0) == [(0, 1, (2, 3)), (1, 0, (0, 1)), (2, 3, (2, 3)), (3, 2, (0, 1))]
    assert pairs(plan, 1) == [(0, 2, (1,)), (1, 3, (3,)), (2, 0, (0,)), (3, 1, (2,))]
    assert pairs(plan, 2) == [(0, 2, (0,)), (1, 3, (2,)), (2, 0, (1,)), (3, 1, (3,))]
    assert pairs(plan, 3) == [(0, 1, (0, 1)), (1, 0, (2, 3)), (2, 3, (0, 1)), (3, 2, (2, 3))]


def test_two_nodes_of_two_meet_once_between_nodes():
    plan = hierarchical_all_reduce(4, 8, ranks_per_node=2)
    assert [moment for moment in plan.goal.moments if "between" in moment] == [
        "all-reduce between nodes 1 of 2", "all-reduce between nodes 2 of 2"]
    across = sum(op.nbytes for op in plan if op.kind == "send" and op.rank // 2 != op.peer // 2)
    assert across == 2 * 8 * 4                                  # each node sends the array once: 2 (2-1)/2
    flat = sum(op.nbytes for op in ring_all_reduce(4, 8) if op.kind == "send" and op.rank // 2 != op.peer // 2)
    assert flat == 2 * 1.5 * 8 * 4


def test_a_node_that_is_not_full_and_one_that_is_larger_than_the_world():
    hierarchical_all_reduce(5, 23, ranks_per_node=3).check()
    assert {op.peer for op in hierarchical_all_reduce(3, 9, ranks_per_node=8).ops[0]} == {1, 2}


def test_bruck_of_five_takes_three_rounds():
    plan = bruck_all_gather(5, 5)
    assert [len(pairs(plan, 0)[0][2]), len(pairs(plan, 1)[0][2]), len(pairs(plan, 2)[0][2])] == [1, 2, 1]
    assert len(plan.goal.moments) == 1 + 3


@pytest.mark.parametrize("kind, algorithm", EVERYTHING)
def test_one_rank_sends_nothing(kind, algorithm):
    plan = collective(kind, algorithm, 1, 10)
    assert len(plan) == 0 and plan.check().messages == (0,)


# ------------------------------------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize("build, error, words", [
    (lambda: ring_all_reduce(0, 4), ValueError, "the world size is 0; it must be 1 or more"),
    (lambda: ring_all_reduce(4, -1), ValueError, "the number of elements is -1"),
    (lambda: ring_all_reduce(4, 1.5), TypeError, "the number of elements is 1.5, of type float"),
    (lambda: ring_all_reduce(True, 1), TypeError, "the world size is True"),
    (lambda: naive_all_reduce(4, 4, 0), ValueError, "itemsize is 0"),
    (lambda: tree_broadcast(4, 4, root=4), ValueError, "root is 4, but the ranks are 0 to 3"),
    (lambda: hierarchical_all_reduce(4, 4, ranks_per_node=0), ValueError, "ranks_per_node is 0"),
    (lambda: collective("all_reduce", "star", 4, 4), ValueError, "those that work: naive, ring, tree, recursive doub"),
    (lambda: collective("scan", "ring", 4, 4), ValueError, "unknown collective 'scan'; those that work: all_reduce"),
])
def test_numbers_and_names_that_cannot_be(build, error, words):
    with pytest.raises(error, match=words):
        build()


def test_the_menu_holds_six_all_reduces():
    assert list(ALL_REDUCES) == ["naive", "ring", "tree", "recursive doubling", "halving-doubling", "hierarchical"]
