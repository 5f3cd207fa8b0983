"""Walking through a plan: each operation once, in an order that real ranks could take, in time linear in their number;
and, with it, the pricing of messages that share a port, worked out by hand."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cost import simulate
from disttutor.plans import (
    SCHEDULES,
    Device,
    Link,
    Machine,
    Mesh,
    Op,
    Plan,
    Stuck,
    build_schedule,
    partners,
    pipeline_step,
    walk,
)
from disttutor.traces import lay_out


def op(kind, rank, **what):
    return Op(kind=kind, rank=rank, **what)


def plan(*ops, **axes) -> Plan:
    return Plan("by hand", tuple(map(tuple, ops)), Mesh(**(axes or {"data": len(ops)})))


def send(rank, peer, nbytes=0, **about):
    return op("send", rank, peer=peer, nbytes=nbytes, **about)


def recv(rank, peer, nbytes=0, **about):
    return op("recv", rank, peer=peer, nbytes=nbytes, **about)


# ----------------------------------------------------------------------------------------------------------- the order


def follows(built: Plan, order: list[Op], blocking: bool = False) -> None:
    """Asserts, without the walk's own words, that ranks can come to their operations in this order."""
    assert sorted(map(id, order)) == sorted(map(id, built))
    for rank, ops in enumerate(built.ops):
        assert [o for o in order if o.rank == rank] == list(ops)
    place = {o.key: i for i, o in enumerate(order)}
    for o in order:
        assert all(place[key] < place[o.key] for key in o.after)
        if o.kind == "recv":
            assert place[o.peer, "send", o.rank, o.subject] < place[o.key]


@given(st.sampled_from(list(SCHEDULES)), st.integers(1, 6), st.integers(1, 12), st.booleans())
def test_every_operation_once_in_an_order_that_ranks_can_take(name, p, m, clocked):
    built = pipeline_step(build_schedule(name, p, m), boundary_bytes=8)
    clock = [float((7 * rank) % 5) for rank in range(p)] if clocked else None
    order, over = [], []
    for one, ended in walk(built, clock=clock):
        order.append(one)
        over += ended
        if clocked:
            clock[one.rank] += 1.0
    # `after` names a collective that is over once its last rank has come: not a place in the order of coming.
    follows(built, [o for o in order if o.kind != "update" and not o.group] + [o for o in order if o.group]
            + [o for o in order if o.kind == "update"])
    assert sorted(map(id, over)) == sorted(map(id, built))


def test_a_collective_is_over_with_its_last_rank():
    a, b = op("all_reduce", 0, group=(0, 1)), op("all_reduce", 1, group=(0, 1))
    first, second = walk(plan([a], [b]))
    assert first == (a, ()) and second == (b, (a, b))


def test_who_stands_where_when_nobody_can_go_on():
    built = plan([op("forward", 0), recv(0, 1), send(0, 1)], [recv(1, 0), send(1, 0)], [op("forward", 2)])
    with pytest.raises(Stuck, match=r"ranks \[0, 1\] stand still") as stuck:
        list(walk(built))
    assert stuck.value.at == {0: built.ops[0][1], 1: built.ops[1][0]}


def test_a_send_holds_its_rank_up_only_where_it_blocks():
    built = plan([send(0, 1), recv(0, 1)], [send(1, 0), recv(1, 0)])
    assert len(list(walk(built))) == 4
    with pytest.raises(Stuck) as stuck:
        list(walk(built, blocking_sends=True))
    assert [o.kind for o in stuck.value.at.values()] == ["send", "send"]
    taken = plan([send(0, 1), recv(0, 1)], [recv(1, 0), send(1, 0)])
    assert len(list(walk(taken, blocking_sends=True))) == 4


@given(st.permutations(range(5)), st.lists(st.integers(0, 9), min_size=5, max_size=5))
def test_the_earliest_rank_goes_first_whatever_the_clocks_show(ranks, start):
    """Ranks with one operation each come to it in the order of their clocks, which need not begin in order."""
    clock = [float(start[rank]) for rank in ranks]
    order = [o.rank for o, _ in walk(plan(*([op("forward", rank)] for rank in range(5))), clock=clock)]
    assert [clock[rank] for rank in order] == sorted(clock)


def steps_of(built: Plan, **how) -> int:
    """Lines of the walk's code that a walk executes: counted, not timed."""
    import sys

    count, code = 0, walk.__code__

    def local(frame, event, argument):
        nonlocal count
        count += event == "line"
        return local

    def trace(frame, event, argument):
        return local if frame.f_code is code else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for _ in walk(built, **how):
            pass
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(("name", "blocking"), [("1F1B", False), ("GPipe", False), ("ZB-V", False), ("GPipe", True)])
def test_its_cost_is_linear_in_the_number_of_operations(name, blocking):
    each = []
    for p, m in ((4, 8), (8, 16), (16, 64)):
        built = pipeline_step(build_schedule(name, p, m))
        each.append(steps_of(built, blocking_sends=blocking) / len(built))
    assert max(each) < 1.3 * min(each)          # 43 times as many operations; a quadratic walk would take 43 times each


