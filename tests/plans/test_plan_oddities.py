"""Orders as a learner may type them, and groups that lie across nodes."""

import pytest

from disttutor.cost import closed_form, simulate
from disttutor.plans import Action, Device, Link, Machine, Mesh, Op, Plan, Schedule, parse_order


@pytest.mark.parametrize(("text", "words"), [
    ("F" + "9" * 5000, "word 1, 'F9999999999999999999'...: an action is F or B and a micro-batch, such as F0"),
    ("F0 " + "F0" * 50_000, "word 2, 'F0F0F0F0F0F0F0F0F0F0'...: an action is F or B"),
    ("F0 \N{GRINNING FACE}", "word 2, '\N{GRINNING FACE}': an action is F or B"),
    ("F\N{ARABIC-INDIC DIGIT THREE}", "word 1, .*: an action is F or B"),
    ("F-1", "word 1, 'F-1': an action is F or B"),
    ("F999999999", "word 1, 'F999999999': there is no micro-batch 999999999; there are 0 to 3"),
    ("0" * 30 + "F0", "word 1, '00000000000000000000'...: an action is"),
])
def test_words_that_are_no_action_are_told_in_one_line(text, words):
    with pytest.raises(ValueError, match=words) as error:
        parse_order(text, [0], 4)
    assert len(str(error.value)) < 120


@pytest.mark.parametrize(("group", "seconds"), [
    ((0, 1), 0.4),              # of one node: 2 steps of 50 bytes at 250 bytes/s
    ((0, 2), 4.0),              # one of each node: at 25 bytes/s, however few they are
    ((1, 2), 4.0),
    ((2, 3), 0.4),
    ((0, 1, 2, 3), 6.0),        # 6 steps of 25 bytes, as slow as the slowest hop
])
def test_a_group_across_nodes_is_as_slow_as_the_link_between_them(group, seconds):
    machine = Machine(Device(), Link(0.0, 250.0), node=2, between=Link(0.0, 25.0))
    ops = tuple((Op(kind="all_reduce", rank=rank, nbytes=100, group=group),) if rank in group else ()
                for rank in range(4))
    assert simulate(Plan("sum", ops, Mesh(data=4)), machine).makespan == pytest.approx(seconds)
    assert machine.collective_seconds("all_reduce", 100, group) == pytest.approx(seconds)


F0 = Action("forward", 0, 0)


@pytest.mark.parametrize(("orders", "stages_of", "error", "words"), [
    ((("F0", "B0"),), ((0,),), TypeError, "the order of rank 0 has 'F0' of type str in it; it takes Actions, such as"),
    (("F0 B0",), ((0,),), TypeError, "the order of rank 0 has 'F' of type str in it"),
    (((F0,),), (0,), TypeError, r"stages_of is \(0,\); it takes a tuple for each rank"),
    (None, ((0,),), TypeError, "orders is None; it takes a tuple for each rank"),
    (((F0,), ()), ((0,), ()), ValueError, "puts no stage on rank 1; each rank needs one or more"),
    (((F0,), (F0,)), ((0,), ()), ValueError, "puts no stage on rank 1"),
])
def test_schedules_whose_parts_are_something_else(orders, stages_of, error, words):
    with pytest.raises(error, match=f"schedule 'mine'.*{words}"):
        Schedule("mine", orders, stages_of, 1)


def test_an_order_of_no_stage():
    with pytest.raises(ValueError, match="there is no order without a stage"):
        parse_order("F0", [], 4)


@pytest.mark.parametrize("nbytes", [-1, float("nan"), float("inf"), "8", None])
def test_a_closed_form_of_no_size(nbytes):
    with pytest.raises(ValueError, match="nbytes is .*; it must be a number of bytes, 0 or more"):
        closed_form("all_reduce", "ring", 4, nbytes, Link(1e-3, 1e9))
