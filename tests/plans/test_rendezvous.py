"""Plans put in an order that runs with sends that block, and still do the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans import ALGORITHMS, SCHEDULES, PlanError, build_schedule, collective, pipeline_step, rendezvous

COMPUTE = ("forward", "backward", "backward_weight", "update")


def test_two_ranks_that_both_send_first():
    """Case A-27: 1F1B on 2 ranks, as everybody writes it first, and in an order that runs."""
    plan = pipeline_step(build_schedule("1F1B", 2, 4), boundary_bytes=8 * 2**20)
    with pytest.raises(PlanError, match="a cycle: rank 0's send boundary 0 microbatch 1 to rank 1 waits for rank 1's "
                                        "recv boundary 0 microbatch 1 from rank 0, which comes after rank 1's send"):
        plan.check(blocking_sends=True)
    plan.check()
    ordered = rendezvous(plan)
    ordered.check(blocking_sends=True)
    words = {"forward": "F", "backward": "B"}
    assert [" ".join(words[op.kind] + str(op.microbatch) for op in ops if op.kind in words) for ops in ordered.ops] == [
        "F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"]


@given(st.sampled_from(list(SCHEDULES)), st.integers(1, 5), st.integers(1, 9))
def test_every_pipeline(name, p, m):
    plan = pipeline_step(build_schedule(name, p, m), boundary_bytes=4)
    ordered = rendezvous(plan)
    ordered.check(blocking_sends=True)
    for before, after in zip(plan.ops, ordered.ops, strict=True):
        assert sorted(map(repr, before)) == sorted(map(repr, after))                 # nothing lost, nothing new
        assert [op for op in before if op.kind in COMPUTE] == [op for op in after if op.kind in COMPUTE]


@given(st.sampled_from([(k, a) for k, algorithms in ALGORITHMS.items() for a in algorithms]), st.integers(1, 7),
       st.integers(0, 20))
def test_every_collective(which, world, elements):
    plan = collective(*which, world, elements)
    try:
        ordered = rendezvous(plan)
    except PlanError as error:
        # Two ranks swap what both of them hold, so each send must leave before the other's arrives.
        assert which[1] == "recursive doubling" and "no order runs with blocking sends: rank" in error.faults[0]
        return
    ordered.check(blocking_sends=True)              # its goal too: every sum is whole
    assert ordered.check() == plan.check()


def test_a_plan_that_cannot_run_is_refused():
    plan = pipeline_step(build_schedule("1F1B", 2, 4))
    broken = type(plan)(plan.name, (plan.ops[0][1:], plan.ops[1]), plan.mesh)
    with pytest.raises(PlanError):
        rendezvous(broken)
