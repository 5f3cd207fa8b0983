"""A plan that cannot run is refused before anything starts, with rank and operation of each fault."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans import Gradient, Mesh, Op, Plan, PlanError, data_parallel_step


def op(kind, rank, **what):
    return Op(kind=kind, rank=rank, **what)


def plan(*ops, **axes) -> Plan:
    return Plan("made by hand", tuple(map(tuple, ops)), Mesh(**(axes or {"data": len(ops)})))


def faults(*ops, **axes) -> list[str]:
    with pytest.raises(PlanError) as error:
        plan(*ops, **axes).check()
    assert str(error.value) == "plan 'made by hand' cannot run: " + "; ".join(error.value.faults)
    return error.value.faults


def send(rank, peer, **what):
    return op("send", rank, peer=peer, **what)


def recv(rank, peer, **what):
    return op("recv", rank, peer=peer, **what)


def reduce(rank, bucket, group=(0, 1), **what):
    return op("all_reduce", rank, group=group, bucket=bucket, **{"nbytes": 8, **what})


def test_a_good_plan_is_counted():
    report = plan([op("forward", 0, microbatch=0), send(0, 1, nbytes=100), reduce(0, 0)],
                  [recv(1, 0, nbytes=100), op("forward", 1, microbatch=0), reduce(1, 0)]).check()
    assert report.nbytes == (108, 8)            # a receive counts at its sender
    assert report.messages == (2, 1)
    assert report.peak_in_flight == (1, 1)


def test_microbatches_in_flight():
    def order(*words):
        return [op({"F": "forward", "B": "backward"}[w[0]], 0, microbatch=int(w[1])) for w in words]

    assert plan(order("F0", "F1", "F2", "B0", "B1", "B2")).check().peak_in_flight == (3,)
    assert plan(order("F0", "F1", "B0", "F2", "B1", "B2")).check().peak_in_flight == (2,)


def test_an_operation_listed_twice():
    assert faults([op("update", 0), op("update", 0)]) == ["rank 0 does update 2 times"]


def test_a_send_without_its_receive():
    assert faults([send(0, 1, microbatch=3)], []) == [
        "rank 0's send microbatch 3 to rank 1 has no receive on rank 1"]


def test_a_receive_without_its_send():
    assert faults([], [recv(1, 0, microbatch=3)]) == [
        "rank 1's recv microbatch 3 from rank 0 has no send on rank 0"]


def test_a_receive_of_another_size():
    assert faults([send(0, 1, nbytes=8)], [recv(1, 0, nbytes=4)]) == [
        "send to rank 1 has different sizes in bytes (rank 0: 8, rank 1: 4)"]


def test_a_collective_that_one_rank_does_not_enter():
    assert faults([reduce(0, 0)], []) == ["all_reduce bucket 0 of ranks [0, 1] is not entered by rank 1"]
    group = (0, 1, 2)
    assert faults([reduce(0, 0, group)], [], []) == [
        "all_reduce bucket 0 of ranks [0, 1, 2] is not entered by ranks [1, 2]"]


def test_collectives_in_another_order():
    assert faults([reduce(0, 0), reduce(0, 1)], [reduce(1, 1), reduce(1, 0)]) == [
        "rank 0 enters all_reduce bucket 0 when rank 1 enters all_reduce bucket 1"]


def test_a_collective_of_another_size():
    assert faults([reduce(0, 0)], [reduce(1, 0, nbytes=16)]) == [
        "all_reduce bucket 0 has different sizes in bytes (rank 0: 8, rank 1: 16)"]


def test_a_wait_for_nothing():
    (fault,) = faults([op("update", 0, after=(op("forward", 0, microbatch=5).key,))])
    assert fault == "rank 0's update waits for rank 0's forward microbatch 5, which nobody does"


def test_a_backward_without_its_forward_or_before_it():
    assert faults([op("backward", 0, microbatch=0)]) == ["rank 0 does backward microbatch 0 before its forward"]
    assert faults([op("backward", 0, microbatch=1), op("forward", 0, microbatch=1)]) == [
        "rank 0 does backward microbatch 1 before its forward"]


def test_a_microbatch_that_a_stage_does_not_process():
    both = [op("forward", 0, stage=0, microbatch=m) for m in (0, 1)]
    assert faults(both, [op("forward", 1, stage=1, microbatch=0)], pipeline=2) == [
        "stage 1 has no forward of micro-batch 1"]


def test_a_cycle_through_waits():
    a, b = op("forward", 0), op("all_gather", 0, group=(0,))
    (fault,) = faults([replace(a, after=(b.key,)), replace(b, after=(a.key,))])
    assert fault == "a cycle: rank 0's forward waits for rank 0's all_gather, which comes after rank 0's forward"


def test_a_cycle_through_receives():
    """Each receives before it sends: the deadlock that everybody writes once."""
    (fault,) = faults([recv(0, 1), send(0, 1)], [recv(1, 0), send(1, 0)])
    assert fault == ("a cycle: rank 0's recv from rank 1 waits for rank 1's send to rank 0, which comes after rank 1's "
                     "recv from rank 0; rank 1's recv from rank 0 waits for rank 0's send to rank 1, which comes after "
                     "rank 0's recv from rank 1")
    assert plan([send(0, 1), recv(0, 1)], [send(1, 0), recv(1, 0)]).check().messages == (1, 1)


def test_a_cycle_through_collectives_of_two_groups():
    both, other = (0, 1), (0, 1, 2)
    a = [first := reduce(0, 0, both), reduce(0, 1, other, after=(first.key,))]
    b = [first := reduce(1, 1, other), reduce(1, 0, both, after=(first.key,))]
    (fault,) = faults(a, b, [reduce(2, 1, other)])
    assert fault == ("a cycle: rank 0's all_reduce bucket 1 waits for rank 1's all_reduce bucket 0; rank 1's "
                     "all_reduce bucket 0 waits for rank 0's all_reduce bucket 1")
    assert plan([reduce(0, 0, both), reduce(0, 1, other)], [reduce(1, 1, other), reduce(1, 0, both)],
                [reduce(2, 1, other)]).check().messages == (2, 2, 1)      # launched without a wait between: no cycle


def test_a_collective_that_waits_for_its_own_partner():
    (fault,) = faults([reduce(0, 0)], [reduce(1, 0, after=(reduce(0, 0).key,))])
    assert fault == "a cycle: rank 1's all_reduce bucket 0 waits for rank 1's all_reduce bucket 0"


GOOD = data_parallel_step([Gradient("a", 10), Gradient("b", 20)], Mesh(data=3), bucket_bytes=50)


@given(st.integers(0, 2), st.integers(0, len(GOOD.ops[0]) - 2))
def test_any_operation_left_out_is_missed(rank, place):
    """Forward, backward and all-reduce of any rank: without it, the plan is refused."""
    ops = list(GOOD.ops)
    ops[rank] = ops[rank][:place] + ops[rank][place + 1:]
    with pytest.raises(PlanError, match=f"rank {rank}"):
        replace(GOOD, ops=tuple(ops)).check()


def test_a_plan_has_a_list_for_each_rank():
    with pytest.raises(ValueError, match="has 1 lists of operations for a mesh of 2 ranks"):
        Plan("x", ((),), Mesh(data=2))
    with pytest.raises(ValueError, match="update of rank 1 stands in the list of rank 0"):
        Plan("x", ((op("update", 1),), ()), Mesh(data=2))


@pytest.mark.parametrize(("make", "message"), [
    (lambda: op("wait", 0), "unknown kind of operation 'wait'; kinds that work: forward"),
    (lambda: op("forward", 0, flops=-1.0), "negative size"),
    (lambda: op("forward", 0, nbytes=-1), "negative size"),
    (lambda: op("all_reduce", 2, group=(0, 1)), r"put on rank 2, which is not in its group \(0, 1\)"),
    (lambda: op("send", 0), "names no peer"),
])
def test_impossible_operations_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_an_operation_is():
    one = op("backward", 1, microbatch=3, bucket=0)
    assert (one.lane, one.label) == ("compute", "backward microbatch 3 bucket 0")
    assert one.key == (1, "backward", None, (("microbatch", 3), ("bucket", 0)))
    assert (send(0, 1).lane, recv(1, 0, chunk=2).label) == ("comm", "recv chunk 2 from rank 0")
