"""How a collective is carried out: what is recorded and seen is the plan, misuse is told, nobody waits in a circle."""

from dataclasses import replace

import pytest
import torch

from disttutor.cluster import RankError
from disttutor.plans import Device, Link, Machine, Mesh, Op, Plan, PlanError
from disttutor.plans.collectives import ALGORITHMS, ALL_REDUCES, collective, ring_all_reduce
from disttutor.plans.partial_sums import Collective, partial_sums
from disttutor.strategies import group_along
from disttutor.strategies.collective_program import Prepared, Program
from disttutor.strategies.collectives import all_gather, all_reduce, all_to_all, broadcast, reduce, reduce_scatter
from disttutor.strategies.groups import Group
from disttutor.strategies.interpreter import carry_out
from disttutor.traces import SlowMotion

# ------------------------------------------------------------------------------------------------ plan and trace


def one_of_each(rank):
    mine = torch.arange(50.0)
    for algorithm in ALL_REDUCES:
        all_reduce(mine.clone(), algorithm=algorithm)
    for kind, call in (("broadcast", broadcast), ("reduce", reduce)):
        for algorithm in ALGORITHMS[kind]:
            call(mine.clone(), 1, algorithm=algorithm)
    for algorithm in ALGORITHMS["all_gather"]:
        all_gather(mine.tensor_split(3)[rank], algorithm=algorithm, rows=50)
    for algorithm in ALGORITHMS["reduce_scatter"]:
        reduce_scatter(mine, algorithm=algorithm)
    for algorithm in ALGORITHMS["all_to_all"]:
        all_to_all(mine, algorithm=algorithm)


def test_what_is_recorded_is_the_plan_to_the_byte(clusters):
    """Kind, order, peer, round, chunks and bytes of every message."""
    trace = clusters(3).run(one_of_each, record=True).trace
    kinds = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all")
    plans = [collective(kind, algorithm, 3, 50, 4, root=1 if kind in ("broadcast", "reduce") else 0)
             for kind in kinds for algorithm in ALGORITHMS[kind]]
    for rank in range(3):
        done = [span.op for span in sorted(trace.of(rank), key=lambda s: s.end)]
        assert [replace(op, after=()) for op in done] == [op for plan in plans for op in plan.ops[rank]]


def slowly(rank):
    for _ in range(2):
        all_reduce(torch.ones(4000), algorithm="ring")


def test_slow_motion_takes_what_the_model_says(clusters):
    link = Link(0.02, 4e5)
    trace = clusters(4).run(slowly, slow_motion=SlowMotion(Machine(Device(), link))).trace
    last = max(s.end for s in trace.spans) - min(s.start for s in trace.spans)
    assert last >= 2 * 6 * (0.02 + 4000 / 4e5) * 0.999          # never early: 2 all-reduces of 2 (n-1) messages


# ----------------------------------------------------------------------------------------------------- looking on


def looked_at(rank, algorithm):
    moments, mine = [], torch.tensor([float(10**rank)] * 6)
    all_reduce(mine, algorithm=algorithm, observe=lambda moment: moments.append((moment, mine.clone())))
    return moments


@pytest.mark.parametrize("algorithm", ALL_REDUCES)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_what_is_seen_after_each_round_is_what_the_plan_says_is_held(algorithm, n, clusters):
    """Rank r brings 10^r, so that a sum says whose parts are in it."""
    plan = collective("all_reduce", algorithm, n, 6)
    steps = partial_sums(plan)
    for rank, moments in enumerate(clusters(n).run(looked_at, algorithm)):
        assert [moment for moment, _ in moments] == [step.moment for step in steps]
        for (_, seen), step in zip(moments, steps, strict=True):
            expected = [sum(10**r for r in parts) for parts, size in
                        zip(step.holds[rank], plan.goal.sizes, strict=True) for _ in range(size)]
            assert seen.tolist() == expected


# --------------------------------------------------------------------------------------------------------- misuse


