"""The plan of a pipeline's step by hand; wrong ones refused with rank and operation; what it takes, by hand and by the
papers' closed forms."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from disttutor.cost import simulate
from disttutor.plans import (
    BUBBLES,
    SCHEDULES,
    Action,
    Device,
    Link,
    Machine,
    Plan,
    PlanError,
    Schedule,
    StageWork,
    build_schedule,
    forward_pass,
    pipeline_step,
)

F, B, W = "forward", "backward", "backward_weight"


def step(name: str, p: int, m: int, **how) -> Plan:
    return pipeline_step(build_schedule(name, p, m), **how)


def labels(plan: Plan, rank: int) -> list[str]:
    return [op.label for op in plan.ops[rank]]


# ------------------------------------------------------------------------------------------------------------- by hand


def test_two_stages_and_two_micro_batches_by_hand():
    plan = step("1F1B", 2, 2, boundary_bytes=10, samples=[3, 2], work=[StageWork(1, 2, 4), StageWork(10, 20, 40)],
                tied=[((0, 1), 99)])
    assert labels(plan, 0) == [
        "forward stage 0 microbatch 0", "send boundary 0 microbatch 0 to rank 1", "forward stage 0 microbatch 1",
        "send boundary 0 microbatch 1 to rank 1", "recv boundary 0 microbatch 0 from rank 1",
        "backward stage 0 microbatch 0", "recv boundary 0 microbatch 1 from rank 1", "backward stage 0 microbatch 1",
        "all_reduce bucket 0", "all_reduce", "update"]
    assert labels(plan, 1) == [
        "recv boundary 0 microbatch 0 from rank 0", "forward stage 1 microbatch 0", "backward stage 1 microbatch 0",
        "send boundary 0 microbatch 0 to rank 0", "recv boundary 0 microbatch 1 from rank 0",
        "forward stage 1 microbatch 1", "backward stage 1 microbatch 1", "send boundary 0 microbatch 1 to rank 0",
        "all_reduce bucket 0", "all_reduce", "update"]
    assert [op.nbytes for op in plan.ops[0]] == [0, 30, 0, 20, 30, 0, 20, 0, 99, 40, 0]
    assert [op.flops for op in plan.ops[0]] == [3, 0, 2, 0, 0, 18, 0, 12, 0, 0, 0]       # B makes W's part too
    assert [op.flops for op in plan.ops[1] if op.flops] == [30, 180, 20, 120]
    report = plan.check()
    assert report.nbytes == (30 + 20 + 99 + 40,) * 2 and report.messages == (4, 4) and report.peak_in_flight == (2, 1)


def test_backward_in_halves_and_another_size_for_the_way_back():
    plan = step("ZB-H1", 2, 1, work=StageWork(1, 2, 4), boundary_bytes=lambda boundary, m: 7,
                gradient_bytes=lambda boundary, m: 5)
    assert [(op.kind, op.flops) for op in plan.ops[1] if op.flops] == [(F, 1), (B, 2), (W, 4)]
    assert [(op.kind, op.nbytes) for op in plan.ops[0] if op.peer is not None] == [("send", 7), ("recv", 5)]
    plan.check()


def test_stages_on_one_rank_pass_by_hand():
    """Six stages in a V on three ranks: boundary 2 lies within rank 2, all others between ranks."""
    plan = step("ZB-V", 3, 4)
    assert {op.boundary for op in plan if op.peer is not None} == {0, 1, 3, 4}
    assert not any(op.peer is not None for op in step("interleaved 1F1B", 1, 4))


def test_a_forward_pass_goes_through_all_stages():
    plan = forward_pass([(0, 2), (1, 3)], 2, 8)
    assert labels(plan, 1)[:3] == ["recv boundary 0 microbatch 0 from rank 0", "forward stage 1 microbatch 0",
                                   "send boundary 1 microbatch 0 to rank 0"]
    assert plan.check().messages == (4, 2)


@given(st.sampled_from(list(SCHEDULES)), st.integers(1, 6), st.integers(1, 12))
def test_every_plan_is_sound_and_its_messages_are_two_a_boundary_and_micro_batch(name, p, m):
    built = build_schedule(name, p, m)
    rank_of = [built.rank_of(s) for s in range(built.stages)]
    crossed = sum(a != b for a, b in zip(rank_of, rank_of[1:], strict=False))
    report = pipeline_step(built, boundary_bytes=10).check()
    assert sum(report.messages) == 2 * m * crossed + (p if p > 1 else 0)        # and the sums at the end
    assert sum(report.nbytes) == 20 * m * crossed + (40 * p if p > 1 else 0)


# ------------------------------------------------------------------------------------------------------------- refusals


def faults(plan: Plan, **how) -> list[str]:
    with pytest.raises(PlanError) as error:
        plan.check(**how)
    return error.value.faults


def without(plan: Plan, *about: tuple) -> Plan:
    """The plan without the operations of these (rank, kind, micro-batch), and without waits for them."""
    kept = [[o for o in ops if (o.rank, o.kind, o.microbatch) not in about] for ops in plan.ops]
    keys = {o.key for ops in kept for o in ops}
    return replace(plan, ops=tuple(tuple(replace(o, after=tuple(k for k in o.after if k in keys)) for o in ops)
                                   for ops in kept))


def moved(plan: Plan, rank: int, source: int, target: int) -> Plan:
    """The plan with one operation of a rank put elsewhere."""
    ops = [list(o) for o in plan.ops]
    ops[rank].insert(target, ops[rank].pop(source))
    return replace(plan, ops=tuple(map(tuple, ops)))


GOOD = step("1F1B", 2, 3)
HALVES = step("ZB-H1", 2, 3)


def test_a_missing_receive_and_a_missing_send():
    assert faults(without(GOOD, (1, "recv", 1))) == [
        "rank 0's send boundary 0 microbatch 1 to rank 1 has no receive on rank 1"]
    assert faults(without(GOOD, (0, "send", 1))) == [
        "rank 1's recv boundary 0 microbatch 1 from rank 0 has no send on rank 0"]


def test_a_message_that_is_missing_on_both_sides():
    assert faults(without(GOOD, (0, "send", 1), (1, "recv", 1))) == [
        "rank 0 does not send the result of forward stage 0 microbatch 1 to rank 1 after it",
        "rank 1 does forward stage 1 microbatch 1 without having received what it needs from rank 0"]


def test_work_before_its_input_and_a_message_before_its_work():
    assert labels(GOOD, 1)[:2] == ["recv boundary 0 microbatch 0 from rank 0", "forward stage 1 microbatch 0"]
    assert faults(moved(GOOD, 1, 0, 1)) == [
        "rank 1 does forward stage 1 microbatch 0 without having received what it needs from rank 0"]
    assert faults(moved(GOOD, 0, 1, 0)) == [
        "rank 0 does not send the result of forward stage 0 microbatch 0 to rank 1 after it"]


def test_a_cycle_names_who_waits_for_what():
    """Rank 0 wants its first gradient before it has sent what that is made of."""
    place = labels(GOOD, 0).index("recv boundary 0 microbatch 0 from rank 1")
    (fault,) = faults(moved(GOOD, 0, place, 1))
    assert fault == (
        "a cycle: rank 0's recv boundary 0 microbatch 0 from rank 1 waits for rank 1's send boundary 0 microbatch 0 to "
        "rank 0, which comes after rank 1's recv boundary 0 microbatch 0 from rank 0; rank 1's recv boundary 0 "
        "microbatch 0 from rank 0 waits for rank 0's send boundary 0 microbatch 0 to rank 1, which comes after rank "
        "0's recv boundary 0 microbatch 0 from rank 1")


def test_a_forgotten_micro_batch():
    on_one = without(GOOD, (0, F, 2), (0, B, 2))
    assert faults(on_one)[:2] == ["stage 0 has no backward of micro-batch 2", "stage 0 has no forward of micro-batch 2"]
    everywhere = without(GOOD, *((rank, kind, 2) for rank in (0, 1) for kind in (F, B, "send", "recv")))
    assert faults(everywhere) == [
        f"stage {stage} has no {kind} of micro-batch 2 on rank {stage}" for stage in (0, 1) for kind in (F, B)]


def test_a_weight_half_that_is_missing_everywhere():
    without_w = without(HALVES, *((rank, W, m) for rank in (0, 1) for m in range(3)))
    assert faults(without_w) == [f"stage {stage} has no backward_weight of micro-batch {m} on rank {stage}"
                                 for stage in (0, 1) for m in range(3)]


def test_a_wait_for_what_nobody_does_comes_after_what_is_missing():
    ops = [tuple(op for op in ops if (op.kind, op.microbatch) != (B, 2)) for ops in GOOD.ops[:1]]
    found = faults(replace(GOOD, ops=(*ops, GOOD.ops[1])))
    assert found[0] == "stage 0 has no backward of micro-batch 2"
    assert found[-1] == "rank 0's all_reduce waits for rank 0's backward stage 0 microbatch 2, which nobody does"


def test_work_done_twice():
    ops = list(GOOD.ops)
    ops[1] = (*ops[1][:2], *ops[1][1:])
    assert faults(replace(GOOD, ops=tuple(ops))) == ["rank 1 does forward stage 1 microbatch 0 2 times"]


def test_backward_before_forward_and_weight_half_before_input_half():
    assert faults(moved(GOOD, 1, 2, 1)) == ["rank 1 does backward stage 1 microbatch 0 before its forward"]
    at = [(op.kind, op.microbatch) for op in HALVES.ops[1]]
    early = moved(HALVES, 1, at.index((W, 0)), at.index((B, 0)))
    assert faults(early) == ["rank 1 does backward_weight stage 1 microbatch 0 before the backward of its input"]


def test_stages_of_one_rank_in_the_wrong_order():
    """No message would be missing: what stage 1 needs lies on its own rank, once stage 0 has made it."""
    wrong = Schedule("mine", ((Action(F, 1, 0), Action(F, 0, 0), Action(B, 0, 0), Action(B, 1, 0)),), ((0, 1),), 1)
    assert faults(pipeline_step(wrong)) == [
        "rank 0 does backward stage 0 microbatch 0 without having done backward stage 1 microbatch 0, which is its own",
        "rank 0 does forward stage 1 microbatch 0 without having done forward stage 0 microbatch 0, which is its own"]


def test_an_update_that_is_missing_or_early():
    assert faults(without(GOOD, (1, "update", None))) == ["rank 1 never updates its weights"]
    alone = step("GPipe", 1, 2)
    assert faults(moved(alone, 0, len(alone.ops[0]) - 1, 3)) == [
        "rank 0 updates its weights before its backward stage 0 microbatch 1"]


# ------------------------------------------------------------------------------------------------- sends that hold up


def test_which_schedules_run_with_sends_that_wait_for_their_receive():
    """Alone those in which no two neighbours ever want to give each other something at once. Four ranks, eight
    micro-batches; on two ranks it is the same."""
    for p in (2, 4):
        passing = set()
        for name in SCHEDULES:
            try:
                step(name, p, 8).check(blocking_sends=True)
                passing.add(name)
            except PlanError as error:
                assert "a cycle: rank " in str(error) and "'s send boundary " in str(error)
        assert passing == {"naive", "GPipe"}


def test_a27_the_cycle_of_1f1b_by_name():
    """Case A-27: rank 0 wants to hand on micro-batch 1, rank 1 the gradient of micro-batch 0, and neither takes it."""
    (fault,) = faults(step("1F1B", 2, 4), blocking_sends=True)
    assert fault == (
        "a cycle: rank 0's send boundary 0 microbatch 1 to rank 1 waits for rank 1's recv boundary 0 microbatch 1 from "
        "rank 0, which comes after rank 1's send boundary 0 microbatch 0 to rank 0; rank 1's send boundary 0 "
        "microbatch 0 to rank 0 waits for rank 0's recv boundary 0 microbatch 0 from rank 1, which comes after rank "
        "0's send boundary 0 microbatch 1 to rank 1")
    step("1F1B", 2, 1).check(blocking_sends=True)


# ----------------------------------------------------------------------------------------------------------- its time

UNIT = Machine(Device(1.0), Link())                 # a flop takes a second, a message no time


@pytest.mark.parametrize(("name", "p", "m", "work", "makespan", "idle"), [
    ("1F1B", 4, 8, StageWork(1, 1, 0), 22, 0.2727),         # (m + p - 1)(F + B) = 11·2; 6/22
    ("GPipe", 4, 8, StageWork(1, 1, 0), 22, 0.2727),
    ("1F1B", 4, 8, StageWork(1, 1, 1), 33, 0.2727),         # B takes twice as long
    ("ZB-H1", 4, 8, StageWork(1, 1, 1), 27, 0.1111),        # m(F + B + W) + (p - 1)(F + B - W) = 24 + 3
    ("GPipe", 4, 2, StageWork(1, 1, 0), 10, 0.6),           # case A-28: 2·(4 + 2 - 1) = 10, idle 3/5
    ("1F1B", 4, 2, StageWork(1, 1, 0), 10, 0.6),
    ("GPipe", 4, 1, StageWork(1, 1, 0), 8, 0.75),
    ("1F1B", 4, 1, StageWork(1, 1, 0), 8, 0.75),
])
def test_times_by_hand(name, p, m, work, makespan, idle):
    trace = simulate(step(name, p, m, work=work), UNIT)
    assert trace.makespan == makespan
    each = m * (work.forward + work.backward_input + work.backward_weight)
    assert 1 - each / trace.makespan == pytest.approx(idle, abs=5e-5)
    for rank in range(p):
        assert sum(s.duration for s in trace.of(rank, "compute")) == each


@settings(max_examples=150)
@given(st.sampled_from(sorted(BUBBLES)), st.integers(1, 6), st.integers(1, 12), st.sampled_from([(2, 2, 2), (3, 5, 1)]))
def test_the_time_and_the_activations_are_the_closed_forms(name, p, m, times):
    built = build_schedule(name, p, m)
    v = len(built.stages_of[0])
    try:
        bubble = BUBBLES[name](p, m, *times)
    except ValueError:
        assume(False)                               # the form does not hold there, and says so
    plan = pipeline_step(built, work=StageWork(*(t / v for t in times)))
    assert simulate(plan, UNIT).makespan == pytest.approx(bubble.makespan)
    assert plan.check().peak_in_flight == bubble.in_flight


def test_messages_that_take_time_by_hand():
    """Two stages, one micro-batch of 10 bytes; F = 1, B = 2; a message takes 0.5 + 10/5 = 2.5, and comes back."""
    plan = step("GPipe", 2, 1, work=StageWork(1, 1, 1), boundary_bytes=10, header_bytes=0)
    trace = simulate(plan, Machine(Device(1.0), Link(0.5, 5.0)))
    ends = {(s.rank, s.kind): s.end for s in trace.spans}
    order = ((0, F), (1, "recv"), (1, F), (1, B), (0, "recv"), (0, B))
    assert [ends[which] for which in order] == [1, 3.5, 4.5, 6.5, 9, 11]
