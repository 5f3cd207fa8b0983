"""Plans of a pipeline that were tampered with: refused, or harmless.

Whether one still computes the same is decided by a small executor of its own: tokens that say what they were made of,
passed from rank to rank.
"""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from disttutor.plans import SCHEDULES, Op, Plan, PlanError, Schedule, build_schedule, pipeline_step

F, B, W = "forward", "backward", "backward_weight"


def computes(plan: Plan, built: Schedule) -> bool:
    """Whether ranks that go through their lists, passing on what they have made, come to the whole gradient: every
    stage's from each micro-batch, made of the right things, before each rank's one update."""
    last, rank_of = built.stages - 1, [built.rank_of(s) for s in range(built.stages)]
    half = built.split_backward
    here: list[dict] = [{} for _ in plan.ops]                   # what a rank holds
    wire: dict[tuple, object] = {}                              # what is under way
    entered: dict[tuple, set[int]] = {}
    gradient: set[tuple[int, int]] = set()
    updated: dict[int, frozenset] = {}
    place, over = [0] * len(plan.ops), set()

    def finish(op: Op) -> bool:
        """One operation, if its rank can do it now."""
        mine, at = here[op.rank], (op.stage, op.microbatch)
        if not all(key in over for key in op.after):
            return False
        if op.kind == "send":
            forth = rank_of[op.boundary] == op.rank
            made = (F, op.boundary, op.microbatch) if forth else (B, op.boundary + 1, op.microbatch)
            wire[op.rank, op.peer, op.subject] = mine.get(made)
        elif op.kind == "recv":
            if (op.peer, op.rank, op.subject) not in wire:
                return False
            forth = rank_of[op.boundary] != op.rank
            made = (F, op.boundary, op.microbatch) if forth else (B, op.boundary + 1, op.microbatch)
            mine[made] = wire.pop((op.peer, op.rank, op.subject))
        elif op.kind == F:
            mine[F, *at] = at[0] == 0 or mine.get((F, at[0] - 1, at[1]))
        elif op.kind == B:
            sound = mine.get((F, *at)) and (at[0] == last or mine.get((B, at[0] + 1, at[1])))
            mine[B, *at] = sound
            if sound and not half:
                gradient.add(at)
        elif op.kind == W:
            if mine.get((B, *at)):
                gradient.add(at)
        elif op.kind == "update":
            updated[op.rank] = frozenset(gradient)
        return True

    going = True
    while going:
        going = False
        for rank, ops in enumerate(plan.ops):
            while place[rank] < len(ops):
                op = ops[place[rank]]
                if op.group:
                    if not all(key in over for key in op.after):
                        break
                    entered.setdefault((op.group, op.subject), set()).add(rank)
                    if entered[op.group, op.subject] == set(op.group):
                        over |= {(r, op.kind, None, op.subject) for r in op.group}
                elif not finish(op):
                    break
                else:
                    over.add(op.key)
                place[rank] += 1
                going = True
    everything = {(stage, m) for stage in range(last + 1) for m in range(built.microbatches)}
    return (all(at == len(ops) for at, ops in zip(place, plan.ops, strict=True))
            and all({at for at in everything if rank_of[at[0]] == rank} <= updated.get(rank, frozenset())
                    for rank in range(len(plan.ops)))
            and all(len(who) == len(group) for (group, _), who in entered.items()) and not wire)


@given(st.sampled_from(list(SCHEDULES)), st.integers(1, 6), st.integers(1, 12))
def test_the_judge_finds_good_plans_good(name, p, m):
    built = build_schedule(name, p, m)
    assert computes(pipeline_step(built, tied=[((0, p - 1), 8)] if p > 1 else ()), built)


@settings(max_examples=200)
@given(st.sampled_from(list(SCHEDULES)), st.integers(2, 6), st.integers(1, 12), st.data())
def test_no_operation_can_be_left_out(name, p, m, data):
    plan = pipeline_step(build_schedule(name, p, m))
    rank = data.draw(st.integers(0, p - 1))
    place = data.draw(st.integers(0, len(plan.ops[rank]) - 1))
    ops = list(plan.ops)
    gone = ops[rank][place]
    ops[rank] = ops[rank][:place] + ops[rank][place + 1:]
    with pytest.raises(PlanError) as error:
        replace(plan, ops=tuple(ops)).check()
    message = str(error.value)
    assert f"rank {rank}" in message or f"stage {gone.stage}" in message
    assert gone.kind in message or gone.peer is not None        # a lost end of a message: its other end is named


@settings(max_examples=400)
@given(st.sampled_from(list(SCHEDULES)), st.integers(1, 6), st.integers(1, 12), st.data())
def test_two_neighbours_swapped_are_refused_or_harmless(name, p, m, data):
    built = build_schedule(name, p, m)
    plan = pipeline_step(built)
    rank = data.draw(st.integers(0, p - 1))
    assume(len(plan.ops[rank]) > 1)
    place = data.draw(st.integers(0, len(plan.ops[rank]) - 2))
    ops = [list(o) for o in plan.ops]
    ops[rank][place:place + 2] = ops[rank][place + 1], ops[rank][place]
    swapped = replace(plan, ops=tuple(map(tuple, ops)))
    try:
        swapped.check()
    except PlanError as error:
        assert not computes(swapped, built), f"refused without need: {error}"
    else:
        assert computes(swapped, built)
