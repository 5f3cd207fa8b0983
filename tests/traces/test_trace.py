"""A trace: order of its spans, its steps, its text."""

import pytest

from disttutor.plans import Op
from disttutor.traces import Counter, Message, Span, Trace, messages


def span(kind, start, end, rank=0, step=0, **what):
    return Span(Op(kind=kind, rank=rank, **what), start, end, step=step)


TRACE = Trace(
    (span("update", 5, 6, step=1), span("forward", 0, 2), span("forward", 4, 5, step=1), span("forward", 1, 3, rank=1)),
    2, counters=(Counter(0, "held", 4.0, 7),))


def test_spans_are_in_order_of_time():
    assert [s.start for s in TRACE.spans] == [0, 1, 4, 5]
    assert (TRACE.start, TRACE.end, TRACE.makespan, TRACE.steps) == (0, 6, 6, [0, 1])
    assert [s.kind for s in TRACE.of(0)] == ["forward", "forward", "update"]
    assert [s.kind for s in TRACE.of(0, "comm")] == []


def test_some_steps_alone_begin_at_zero():
    one = TRACE.only(1)
    assert [(s.start, s.end) for s in one.spans] == [(0, 1), (1, 2)]
    assert one.counters == (Counter(0, "held", 0.0, 7),)
    assert TRACE.only(0, 1).makespan == 6
    with pytest.raises(ValueError, match=r"none of the steps \[9\]; it has \[0, 1\]"):
        TRACE.only(9)


def test_what_was_done_in_a_step_is_a_plan():
    plan = TRACE.plan(1)
    assert [[op.kind for op in ops] for ops in plan.ops] == [["forward", "update"], []]
    assert (plan.name, plan.mesh.data) == ("recorded step 1", 2)


def test_an_operation_of_no_length_stays_before_the_one_that_follows_it():
    """A backward part without work (0 flops) and the next start at the same moment."""
    first, second = (span("backward", 1, end, microbatch=0, bucket=b) for b, end in ((0, 1), (1, 2)))
    assert [op.bucket for op in Trace((second, first), 1).plan(0).ops[0]] == [0, 1]


def test_the_text_of_a_trace_has_no_times():
    assert repr(TRACE) == "Trace(measured, 2 ranks, 4 spans, 2 steps)"


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match="unknown source 'guessed'; sources that work: measured, replayed"):
        Trace((), 1, "guessed")


def test_what_a_span_tells_of_its_operation():
    s = span("all_reduce", 1.0, 3.5, nbytes=16, group=(0, 1), bucket=2)
    assert (s.rank, s.lane, s.kind, s.label, s.nbytes, s.group, s.duration) == (
        0, "comm", "all_reduce", "all_reduce bucket 2", 16, (0, 1), 2.5)


@pytest.mark.parametrize("size", [-1, 0])
def test_a_trace_is_of_at_least_one_rank(size):
    with pytest.raises(ValueError, match=f"world_size={size}: a trace is of at least one rank"):
        Trace((), size)


def test_a_span_of_a_rank_outside_the_world_is_refused():
    with pytest.raises(ValueError, match="a span is of rank 5, but world_size=2: the ranks are 0 to 1"):
        Trace((span("forward", 0, 1, rank=5),), 2)


def test_a_message_is_a_send_with_its_receive():
    trace = Trace((span("recv", 0, 3, rank=1, peer=0, nbytes=8), span("send", 1, 2, peer=1, nbytes=8),
                   span("send", 2, 3, peer=1, nbytes=4, boundary=0)), 2)
    assert messages(trace) == [Message(0, 1, 8, sent=1, received=3)]        # the other's receive is not in the trace
