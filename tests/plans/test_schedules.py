"""Pipeline schedules: orders known from the papers, PyTorch's own, and what every schedule must keep."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans.schedule import Action, Schedule, parse_order
from disttutor.plans.schedules import SCHEDULES, VIRTUAL, build_schedule, one_f_one_b

TORCH_NAMES = {"GPipe": "GPipe", "1F1B": "1F1B", "looped BFS": "LoopedBFS", "interleaved 1F1B": "Interleaved1F1B",
               "interleaved zero bubble": "InterleavedZeroBubble", "ZB-V": "ZBVZeroBubble", "DualPipeV": "DualPipeV"}
RANKS, MICROBATCHES = st.integers(1, 6), st.integers(1, 12)


@st.composite
def schedules(draw, names=tuple(SCHEDULES)):
    name = draw(st.sampled_from(names))
    stages = draw(st.integers(1, 4)) if name in VIRTUAL else None
    return build_schedule(name, draw(RANKS), draw(MICROBATCHES), stages)


# Orders worked out by hand or printed in a paper

@pytest.mark.parametrize(("name", "ranks", "microbatches", "listings"), [
    ("naive", 2, 2, ["F0 B0 F1 B1"] * 2),
    ("GPipe", 2, 3, ["F0 F1 F2 B0 B1 B2"] * 2),
    ("1F1B", 2, 4, ["F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"]),
    ("1F1B", 4, 2, ["F0 F1 B0 B1"] * 3 + ["F0 B0 F1 B1"]),
    ("1F1B", 4, 1, ["F0 B0"] * 4),
    # Zero Bubble's rule: more than s W's outstanding on stage s make a W
    ("ZB-H1", 2, 3, ["F0 F1 B0 W0 F2 B1 W1 B2 W2", "F0 B0 F1 B1 W0 F2 B2 W1 W2"]),
    ("ZB-H2", 2, 4, ["F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3", "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3"]),
    # Megatron: 2(p-1-r) + (v-1)p forwards ahead, then F and B in turn
    ("interleaved 1F1B", 2, 2, ["0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"]),
    ("looped BFS", 2, 2, ["0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0", "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0"]),
    ("ZB-V", 1, 2, ["0F0 1F0 1B0 1W0 0F1 0B0 0W0 1F1 1B1 1W1 0B1 0W1"]),
    ("DualPipeV", 1, 2, ["0F0 1F0 0F1 1B0 1W0 1F1 0B0 0W0 1B1 1W1 0B1 0W1"]),
])
def test_orders_by_hand(name, ranks, microbatches, listings):
    built = build_schedule(name, ranks, microbatches)
    assert [built.listing(rank) for rank in range(ranks)] == listings
    assert built.name == name


def test_one_stage_a_rank_makes_interleaving_plain():
    for m in (1, 3, 4, 8):
        assert build_schedule("interleaved 1F1B", 4, m, 1).orders == build_schedule("1F1B", 4, m).orders
        assert build_schedule("interleaved zero bubble", 4, m, 1).orders == build_schedule("ZB-H1", 4, m).orders


# PyTorch's own schedules

def torch_orders(name, ranks, microbatches, stages):
    """What PyTorch's pipelining does on each rank, in our actions; None where it refuses these numbers."""
    from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops
    from torch.distributed.pipelining.schedules import _ComputationType as Kind

    kinds = {Kind.FORWARD: ["forward"], Kind.BACKWARD_INPUT: ["backward"], Kind.BACKWARD_WEIGHT: ["backward_weight"],
             Kind.FULL_BACKWARD: ["backward"], Kind.REDUCE_GRAD: []}
    if name == "DualPipeV":
        kinds[Kind.FULL_BACKWARD] = ["backward", "backward_weight"]
    try:
        listed = get_schedule_ops(TORCH_NAMES[name], ranks, microbatches, stages, add_spacing=False)
    except ValueError:
        return None
    orders = []
    for rank, ops in enumerate(listed):
        order = []
        for op in filter(None, ops):
            for action in op.sub_actions or (op,):
                i = action.microbatch_index
                # In its list of 1F1B the last stage's forwards are numbered from 1; what it runs are 0 to m-1.
                late = name == "1F1B" and rank == ranks - 1 and action.computation_type == Kind.FORWARD
                order += [Action(kind, action.stage_index, i - late) for kind in kinds[action.computation_type]]
        orders.append(tuple(order))
    return tuple(orders)