# --------------------------------------------------------------------------------------------- ports that are shared

SECOND = Machine(Device(1.0), Link(1.0, 1.0))       # 1 flop a second; a message takes 1 s and 1 s a byte


def spans(built: Plan, machine: Machine = SECOND) -> dict[tuple, tuple[float, float]]:
    return {(s.rank, s.kind, s.op.peer): (s.start, s.end) for s in simulate(built, machine).spans}


def test_two_sends_leave_one_port_in_turn_while_the_rank_goes_on():
    """Messages of 2 and 1 bytes take 3 s and 2 s: out at 3 and 5. The rank computes from 0 to 4 beside them."""
    found = spans(plan([send(0, 1, 2), send(0, 2, 1), op("forward", 0, flops=4.0)],
                       [recv(1, 0, 2), op("forward", 1, flops=1.0)], [recv(2, 0, 1)]))
    assert found[0, "send", 1] == (0, 3) and found[0, "send", 2] == (3, 5)
    assert found[0, "forward", None] == (0, 4)
    assert found[1, "recv", 0] == (0, 3) and found[1, "forward", None] == (3, 4) and found[2, "recv", 0] == (0, 5)


def test_two_receives_come_in_at_one_port_in_turn():
    """Both of 2 bytes leave at 0 from ports of their own, out at 3; the second is in at 3 + 3, not 3."""
    found = spans(plan([recv(0, 1, 2), recv(0, 2, 2)], [send(1, 0, 2)], [send(2, 0, 2)]))
    assert found[1, "send", 0] == found[2, "send", 0] == (0, 3)
    assert found[0, "recv", 1] == (0, 3) and found[0, "recv", 2] == (3, 6)


def test_a_port_sends_and_receives_at_once():
    found = spans(plan([send(0, 1, 1), recv(0, 1, 1)], [send(1, 0, 1), recv(1, 0, 1)]))
    assert set(found.values()) == {(0, 2)}


def test_ranks_of_a_node_take_turns_on_the_link_to_others():
    """Nodes (0, 1), (2, 3); within: 1 + bytes, between: 2 + 4·bytes. 0 -> 2 and 1 -> 3, a byte each, share the port of
    their node: over at 6 and 12. 0 -> 1 goes its own way meanwhile, at 2."""
    machine = Machine(Device(1.0), Link(1.0, 1.0), node=2, between=Link(2.0, 0.25))
    found = spans(plan([send(0, 2, 1), send(0, 1, 1)], [send(1, 3, 1), recv(1, 0, 1)], [recv(2, 0, 1)],
                       [recv(3, 1, 1)]), machine)
    assert found[0, "send", 2] == (0, 6) and found[1, "send", 3] == (6, 12)
    assert found[0, "send", 1] == (0, 2) and found[1, "recv", 0] == (0, 2)
    assert found[2, "recv", 0] == (0, 6) and found[3, "recv", 1] == (0, 12)


def test_what_is_shared_is_taken_in_the_order_of_time_in_a_second_step_too():
    """Rank 0 works 5 in the first step and rank 1 works 1; in the second, both send through one port: rank 1 first."""
    def step(work):
        return plan([op("forward", 0, flops=work[0]), send(0, 2, 1)], [op("forward", 1, flops=work[1]), send(1, 2, 1)],
                    [recv(2, 1, 1), recv(2, 0, 1)])

    def shared(o):
        return "port" if o.kind == "send" else o.rank

    first = Plan("first", tuple((o,) for ops in step((5, 1)).ops for o in ops[:1] if o.kind == "forward") + ((),),
                 Mesh(data=3))
    free = {}
    lay_out(first, lambda members: members[0].flops, free=free)
    times = lay_out(step((0, 0)), lambda members: members[0].flops or 2.0 * (members[0].kind == "send"), port=shared,
                    free=free)
    assert [times[rank][1] for rank in (1, 0)] == [(1, 3), (5, 7)]       # of their sends


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_three_ranks_through_one_port_in_every_order_of_time(order):
    """Rank r is ready at order[r]; a message takes 10: who is ready first goes first, the others wait."""
    built = plan(*([op("forward", r, flops=float(order[r])), send(r, 3, 9)] for r in range(3)),
                 [recv(3, r, 9) for r in sorted(range(3), key=lambda r: order[r])])
    times = lay_out(built, lambda members: members[0].flops or 10.0 * (members[0].kind == "send"),
                    port=lambda o: "all" if o.kind == "send" else o.rank)
    for r in range(3):
        assert times[r][1] == (10 * order[r] + 0.0, 10 * order[r] + 10.0)


def test_partners_are_of_one_message_or_one_collective():
    assert partners(send(0, 1, microbatch=2)) == partners(recv(1, 0, microbatch=2))
    assert partners(send(0, 1, microbatch=2)) != partners(recv(1, 0, microbatch=3))