@pytest.mark.parametrize("call, error, words", [
    (lambda x: all_reduce(x, algorithm="star"), ValueError, "unknown algorithm 'star' for all_reduce; those that"),
    (lambda x: all_reduce(x, op="product"), ValueError, "unknown op 'product'; those that work: sum, mean, max"),
    (lambda x: all_reduce(x.long(), op="mean"), TypeError, "the mean of torch.int64 is not of that type"),
    (lambda x: all_reduce(x.to(torch.complex64), op="max"), TypeError, "torch has no max of two tensors of torch.co"),
    (lambda x: all_reduce(torch.ones(2, 3).T), ValueError, r"strides \(1, 3\) is not contiguous"),
    (lambda x: all_reduce(x.to_sparse()), TypeError, "a collective takes a dense tensor, not torch.sparse_coo"),
    (lambda x: all_reduce([1.0]), TypeError, "a collective takes a dense tensor, not list"),
    (lambda x: all_reduce(x, algorithm="hierarchical", ranks_per_node=0), ValueError, "ranks_per_node is 0"),
    (lambda x: broadcast(x, 1), ValueError, r"root is 1, which is not among the ranks of the group, \[0\]"),
    (lambda x: all_gather(x, rows=7), ValueError, "the shard of rank 0 has 4 rows, but 7 rows on 1 ranks are cut so"),
    (lambda x: carry_out(Prepared(Plan("odd", ((),), Mesh())), Group((0,), 0), {}), ValueError, "is no collective's"),
])
def test_misuse_is_told_before_anything_is_sent(call, error, words):
    with pytest.raises(error, match=words):
        call(torch.ones(4))


def a_wrong_plan(rank):
    plan = ring_all_reduce(2, 4)
    ops = tuple(tuple(op for op in ops if op.round == 0) for ops in plan.ops)
    carry_out(Prepared(replace(plan, ops=ops)), group_along(None, "data"), {})


def test_a_plan_that_does_not_reach_its_goal_is_refused_on_every_rank(clusters):
    with pytest.raises(RankError, match="rank 0's chunk 0 lacks rank 1's part"):
        clusters(2).run(a_wrong_plan)


# ---------------------------------------------------------------------------------- what the plan does not say


def message(kind, rank, peer, number, chunk):
    return Op(kind=kind, rank=rank, peer=peer, round=number, chunks=(chunk,), nbytes=4)


def a_plan_with_late_receivers() -> Plan:
    """Rank 1 takes rank 0's part only after that of rank 2, who waits for rank 0's sum: fine where sends go out beside
    what follows, but not if rank 0 waits until its first message has left before it adds to the chunk."""
    def send(*where):
        return message("send", *where)

    ops = ((send(0, 1, 0, 0), message("recv_reduce", 0, 2, 1, 0), send(0, 2, 2, 0)),
           (message("recv", 1, 2, 3, 1), message("recv_reduce", 1, 0, 0, 0)),
           (send(2, 0, 1, 0), message("recv", 2, 0, 2, 0), send(2, 1, 3, 1)))
    return Plan("late", ops, Mesh(data=3), Anything("all_reduce", 3, (1, 1), 4))


class Anything(Collective):
    """A goal that is content with whatever comes out."""

    def faults(self, plan):
        return []


def test_sends_get_copies_where_ranks_could_wait_for_each_other():
    assert not Program(ring_all_reduce(4, 8), 2).copies and not Program(ring_all_reduce(4, 8), 0).copies
    late = a_plan_with_late_receivers()
    late.check()
    with pytest.raises(PlanError, match="cycle"):
        late.check(blocking_sends=True)
    assert Program(late, 0).copies


def carried_out_late(rank):
    store = {0: torch.tensor([float(10**rank)]), 1: torch.tensor([7.0 + rank])}
    carry_out(Prepared(a_plan_with_late_receivers()), group_along(None, "data"), store,
              observe=(lambda moment: None))
    return store[0].item(), store[1].item()


def test_and_then_come_through(clusters):
    assert list(clusters(3).run(carried_out_late, timeout=30)) == [(101.0, 7.0), (11.0, 9.0), (101.0, 9.0)]


@pytest.mark.parametrize("kind, algorithm", [(kind, a) for kind, named in ALGORITHMS.items() for a in named])
def test_no_algorithm_of_ours_needs_copies(kind, algorithm):
    for n in range(1, 10):
        plan = collective(kind, algorithm, n, 3 * n + 1)
        assert not Program(plan, 2).copies and not Program(plan, 0).copies
