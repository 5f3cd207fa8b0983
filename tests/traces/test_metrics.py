"""What a trace says in numbers, against intervals worked out by hand (case A-33: nothing counts twice)."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans import Op
from disttutor.traces import (
    Counter,
    Span,
    Trace,
    bandwidth,
    bubble_ratio,
    bubble_share,
    busy,
    bytes_entered,
    hidden_communication,
    idle,
    operations,
    peak,
    ring_bytes_sent,
)
from disttutor.traces.metrics import common, covered, merged


def span(kind, start, end, rank=0, step=0, **what):
    return Span(Op(kind=kind, rank=rank, **what), start, end, step=step)


def exchange(start, end, rank=0, nbytes=0, group=(0, 1), **what):
    return span("all_reduce", start, end, rank, nbytes=nbytes, group=group, **what)


def test_computing_and_exchanging_at_the_same_time():
    """Compute 0-10, exchange 5-15: busy 10 and 10, together 15; half of the exchange is hidden."""
    trace = Trace((span("forward", 0, 10), exchange(5, 15)), 1)
    assert busy(trace, 0) == 10
    assert busy(trace, 0, "comm") == 10
    assert busy(trace, 0, None) == 15
    assert idle(trace, 0) == 5
    assert hidden_communication(trace, 0) == 0.5


@pytest.mark.parametrize("order", [1, -1])
def test_nested_operations_count_once(order):
    """(0, 10) and (0, 20) make 20, in whatever order they come; the longer is the outer."""
    trace = Trace((span("forward", 0, 10), span("forward", 0, 20, layer=1))[::order], 1)
    assert busy(trace, 0) == 20
    assert [s.end for s in trace.spans] == [20, 10]


def test_both_bubbles_by_hand():
    """4 stages, 8 micro-batches, F = B = 1: makespan 22, each busy 16: 6/22 of the total, 6/16 of the ideal."""
    spans = [span("forward", r, 16 + r, rank=r) for r in range(4)]
    trace = Trace((*spans, span("barrier", 0, 22, group=(0, 1))), 4)
    assert bubble_share(trace) == pytest.approx(6 / 22)
    assert bubble_ratio(trace) == pytest.approx(6 / 16)


def test_an_empty_trace_has_no_bubble():
    assert bubble_share(Trace((), 2)) == bubble_ratio(Trace((), 2)) == 0.0


def test_hidden_communication_by_hand():
    def hidden(*spans):
        return hidden_communication(Trace(spans, 2), 0)

    assert hidden(span("forward", 0, 10)) == 0                                   # nothing to hide
    assert hidden(span("forward", 0, 10), exchange(10, 20)) == 0
    assert hidden(span("forward", 0, 10), exchange(2, 8)) == 1
    assert hidden(span("forward", 0, 10), exchange(2, 8), exchange(4, 12, bucket=1)) == 0.8     # union 2-12
    assert hidden(span("forward", 0, 4), span("update", 6, 10), exchange(3, 7)) == 0.5
    assert hidden(exchange(3, 3)) == 0                                           # no time at all
    assert hidden(span("forward", 0, 10, rank=1), exchange(0, 10)) == 0          # another rank's work hides nothing


def test_bytes_by_hand():
    """1000 bytes over 4 ranks: a ring all-reduce sends 2·3/4 of them, an all-gather 3/4, a send all, a receive none."""
    four = (0, 1, 2, 3)
    spans = (span("all_reduce", 0, 1, nbytes=1000, group=four), span("all_gather", 1, 2, nbytes=1000, group=four),
             span("send", 2, 3, nbytes=7, peer=1), span("recv", 3, 4, nbytes=9, peer=1))
    trace = Trace(spans, 4)
    assert bytes_entered(trace, 0) == 2007
    assert ring_bytes_sent(trace, 0) == 1500 + 750 + 7
    assert operations(trace, 0, "send") == 1 and operations(trace, 1, "send") == 0


def test_bandwidths_by_hand():
    """Case A-32: 1e9 bytes in 0.15 s over 4 ranks are 6.67e9 B/s for the algorithm and 10e9 on the bus."""
    group = (0, 1, 2, 3)
    spans = [exchange(0.01 * r, 0.18, rank=r, nbytes=10**9, group=group) for r in range(4)]
    found = bandwidth(spans)                                       # from the last entry, at 0.03 s
    assert found.seconds == pytest.approx(0.15)
    assert found.algorithm == pytest.approx(6.667e9, rel=1e-3)
    assert found.bus == pytest.approx(10e9)
    assert bandwidth([exchange(1, 1, rank=r, nbytes=8) for r in range(2)]).algorithm == inf


@pytest.mark.parametrize("spans", [
    [], [exchange(0, 1), exchange(0, 1, bucket=1)], [span("forward", 0, 1)], [exchange(0, 1), exchange(1, 2, step=1)],
])
def test_bandwidth_is_of_one_collective(spans):
    with pytest.raises(ValueError, match="needs the spans of one collective"):
        bandwidth(spans)


def test_peak_of_a_counter():
    counters = (Counter(0, "held", 0.0, 5), Counter(0, "held", 1.0, 9), Counter(0, "held", 2.0, 1),
                Counter(1, "held", 0.0, 99))
    assert peak(Trace((), 2, counters=counters), 0, "held") == 9
    assert peak(Trace((), 2), 0, "held") == 0


times = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


def seconds_of(pairs):
    """Every whole second that the spans cover, counted one by one."""
    return {t for start, length in pairs for t in range(start, start + length)}


@given(times, times)
def test_times_are_those_counted_second_by_second(computes, exchanges):
    spans = [span("forward", a, a + n) for a, n in computes] + [exchange(a, a + n) for a, n in exchanges]
    trace = Trace(tuple(spans), 2)
    work, talk = seconds_of(computes), seconds_of(exchanges)
    assert busy(trace, 0) == len(work)
    assert busy(trace, 0, None) == len(work | talk)
    assert hidden_communication(trace, 0) == pytest.approx(len(work & talk) / len(talk) if talk else 0)
    assert covered(common(merged(trace.of(0, "compute")), merged(trace.of(0, "comm")))) == len(work & talk)
