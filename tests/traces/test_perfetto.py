"""The file for Perfetto: slices that nest, arrows that go forward, nothing but JSON (case A-33)."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans import Op
from disttutor.traces import Counter, Span, Trace, chrome_trace, rows, save


def span(kind, start, end, rank=0, **what):
    return Span(Op(kind=kind, rank=rank, **what), start, end)


def slices(trace):
    return [e for e in chrome_trace(trace)["traceEvents"] if e["ph"] == "X"]


@pytest.mark.parametrize("order", [1, -1])
def test_the_longer_of_two_that_start_together_is_outside(order):
    spans = (span("forward", 0, 10, layer=0), span("forward", 0, 20, layer=1))[::order]
    (row,) = rows(spans)
    assert [s.end for s in row] == [20, 10]
    assert [(e["ts"], e["dur"], e["tid"]) for e in slices(Trace(spans, 1))] == [(0, 20e6, 0), (0, 10e6, 0)]


def test_what_crosses_is_on_another_thread():
    spans = [span("all_reduce", a, b, group=(0,), bucket=n) for n, (a, b) in enumerate([(0, 10), (5, 15), (10, 12)])]
    assert [[s.op.bucket for s in row] for row in rows(spans)] == [[0, 2], [1]]
    trace = Trace((span("forward", 0, 10), *spans), 1)
    assert {e["name"]: e["tid"] for e in slices(trace)} == {
        "forward": 0, "all_reduce bucket 0": 1, "all_reduce bucket 1": 2, "all_reduce bucket 2": 1}


def test_ranks_are_processes_and_lanes_are_threads():
    trace = Trace((span("forward", 1, 2, microbatch=3), span("all_reduce", 2, 3, rank=1, nbytes=8, group=(0, 1))), 2)
    events = chrome_trace(trace)["traceEvents"]
    names = {(e["pid"], e["tid"], e["name"]): e["args"].get("name") for e in events if e["ph"] == "M"}
    assert names[0, 0, "process_name"] == "rank 0" and names[1, 0, "process_name"] == "rank 1"
    assert names[0, 0, "thread_name"] == "compute" and names[1, 0, "thread_name"] == "communication"
    forward, reduce = slices(trace)
    assert (forward["ts"], forward["dur"], forward["pid"]) == (0, 1e6, 0)       # microseconds from the trace's start
    assert forward["args"] == {"step": 0, "cpu_ms": 0.0, "microbatch": 3}
    assert reduce["args"] == {"step": 0, "cpu_ms": 0.0, "bytes": 8, "group": [0, 1]}


def arrows(trace):
    events = [e for e in chrome_trace(trace)["traceEvents"] if e["ph"] in "sf"]
    return [(s, f) for s, f in zip(events[::2], events[1::2], strict=True)]


def test_arrows_join_each_send_to_its_receive():
    trace = Trace((span("send", 0, 1, peer=1, microbatch=0), span("send", 1, 2, peer=1, microbatch=1),
                   span("recv", 0, 3, 1, peer=0, microbatch=0), span("recv", 3, 4, 1, peer=0, microbatch=1),
                   span("recv", 4, 5, 1, peer=0, microbatch=2)), 2)
    pairs = arrows(trace)
    assert [(s["ph"], f["ph"], s["id"] == f["id"]) for s, f in pairs] == [("s", "f", True)] * 2
    assert len({s["id"] for s, _ in pairs}) == 2
    assert [(s["pid"], s["ts"], f["pid"]) for s, f in pairs] == [(0, 0, 1), (0, 1e6, 1)]
    assert [3e6 - 0.01 < pairs[0][1]["ts"] < 3e6, 4e6 - 0.01 < pairs[1][1]["ts"] < 4e6] == [True, True]


def test_arrows_never_go_backwards():
    """However short the message, and however far apart the clocks of two machines."""
    for sent, received in (((0, 0), (0, 0)), ((5, 6), (1, 2)), ((0, 1), (0, 1e-10))):
        ((s, f),) = arrows(Trace((span("send", *sent, peer=1), span("recv", *received, 1, peer=0)), 2))
        assert s["ts"] <= f["ts"]


def test_counters_and_source():
    made = chrome_trace(Trace((span("forward", 1, 2),), 1, "predicted", counters=(Counter(0, "held", 1.5, 7.0),),
                              note="a model"))
    (counter,) = (e for e in made["traceEvents"] if e["ph"] == "C")
    assert (counter["name"], counter["pid"], counter["ts"], counter["args"]) == ("held", 0, 0.5e6, {"held": 7.0})
    assert made["otherData"]["source"] == "predicted" and made["otherData"]["note"] == "a model"


def test_the_file_is_json(tmp_path):
    path = save(Trace((span("forward", 0, 1),), 1), tmp_path / "trace.json")
    assert json.loads(path.read_text()) == chrome_trace(Trace((span("forward", 0, 1),), 1))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=15))
def test_slices_of_one_thread_follow_or_nest(pairs):
    spans = tuple(span("all_reduce", a / 7, (a + n) / 7, group=(0,), bucket=i) for i, (a, n) in enumerate(pairs))
    events = slices(Trace(spans, 1))
    assert len(events) == len(pairs)
    for tid in {e["tid"] for e in events}:
        open_ends = []
        here = [e for e in events if e["tid"] == tid]
        assert all(a["ts"] <= b["ts"] for a, b in pairwise(here))
        for e in here:
            while open_ends and open_ends[-1] <= e["ts"] + 1e-3:
                open_ends.pop()
            assert not open_ends or e["ts"] + e["dur"] <= open_ends[-1] + 1e-3
            open_ends.append(e["ts"] + e["dur"])
    json.dumps(events)


def test_sends_and_receives_have_threads_of_their_own():
    trace = Trace((span("forward", 0, 4), span("send", 0, 3, peer=1, microbatch=0), span("send", 1, 5, peer=1,
                   microbatch=1), span("recv", 0, 9, peer=1)), 2)
    names = {e["tid"]: e["args"]["name"] for e in chrome_trace(trace)["traceEvents"]
             if e["name"] == "thread_name" and e["pid"] == 0}
    assert names == {0: "compute", 1: "sends", 2: "sends (2)", 3: "receives"}


def test_activations_in_flight_are_a_counter_of_each_rank():
    spans = [span(kind, start, start + 1, microbatch=m) for start, (kind, m) in
             enumerate([("forward", 0), ("forward", 1), ("backward", 0), ("backward", 1)])]

    def counted(trace):
        return [(e["pid"], e["ts"], e["args"]) for e in chrome_trace(trace)["traceEvents"] if e["ph"] == "C"]

    assert counted(Trace(tuple(spans), 2)) == [
        (0, t * 1e6, {"activations in flight": n}) for t, n in [(0, 0), (1, 1), (2, 2), (3, 1), (4, 0)]]
    assert counted(Trace(tuple(spans[:2]), 1)) == []        # no backward: nothing to wait for
