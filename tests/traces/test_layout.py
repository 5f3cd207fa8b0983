"""When operations start and end, on plans small enough to be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cost import simulate
from disttutor.plans import (
    FORMS,
    Device,
    Gradient,
    Link,
    Machine,
    Mesh,
    Op,
    Plan,
    PlanError,
    data_parallel_step,
)
from disttutor.traces import bubble_share, hidden_communication, lay_out


def op(kind, rank, seconds=0.0, **what):
    """An operation that lasts `seconds` by its flops."""
    return Op(kind=kind, rank=rank, flops=seconds, **what)


def times(*ops, free=None):
    plan = Plan("by hand", tuple(map(tuple, ops)), Mesh(data=len(ops)))
    return lay_out(plan, lambda members: max(o.flops for o in members), free=free)


def test_one_lane_runs_one_after_the_other():
    assert times([op("forward", 0, 2), op("backward", 0, 3), op("update", 0, 1)]) == [[(0, 2), (2, 5), (5, 6)]]


def test_two_lanes_run_beside_one_another_unless_told_to_wait():
    reduce = op("all_reduce", 0, 4, group=(0,))
    assert times([reduce, op("forward", 0, 2), op("update", 0, 1)]) == [[(0, 4), (0, 2), (2, 3)]]
    assert times([op("forward", 0, 2), reduce, op("update", 0, 1)]) == [[(0, 2), (2, 6), (2, 3)]]
    assert times([op("forward", 0, 2), reduce, op("update", 0, 1, after=(reduce.key,))]) == [[(0, 2), (2, 6), (6, 7)]]


def test_a_collective_waits_for_its_last_rank_and_ends_together():
    ranks = []
    for rank, work in enumerate([1, 5, 3]):
        forward = op("forward", rank, work)
        ranks.append([forward, op("all_reduce", rank, 2, group=(0, 1, 2), after=(forward.key,))])
    assert times(*ranks) == [[(0, 1), (1, 7)], [(0, 5), (5, 7)], [(0, 3), (3, 7)]]


def test_a_receive_ends_when_its_send_has():
    """Rank 0 works 3 and sends for 2; rank 1 waits in its receive from the start, then works 1."""
    forward = op("forward", 0, 3)
    send = op("send", 0, 2, peer=1, after=(forward.key,))
    recv = op("recv", 1, 0, peer=0)
    assert times([forward, send], [recv, op("forward", 1, 1, after=(recv.key,))]) == [
        [(0, 3), (3, 5)], [(0, 5), (5, 6)]]


def test_an_operation_can_wait_for_another_rank():
    first = op("forward", 0, 4)
    assert times([first], [op("forward", 1, 1, after=(first.key,))]) == [[(0, 4)], [(4, 5)]]


def test_the_next_step_starts_where_this_one_ended():
    free = {}
    ops = [op("forward", 0, 2), op("update", 0, 1)]
    assert times(ops, free=free) == [[(0, 2), (2, 3)]]
    assert times(ops, free=free) == [[(3, 5), (5, 6)]]
    assert free[0, "compute"] == 6


# cost.simulate: the same with a model's durations

GRADIENTS = [Gradient("a", 249, flops=1000.0), Gradient("b", 495, flops=2000.0)]    # buckets: (249+1)·4, (495+1+4)·4
MACHINE = Machine(Device(1000.0, "slow device"), Link(0.0, 1000.0, "slow link"))


def predicted(form):
    return simulate(data_parallel_step(GRADIENTS, Mesh(data=2), bucket_bytes=2000, form=form, forward_flops=1000.0),
                    MACHINE)


@pytest.mark.parametrize(("form", "makespan", "hidden"), [
    # forward 1 s; backward 2 + 1 s; exchanges of 2000 and 1000 bytes over 2 ranks: 2·(n-1)/n·bytes/β = 2 and 1 s
    ("end", 1 + 3 + 2 + 1, 0.0),
    ("bucketed", 1 + 3 + 2 + 1, 0.0),
    ("overlapped", 1 + 2 + 2 + 1, 1 / 3),       # the first bucket leaves at 3 s; 1 s of backward runs beside it
])
def test_a_data_parallel_step_by_hand(form, makespan, hidden):
    trace = predicted(form)
    assert trace.makespan == pytest.approx(makespan)
    assert hidden_communication(trace, 1) == pytest.approx(hidden)
    assert bubble_share(trace) == pytest.approx((makespan - 4) / makespan)
    assert (trace.source, trace.note) == ("predicted", "slow device and slow link")


def test_a_plan_that_cannot_run_is_not_predicted():
    with pytest.raises(PlanError, match="is not entered by rank 1"):
        simulate(Plan("half", ((Op(kind="all_reduce", rank=0, group=(0, 1)),), ()), Mesh(data=2)), MACHINE)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=6), st.integers(1, 4), st.sampled_from(FORMS),
       st.integers(1, 3), st.integers(1, 2000))
def test_nothing_overlaps_on_a_lane_and_nothing_starts_before_what_it_waits_for(sizes, ranks, form, accumulate, limit):
    gradients = [Gradient(f"p{i}", n, flops=n * 10.0) for i, n in enumerate(sizes)]
    plan = data_parallel_step(gradients, Mesh(data=ranks), bucket_bytes=limit, form=form, accumulate=accumulate,
                              forward_flops=500.0)
    trace = simulate(plan, MACHINE)
    ends = {s.op.key: s.end for s in trace.spans}
    for rank in range(ranks):
        for lane in ("compute", "comm"):
            spans = sorted(trace.of(rank, lane), key=lambda s: (s.start, s.end))
            assert all(a.end <= b.start + 1e-12 for a, b in zip(spans, spans[1:], strict=False))
    for s in trace.spans:
        assert all(ends[key] <= s.start + 1e-12 for key in s.op.after)
        if s.group:
            assert {ends[o.key] for o in plan if o.bucket == s.op.bucket and o.group} == {s.end}
    for recorded, planned in zip(trace.plan(0).ops, plan.ops, strict=True):
        for lane in ("compute", "comm"):
            assert [o for o in recorded if o.lane == lane] == [o for o in planned if o.lane == lane]
