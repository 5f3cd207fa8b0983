"""Each rank's log, and the trace that is made of all of them."""

import time

import pytest

from disttutor.plans import Device, Machine
from disttutor.traces import NullRecorder, SlowMotion, merge, messages, recorder, start_recording, stop_recording


class Work:
    """Stands for the handle of an asynchronous operation."""

    def __init__(self, futures=True):
        self.futures, self.callbacks, self.waited = futures, [], False

    def get_future(self):
        if not self.futures:
            raise RuntimeError("this backend has no futures")
        return self

    def add_done_callback(self, callback):
        self.callbacks.append(callback)

    def land(self):
        for callback in self.callbacks:
            callback(self)

    def wait(self):
        self.waited = True


@pytest.fixture
def log():
    start_recording(0)
    yield recorder()
    if recorder().recording:
        stop_recording()


def spans_of(trace):
    return {s.label: s for s in trace.spans}


def test_begin_and_end_make_a_span(log):
    begun = log.begin()
    time.sleep(0.01)
    log.end(begun, "forward", microbatch=2, flops=7.0)
    (span,) = merge([stop_recording()]).spans
    assert (span.label, span.op.flops, span.step, span.start) == ("forward microbatch 2", 7.0, 0, 0.0)
    assert 0.01 <= span.duration < 5
    assert span.cpu < span.duration                 # it slept
    assert recorder().recording is False


def test_what_is_launched_ends_when_it_lands_not_when_it_is_waited_for(log):
    log.end(log.begin(), "backward")
    work = Work()
    flight = log.launch(work, "all_reduce", nbytes=8, group=(0,), bucket=1)
    work.land()
    time.sleep(0.05)
    log.wait(flight)
    log.end(log.begin(), "update")
    spans = spans_of(merge([stop_recording()]))
    assert work.waited
    assert spans["all_reduce bucket 1"].duration < 0.05 < spans["update"].start - spans["all_reduce bucket 1"].start
    assert spans["all_reduce bucket 1"].op.after == (spans["backward"].op.key,)
    assert spans["update"].op.after == (spans["all_reduce bucket 1"].op.key,)


def test_a_backend_without_futures_is_seen_by_the_wait(log):
    flight = log.launch(Work(futures=False), "all_reduce", group=(0,))
    time.sleep(0.01)
    log.wait(flight)
    assert merge([stop_recording()]).spans[0].duration >= 0.01


def test_what_is_never_waited_for_is_left_out(log):
    log.launch(Work(), "all_reduce", group=(0,))
    log.end(log.begin(), "update")
    assert [s.kind for s in merge([stop_recording()]).spans] == ["update"]


def test_program_order_binds_the_lanes(log):
    """A blocking exchange between two computations: it waits for the first, the second waits for it."""
    log.end(log.begin(), "forward", microbatch=0)
    log.end(log.begin(), "all_reduce", group=(0,), microbatch=0)
    log.end(log.begin(), "forward", microbatch=1)
    log.end(log.begin(), "forward", microbatch=2)
    first, reduce, second, third = merge([stop_recording()]).spans
    assert first.op.after == third.op.after == ()   # within a lane it goes without saying
    assert reduce.op.after == (first.op.key,)
    assert second.op.after == (reduce.op.key,)


def test_what_lies_inside_an_operation_is_not_waited_for(log):
    outer = log.begin()
    log.end(log.begin(), "all_gather", group=(0,), layer=0)
    log.end(outer, "forward")
    spans = spans_of(merge([stop_recording()]))
    assert spans["forward"].op.after == ()
    assert spans["forward"].start <= spans["all_gather layer 0"].start


def test_steps_are_kept_apart(log):
    for step in (3, 4):
        log.next_step(step)
        log.end(log.begin(), "forward")
        log.end(log.begin(), "all_reduce", group=(0,))
    trace = merge([stop_recording()])
    assert [(s.kind, s.step, len(s.op.after)) for s in trace.spans] == [
        ("forward", 3, 0), ("all_reduce", 3, 1), ("forward", 4, 0), ("all_reduce", 4, 1)]


def test_counters_and_both_ends_of_messages_meet():
    logs = []
    for rank in (0, 1):
        start_recording(rank)
        log = recorder()
        log.end(log.begin(), "forward")
        log.count("held", 10 * rank)
        kind, order = ("send", (100, 200, 300)) if rank == 0 else ("recv", (300, 100, 200))
        for nbytes in order:
            log.end(log.begin(), kind, nbytes=nbytes, peer=1 - rank, microbatch=nbytes)
        logs.append(stop_recording())
    trace = merge(logs, source="slow motion", note="a model")
    assert sorted((m.src, m.dst, m.nbytes) for m in messages(trace)) == [(0, 1, 100), (0, 1, 200), (0, 1, 300)]
    assert all(m.sent < m.received for m in messages(trace))
    assert [(c.rank, c.name, c.value) for c in trace.counters] == [(0, "held", 0), (1, "held", 10)]
    assert (trace.source, trace.note, trace.world_size) == ("slow motion", "a model", 2)


def events(rank, start, end):
    event = ("forward", start, end, end - start, 0, 0, 0.0, (), None, {}, ())
    return {"rank": rank, "events": [event], "counters": [("held", end, 1.0)]}


def test_clocks_of_other_machines_are_set_right():
    """Rank 1's clock is 5 s ahead: what it did from 6 to 7 s by its own clock was from 1 to 2 s by rank 0's."""
    second = 10**9
    trace = merge([events(0, 1 * second, 2 * second), events(1, 6 * second, 7 * second)], offsets=[0, 5 * second])
    assert [(s.rank, s.start, s.end) for s in trace.spans] == [(0, 0.0, 1.0), (1, 0.0, 1.0)]
    assert [c.time for c in trace.counters] == [1.0, 1.0]
    late = merge([events(0, 1 * second, 2 * second), events(1, 6 * second, 7 * second)])
    assert [s.start for s in late.spans] == [0.0, 5.0]


def test_the_null_recorder_passes_everything_through():
    log = recorder()
    assert isinstance(log, NullRecorder) and not log.recording
    log.next_step(1)
    log.end(log.begin(), "forward", microbatch=1)
    work = Work()
    assert log.launch(work, "all_reduce", nbytes=1, group=(0,)) is work
    log.wait(work)
    log.count("held", 1)
    assert work.waited


def test_stopping_what_never_started_is_said():
    with pytest.raises(RuntimeError, match="nothing is being recorded in this process; call start_recording first"):
        stop_recording()


def test_slow_motion_stretches_computing_to_what_the_device_takes():
    start_recording(0, SlowMotion(Machine(Device(1000.0))))
    try:
        begun = recorder().begin()
        recorder().end(begun, "forward", flops=50.0)
        (span,) = merge([stop_recording()], source="slow motion").spans
    finally:
        if recorder().recording:
            stop_recording()
    assert 0.05 <= span.duration < 5
    assert span.cpu < 0.04                          # slept, not spun


def test_the_model_in_one_line():
    from disttutor.plans import Link

    slow = SlowMotion(Machine(Device(2e9), Link(1e-3, 10e6)))
    assert slow.describe() == "device 2 Gflop/s, link 1 ms + bytes / 10 MB/s"
