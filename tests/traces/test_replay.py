"""From what two ranks did on too few cores to what they would do with a core each."""

import pytest

from disttutor.traces import Trace, merge, replay

MS = 10**6


def event(kind, start, end, cpu=None, *, step=0, after=(), **what):
    """What a rank's log holds of one operation; times in ms."""
    group = (0, 1) if kind == "all_reduce" else ()
    subject = {k: v for k, v in what.items() if k != "peer"}
    cpu = (end - start if cpu is None else cpu) * MS
    return (kind, start * MS, end * MS, cpu, step, 8, 0.0, group, what.get("peer"), subject, after)


def trace_of(*ranks) -> Trace:
    logs = [{"rank": r, "events": list(events), "counters": []} for r, events in enumerate(ranks)]
    return merge(logs)


def times(trace, rank):
    return [(s.label, round(s.start * 1e3, 6), round(s.end * 1e3, 6)) for s in sorted(
        trace.of(rank), key=lambda s: (s.start, s.end))]


def test_two_ranks_that_shared_a_core():
    """Each computes 10 ms, one after the other, on the wall from 0 to 20; the exchange took 4 ms."""
    trace = trace_of(
        [event("forward", 0, 10), event("all_reduce", 10, 24, 0, bucket=0, after=(0,)),
         event("update", 24, 25, after=(1,))],
        [event("forward", 10, 20), event("all_reduce", 20, 24, 0, bucket=0, after=(0,)),
         event("update", 25, 26, after=(1,))])
    replayed = replay(trace)
    for rank in (0, 1):
        assert times(replayed, rank) == [("forward", 0, 10), ("all_reduce bucket 0", 10, 14), ("update", 14, 15)]
    assert (replayed.source, replayed.note) == ("replayed", "a core for each rank")


def test_interleaved_slices_count_by_their_processor_time():
    """Both were on the processor half of the time from 0 to 20."""
    replayed = replay(trace_of([event("forward", 0, 20, 10)], [event("forward", 0, 20, 6)]))
    assert times(replayed, 0) == [("forward", 0, 10)] and times(replayed, 1) == [("forward", 0, 6)]


def test_a_real_imbalance_stays():
    trace = trace_of(
        [event("forward", 0, 30, 10), event("all_reduce", 30, 62, 0, after=(0,))],
        [event("forward", 0, 60, 30), event("all_reduce", 60, 62, 0, after=(0,))])
    replayed = replay(trace)
    assert times(replayed, 0) == [("forward", 0, 10), ("all_reduce", 10, 32)]
    assert times(replayed, 1) == [("forward", 0, 30), ("all_reduce", 30, 32)]


def test_exchanges_in_flight_together_are_not_counted_several_times():
    """Three launched at 10, over at 12, 14 and 16: 2 ms each on the wire, 6 in all, not 2 + 4 + 6."""
    def rank():
        return [event("backward", 0, 10), *(event("all_reduce", 10, 12 + 2 * b, 0, bucket=b, after=(0,))
                                            for b in range(3)), event("update", 16, 17, after=(1, 2, 3))]

    replayed = replay(trace_of(rank(), rank()))
    assert times(replayed, 1) == [("backward", 0, 10), ("all_reduce bucket 0", 10, 12), ("all_reduce bucket 1", 12, 14),
                                  ("all_reduce bucket 2", 14, 16), ("update", 16, 17)]


def test_overlap_stays():
    """Bucket 0 leaves while backward goes on."""
    def rank():
        return [event("backward", 0, 10, bucket=0), event("all_reduce", 10, 18, 0, bucket=0, after=(0,)),
                event("backward", 10, 20, bucket=1), event("all_reduce", 20, 23, 0, bucket=1, after=(2,)),
                event("update", 23, 24, after=(1, 3))]

    assert times(replay(trace_of(rank(), rank())), 0) == [
        ("backward bucket 0", 0, 10), ("all_reduce bucket 0", 10, 18), ("backward bucket 1", 10, 20),
        ("all_reduce bucket 1", 20, 23), ("update", 23, 24)]


def test_a_receive_ends_when_its_send_has():
    trace = trace_of([event("forward", 0, 8, 5), event("send", 8, 9, 1, peer=1, after=(0,))],
                     [event("recv", 0, 12, 0, peer=0), event("forward", 12, 20, 4, after=(0,))])
    replayed = replay(trace)
    assert times(replayed, 0) == [("forward", 0, 5), ("send to rank 1", 5, 6)]
    assert times(replayed, 1) == [("recv from rank 0", 0, 6), ("forward", 6, 10)]


def test_steps_follow_one_another():
    def rank(behind):
        return [event("forward", 0, 20, 10), event("all_reduce", 20, 22, 0, after=(0,)),
                event("update", 22, 23, after=(1,)), event("forward", 23 + behind, 40 + behind, 10, step=1),
                event("all_reduce", 40 + behind, 51, 0, step=1, after=(3,))]

    # 10, 2 and 1 ms; then the exchange waits for the last forward, on the wall from 49 to 51: again 10 and 2 ms
    replayed = replay(trace_of(rank(0), rank(9)))
    for r in (0, 1):
        assert times(replayed, r) == [("forward", 0, 10), ("all_reduce", 10, 12), ("update", 12, 13),
                                      ("forward", 13, 23), ("all_reduce", 23, 25)]


@pytest.mark.parametrize("source", ["predicted", "slow motion", "replayed"])
def test_only_what_was_measured_can_be_replayed(source):
    with pytest.raises(ValueError, match=f"only a measured trace can be replayed; this one is {source}"):
        replay(Trace((), 1, source))