@pytest.mark.parametrize("name", TORCH_NAMES)
def test_orders_are_pytorchs_wherever_it_takes_the_numbers(name):
    compared = 0
    for ranks in range(1, 7):
        for microbatches in range(1, 15):
            for stages in (2, 3) if name in VIRTUAL else (None,):
                theirs = torch_orders(name, ranks, microbatches, stages)
                if theirs is not None:
                    ours = build_schedule(name, ranks, microbatches, stages)
                    assert ours.orders == theirs, f"{ranks} ranks, {microbatches} micro-batches, {stages} stages"
                    compared += 1
    assert compared > 40


# What every schedule must keep

def deadlocked(built):
    """Works through all orders as far as they go; what each rank then waits for (empty: all are done)."""
    done, at = set(), [0] * built.ranks
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(built.orders):
            while at[rank] < len(order) and needs(built, order[at[rank]]) <= done:
                done.add(order[at[rank]])
                at[rank] += 1
                moved = True
    return {rank: order[at[rank]] for rank, order in enumerate(built.orders) if at[rank] < len(order)}


def needs(built, action):
    """What must have been done before an action, on whatever rank."""
    make = partial(Action, microbatch=action.microbatch)
    if action.kind == "forward":
        return {make("forward", action.stage - 1)} if action.stage else set()
    if action.kind == "backward_weight":
        return {make("backward", action.stage)}
    last = action.stage == built.stages - 1
    return {make("forward", action.stage)} | (set() if last else {make("backward", action.stage + 1)})


@given(schedules())
def test_every_stage_does_each_micro_batch_once_and_nobody_waits_forever(built):
    kinds = ["forward", "backward", *["backward_weight"] * built.split_backward]
    for rank, order in enumerate(built.orders):
        assert sorted(map(repr, order)) == sorted(
            repr(Action(kind, stage, i)) for kind in kinds for stage in built.stages_of[rank]
            for i in range(built.microbatches))
        for stage in built.stages_of[rank]:
            for i in range(built.microbatches):
                places = [order.index(Action(kind, stage, i)) for kind in kinds]
                assert places == sorted(places)
    assert deadlocked(built) == {}


@pytest.mark.parametrize("name", ["interleaved 1F1B", "interleaved zero bubble"])
def test_micro_batches_that_make_uneven_rounds_run_too(name):
    for ranks, stages in ((2, 2), (2, 4), (3, 3), (5, 3), (6, 2)):
        for microbatches in range(1, 50):
            assert deadlocked(build_schedule(name, ranks, microbatches, stages)) == {}


def test_two_ranks_that_wait_for_each_other_are_found():
    """The checker above is no yes-man."""
    f, b = partial(Action, "forward"), partial(Action, "backward")
    stuck = Schedule("stuck", ((f(0, 0), b(0, 0), f(0, 1), b(0, 1)), (f(1, 1), b(1, 1), f(1, 0), b(1, 0))),
                     ((0,), (1,)), 2)
    assert deadlocked(stuck) == {0: b(0, 0), 1: f(1, 1)}


# Text

@given(schedules())
def test_a_listing_reads_back_as_the_same_order(built):
    for rank in range(built.ranks):
        read = parse_order(built.listing(rank), built.stages_of[rank], built.microbatches, built.split_backward)
        assert read == built.orders[rank]


def test_typed_orders_may_have_commas_lines_and_small_letters():
    expected = (Action("forward", 1, 0), Action("backward", 1, 0))
    assert parse_order(" f0,b0 ", [1], 1) == parse_order("F0\nB0", [1], 1) == parse_order("1F0; B0", [1], 1) == expected
    assert parse_order(" , ", [1], 1) == parse_order("", [1], 1) == ()
    assert str(expected[1]) == "B0"


