"""Each rank's event log. It costs a few microseconds an event when on, and next to nothing when off.

    log = recorder()
    t = log.begin()
    …                                            # the operation
    log.end(t, "forward", microbatch=m)

    work = log.launch(dist.all_reduce(x, async_op=True), "all_reduce", nbytes=…, group=…, bucket=b)
    …                                            # goes on beside it
    log.wait(work)

Wall and processor time are both taken, since on a machine with fewer cores than ranks the wall clock shows the
operating system's scheduler. In slow motion the same calls keep the rank at its machine's pace.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter_ns, thread_time_ns
from typing import Any, NamedTuple

from disttutor.plans import Op
from disttutor.traces.slow_motion import Pacer, SlowMotion
from disttutor.traces.trace import Counter, Span, Trace

Moment = tuple[int, int]


class Event(NamedTuple):
    """One operation as the rank writes it down, in nanoseconds; a `Span` once all ranks' logs are together."""

    kind: str
    start: int
    end: int
    cpu: int
    step: int
    nbytes: int
    flops: float
    group: tuple[int, ...]
    peer: int | None
    subject: dict[str, int]
    after: Sequence[int]            # places in the log of the operations that this one waited for
    issued: int = 0                 # when the rank came to it, where that is not its start (slow motion)


class Recorder:
    """The log of one rank."""

    recording = True

    def __init__(self, rank: int, slow_motion: SlowMotion | None = None):
        self.rank = rank
        self.step = 0
        self.microbatch = 0
        self._steps: set[int] = set()
        self.events: list[tuple | None] = []
        self.counters: list[tuple[str, int, float]] = []
        self._pacer = Pacer(slow_motion) if slow_motion else None
        self._departed, self._crossed = (0, 0), 0
        self._waited: list[int] = []                       # what the next operation has waited for
        self._last: int | None = None

    @property
    def paced(self) -> bool:
        """Whether the rank runs in slow motion."""
        return self._pacer is not None

    def next_step(self, step: int) -> None:
        """What follows belongs to training step `step`; to the next free number if that one was recorded already (two
        strategies in one run)."""
        self.step = step if step not in self._steps else max(self._steps) + 1
        self._steps.add(self.step)
        self._last = None

    def begin(self) -> Moment:
        """The moment at which an operation begins, in wall and processor time."""
        return perf_counter_ns(), thread_time_ns()

    def end(self, begun: Moment, kind: str, *, nbytes: int = 0, flops: float = 0.0, group: tuple[int, ...] = (),
            peer: int | None = None, process_group: Any = None, **subject: int) -> None:
        """The operation that began at `begun` is over. `process_group`: torch's handle of `group` (default: all)."""
        cpu = thread_time_ns() - begun[1]
        start, end = begun[0], perf_counter_ns()
        if self._pacer:
            if group:
                start, end = self._pacer.collective(kind, start, nbytes, group, process_group)
            elif kind == "send":
                start, end = self._departed
            elif peer is not None:
                start, end = self._pacer.arrive(self.rank, peer, nbytes, start, self._crossed)
            else:
                start, end = self._pacer.compute(start, flops)
        waited: Sequence[int] = ()
        if self._waited:
            self._waited, waited = [], self._waited
        # Program order binds the two lanes: what was over when this began came first (what began later lies inside).
        if self._last is not None and self.events[self._last][2] <= begun[0]:
            waited = (*waited, self._last)
        self._last = len(self.events)
        # A plain tuple, as an Event would double what it costs; `merge` makes it one.
        self.events.append((kind, start, end, cpu, self.step, nbytes, flops, group, peer, subject, waited, begun[0]))

    def launch(self, work: Any, kind: str, *, nbytes: int = 0, group: tuple[int, ...] = (), peer: int | None = None,
               process_group: Any = None, **subject: int) -> "Flight":
        """`work` (of an asynchronous operation, just issued) goes on beside what this rank does next."""
        after = () if self._last is None else (self._last,)
        now = perf_counter_ns()
        event = Event(kind, now, 0, 0, self.step, nbytes, 0.0, group, peer, subject, after, now)
        flight = Flight(work, len(self.events), event, process_group)
        self.events.append(None)
        return flight

    def wait(self, flight: "Flight") -> None:
        """Wait for a launched operation; the next operation of this rank depends on it."""
        flight.work.wait()
        event = flight.event
        start, end = event.start, flight.landed or perf_counter_ns()
        if self._pacer and event.group:
            start, end = self._pacer.collective(event.kind, start, event.nbytes, event.group, flight.process_group)
        self.events[flight.place] = event._replace(start=start, end=end)
        self._waited.append(flight.place)

    def departure(self, peer: int, nbytes: int) -> int | None:
        """In slow motion: when the message to `peer` that is about to leave will have crossed the link, in nanoseconds,
        which the receiver must be told (`arrival`); else None. Its `end` comes next."""
        if not self._pacer:
            return None
        self._departed = self._pacer.depart(self.rank, peer, nbytes)
        return self._departed[1]

    def arrival(self, crossed: int) -> None:
        """In slow motion: when the message that has come will have crossed the link. The receive's `end` comes next."""
        self._crossed = crossed

    def count(self, name: str, value: float) -> None:
        """A named quantity of this rank has this value from now on."""
        self.counters.append((name, perf_counter_ns(), value))

    def log(self) -> dict[str, Any]:
        """Everything written down, as plain data that can be sent to the notebook."""
        return {"rank": self.rank, "events": self.events, "counters": self.counters}


