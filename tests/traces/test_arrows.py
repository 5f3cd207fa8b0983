"""Sends find their receives, and activations in flight are counted from the spans."""

import pytest

from disttutor.plans import Op
from disttutor.traces import Span, Trace
from disttutor.traces.activations import in_flight, peak_in_flight
from disttutor.traces.arrows import pairs, track


def span(kind, start, end, rank=0, step=0, **what):
    return Span(Op(kind=kind, rank=rank, **what), start, end, step=step)


def test_a_receive_takes_the_send_of_its_subject_step_and_peer():
    trace = Trace((
        span("send", 0, 1, 0, peer=1, microbatch=1), span("send", 1, 2, 0, peer=1, microbatch=0),
        span("send", 2, 3, 0, peer=2, microbatch=0), span("send", 3, 4, 0, step=1, peer=1, microbatch=0),
        span("recv", 0, 5, 1, peer=0, microbatch=0), span("recv", 5, 6, 1, peer=0, microbatch=1),
        span("recv", 6, 7, 1, step=1, peer=0, microbatch=0), span("recv", 8, 9, 1, peer=2, microbatch=0),
    ), 3)
    assert [(send.start, receive.start) for send, receive in pairs(trace)] == [(1, 0), (0, 5), (3, 6)]


def test_alike_messages_are_paired_in_their_order():
    trace = Trace(tuple(span(kind, t, t + 1, rank, peer=1 - rank) for t in range(3)
                        for kind, rank in (("send", 0), ("recv", 1))), 2)
    assert [(send.start, receive.start) for send, receive in pairs(trace)] == [(0, 0), (1, 1), (2, 2)]


def test_each_operation_has_its_track():
    ops = [Op(kind="forward", rank=0), Op(kind="all_reduce", rank=0, group=(0, 1)), Op(kind="send", rank=0, peer=1),
           Op(kind="recv", rank=0, peer=1)]
    assert [track(op) for op in ops] == ["compute", "communication", "sends", "receives"]


def one_rank(order, long=1.0):
    """Operations such as "F0 F1 B0 W0" one after the other, each 1 s."""
    kinds = {"F": "forward", "B": "backward", "W": "backward_weight"}
    return Trace(tuple(span(kinds[word[0]], t, t + long, microbatch=int(word[1:])) for t, word in
                       enumerate(order.split())), 1)


@pytest.mark.parametrize(("order", "counts"), [
    ("F0 F1 F2 B0 B1 B2", [(0, 0), (1, 1), (2, 2), (3, 3), (4, 2), (5, 1), (6, 0)]),         # GPipe
    ("F0 B0 F1 B1", [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)]),                                 # 1F1B, last stage
    ("F0 B0 F1 B1 W0 W1", [(0, 0), (1, 1), (3, 2), (5, 1), (6, 0)]),                           # split backward
    ("F0 F1 B1", [(0, 0), (1, 1), (2, 2), (3, 1)]),                                            # one is never released
    ("B0 F1", [(0, 0), (2, 1)]),
])
def test_activations_are_held_from_the_forward_to_the_last_of_the_backward(order, counts):
    assert in_flight(one_rank(order), 0) == counts
    assert peak_in_flight(one_rank(order), 0) == max(count for _, count in counts)


def test_stages_of_a_rank_and_steps_count_for_themselves():
    trace = Trace((span("forward", 0, 1, stage=0, microbatch=0), span("forward", 1, 2, stage=2, microbatch=0),
                   span("backward", 2, 3, stage=2, microbatch=0), span("forward", 3, 4, step=1, stage=0, microbatch=0)),
                  2)
    assert in_flight(trace, 0) == [(0, 0), (1, 1), (2, 2), (3, 1), (4, 2)]
    assert in_flight(trace, 1) == [] and peak_in_flight(trace, 1) == 0


def test_a_backward_in_buckets_releases_at_its_last_bucket():
    trace = Trace((span("forward", 0, 1, microbatch=0), span("backward", 1, 2, microbatch=0, bucket=1),
                   span("backward", 2, 3, microbatch=0, bucket=0)), 1)
    assert in_flight(trace, 0) == [(0, 0), (1, 1), (3, 0)]


def test_operations_without_duration_count_in_their_order():
    assert peak_in_flight(one_rank("F0 B0 F1 B1", long=0.0), 0) == 1
    assert in_flight(Trace(tuple(span(kind, 0, 0, microbatch=m) for m in range(2) for kind in ("forward", "backward")),
                           1), 0) == [(0, 0), (0, 1), (0, 0), (0, 1), (0, 0)]