@pytest.mark.parametrize(("text", "stages", "split", "message"), [
    ("F0 X1", [0], False, "word 2, 'X1': an action is F or B and a micro-batch, such as F0"),
    ("F0 B", [0], False, "word 2, 'B': an action is F or B and a micro-batch"),
    ("F0 W0", [0], False, "word 2, 'W0': an action is F or B and"),
    ("F0 I0", [0], True, "word 2, 'I0': an action is F, B or W and"),
    ("F0 F4", [0], False, "word 2, 'F4': there is no micro-batch 4; there are 0 to 3"),
    ("2F0 F1", [2, 5], False, "word 2, 'F1': this rank holds stages 2 and 5; write which in front, such as 2F0"),
    ("3F0", [2, 5], False, "word 1, '3F0': there is no stage 3 on this rank; it holds stages 2 and 5"),
    ("3F0", [2], False, "word 1, '3F0': there is no stage 3 on this rank; it holds stage 2"),
    ("F0 B0 f0", [0], False, "word 3, 'f0': it stands there already, as word 1"),
    ("F0 F²", [0], False, "word 2, 'F²': an action is"),
])
def test_typed_orders_are_refused_with_the_place(text, stages, split, message):
    with pytest.raises(ValueError) as error:
        parse_order(text, stages, 4, split)
    assert message in str(error.value)


# Shape and refusals

def test_shape():
    built = build_schedule("ZB-V", 3, 5)
    assert (built.ranks, built.stages, built.microbatches, built.split_backward) == (3, 6, 5, True)
    assert built.stages_of == ((0, 5), (1, 4), (2, 3))
    assert [built.rank_of(stage) for stage in range(6)] == [0, 1, 2, 2, 1, 0]
    with pytest.raises(ValueError, match="no stage 6; its stages are 0 to 5"):
        built.rank_of(6)
    assert build_schedule("looped BFS", 2, 1, 3).stages_of == ((0, 2, 4), (1, 3, 5))
    assert not one_f_one_b(2, 2).split_backward


@pytest.mark.parametrize(("call", "message"), [
    (lambda: build_schedule("2F2B", 2, 2), "unknown schedule '2F2B'; schedules that work: naive, GPipe, 1F1B"),
    (lambda: build_schedule("1F1B", 2, 2, 2), "1F1B puts 1 stage on each rank, not 2; those that leave a choice are"),
    (lambda: build_schedule("ZB-V", 2, 2, 3), "ZB-V puts 2 stages on each rank, not 3"),
    (lambda: build_schedule("looped BFS", 2, 2, 0), "virtual_stages is 0; it must be a whole number, 1 or more"),
    *((partial(build, 0, 4), "ranks is 0; it must be a whole number, 1 or more") for build in SCHEDULES.values()),
    *((partial(build, 4, 0), "microbatches is 0; it must be a whole number") for build in SCHEDULES.values()),
    (lambda: one_f_one_b(2, 1.5), "microbatches is 1.5; it must be a whole number, 1 or more"),
    (lambda: one_f_one_b(True, 1), "ranks is True"),
    (lambda: Action("update", 0, 0), "unknown kind of action 'update'; kinds that work: forward, backward, backward_w"),
    (lambda: Action("forward", -1, 0), "stage is -1; it must be a whole number, 0 or more"),
    (lambda: Schedule("s", ((),), ((0,), (1,)), 1), "has 1 orders and stages for 2 ranks"),
    (lambda: Schedule("s", ((), ()), ((0,), (2,)), 1), "puts stages [0, 2] on its ranks; it needs each of 0 to 1 once"),
    (lambda: Schedule("s", ((Action("forward", 1, 0),), ()), ((0,), (1,)), 1), "rank 0 has F0 of stage 1; it holds st"),
    (lambda: Schedule("s", ((Action("forward", 0, 1),),), ((0,),), 1), "rank 0 has F1 of stage 0; it holds stage 0"),
    (lambda: Schedule("s", ((Action("backward_weight", 0, 0),),), ((0,),), 1), "rank 0 has W0, but B makes the weig"),
])
def test_refusals_say_what_would_work(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