class Flight:
    """An operation in flight: its work handle, and the moment at which it landed."""

    __slots__ = ("event", "landed", "place", "process_group", "work")

    def __init__(self, work: Any, place: int, event: Event, process_group: Any):
        self.work, self.place, self.event, self.process_group, self.landed = work, place, event, process_group, 0
        try:
            work.get_future().add_done_callback(self._land)
        except RuntimeError:
            pass                    # a backend without futures: the end is then seen by the wait

    def _land(self, _: Any) -> None:
        self.landed = perf_counter_ns()


class NullRecorder:
    """Writes nothing down: what `recorder()` gives while nobody records."""

    recording = paced = False
    step = 0
    microbatch = 0
    _NOW = (0, 0)

    def next_step(self, step: int) -> None: ...

    def begin(self) -> Moment:
        return self._NOW

    def end(self, begun: Moment, kind: str, **what: Any) -> None: ...

    def launch(self, work: Any, kind: str, **what: Any) -> Any:
        return work

    def wait(self, work: Any) -> None:
        work.wait()

    def departure(self, peer: int, nbytes: int) -> int | None:
        return None

    def arrival(self, crossed: int) -> None: ...

    def count(self, name: str, value: float) -> None: ...


_active: Recorder | NullRecorder = NullRecorder()


def recorder() -> Recorder | NullRecorder:
    """The log of this process."""
    return _active


@contextmanager
def unrecorded() -> Iterator[None]:
    """Inside, nothing is written down and nothing is paced: for the parts of what is written down as one operation."""
    global _active
    outside, _active = _active, NullRecorder()
    try:
        yield
    finally:
        _active = outside


def start_recording(rank: int, slow_motion: SlowMotion | None = None) -> None:
    """Begin a new log in this process."""
    global _active
    _active = Recorder(rank, slow_motion)


def stop_recording() -> dict[str, Any]:
    """End the log and return it, for `merge`. Raises RuntimeError if nobody records."""
    global _active
    if not isinstance(_active, Recorder):
        raise RuntimeError("nothing is being recorded in this process; call start_recording first")
    log, _active = _active.log(), NullRecorder()
    return log


def merge(logs: list[dict[str, Any]], *, source: str = "measured", note: str = "",
          offsets: list[int] | None = None) -> Trace:
    """One trace from every rank's log. `offsets`: nanoseconds by which each rank's clock is ahead of rank 0's.

    Operations that were launched and never waited for are left out: nobody knows when they ended.
    """
    offsets = offsets or [0] * len(logs)
    events = [[e and Event(*e) for e in log["events"]] for log in logs]
    zero = min((e.start - ahead for log, ahead in zip(events, offsets, strict=True) for e in log if e), default=0)
    spans, counters = [], []
    for log, entries, offset in zip(logs, events, offsets, strict=True):
        rank = log["rank"]

        def seconds(moment: int, ahead: int = zero + offset) -> float:
            return (moment - ahead) / 1e9

        # What holds another operation within it came first, though it was written down last.
        in_order = sorted((e for e in entries if e), key=lambda e: e.issued or e.start)
        spans += [Span(_op(rank, e, entries), seconds(e.start), seconds(e.end), max(0, e.cpu) / 1e9, e.step, place)
                  for place, e in enumerate(in_order)]
        counters += [Counter(rank, name, seconds(at), value) for name, at, value in log["counters"]]
    return Trace(tuple(spans), len(logs), source, tuple(counters), note)


def _op(rank: int, event: Event, events: list[Event | None]) -> Op:
    """What it waited for on its own lane goes without saying, as do messages and the step before."""
    op = _bare_op(rank, event)
    if op.peer is not None:
        return op
    waited = (_bare_op(rank, e) for e in map(events.__getitem__, event.after) if e and e.step == event.step)
    return replace(op, after=tuple(dict.fromkeys(other.key for other in waited
                                                 if other.lane != op.lane and other.peer is None)))


def _bare_op(rank: int, event: Event) -> Op:
    return Op(kind=event.kind, rank=rank, nbytes=event.nbytes, flops=event.flops, group=event.group, peer=event.peer,
              **event.subject)
