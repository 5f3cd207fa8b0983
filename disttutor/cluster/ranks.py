"""The engine with a lifetime: one run at a time, on fresh ranks for each or on kept ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Pipe
from typing import Any

from disttutor.cluster.devices import Layout
from disttutor.cluster.engine import Call, Group
from disttutor.cluster.errors import RankError, StartLost, describe_exception, with_cells
from disttutor.cluster.output import Console
from disttutor.cluster.payload import likely_trains, name_of, pack_call
from disttutor.cluster.pickles import unpack
from disttutor.cluster.server import launcher
from disttutor.cluster.settings import check_output, check_slow_motion, check_timeout

CLOSED = "this cluster is closed: make a new one, Cluster(...)"


class Results(list):
    """What every rank returned, in the order of the ranks.

    `trace`: the Trace of the run if it was recorded, else None. `seconds`: how long the run took, from the call to
    the last result, in wall-clock seconds.
    """

    trace: Any = None
    seconds: float = 0.0


class Ranks:
    """The engine with a lifetime: one run at a time; fresh ranks for each run, or kept ones."""

    def __init__(self, keep: bool, turn: Turn | None = None) -> None:
        self.keep, self.closed = keep, False
        self.group: Group | None = None
        self.turn = turn or Turn()
        self._waker_lock = threading.Lock()
        self._waker: Any = None

    def run(self, layout: Layout, fn, args, timeout, record, slow_motion, output) -> Results:
        refuse_inside_a_rank()
        timeout, slow_motion = check_timeout(timeout), check_slow_motion(slow_motion)
        check_output(output)
        parcel, sources = pack_call(fn, args, layout.ranks)
        info = {"sources": sources, "record": bool(record or slow_motion), "slow_motion": slow_motion}
        label = f"{name_of(fn)} on {layout.ranks} rank{'s' if layout.ranks > 1 else ''}"
        console = Console(output)
        with self.turn.take(label, console.remark):
            start = time.perf_counter()
            try:
                answers = self._answers(layout, info, parcel, timeout, console, label)
            except KeyboardInterrupt:  # said shortly: where the notebook stood when it waited is of no interest
                raise KeyboardInterrupt(f"{label} was stopped; its ranks are gone") from None
            results = Results(read_all(answers))
            results.seconds = time.perf_counter() - start
            if info["record"]:
                results.trace = trace_of([answer[0]["events"] for answer in answers], slow_motion)
        return results

    def _answers(self, layout, info, parcel, timeout, console, label) -> list:
        ours, theirs = Pipe(duplex=False)
        with self._waker_lock:
            self._waker = theirs
        try:
            if self.closed:  # while this run waited for its turn
                raise RuntimeError(CLOSED)
            for remark in layout.remarks:
                console.remark(remark)
            trains = self.keep or likely_trains(parcel)
            answers = self._twice(lambda: Call(self._fit(layout, trains), console, ours, label)
                                  .perform(info, parcel, timeout))  # fmt: skip
        finally:
            with self._waker_lock:
                self._waker = None
            ours.close()
            theirs.close()
            if not self.keep or (self.group and not self.group.usable):
                self.end()
            console.finish()
        return answers

    def _twice(self, act: Callable[[], Any]) -> Any:
        """What `act` gives; once more, with a new server, if the server was lost before any rank had begun."""
        try:
            return act()
        except StartLost:
            self.end()
            launcher().await_end(2.0)
        try:
            return act()
        except StartLost as error:
            raise RankError(*error.args) from None

    def _fit(self, layout: Layout, trains: bool = True) -> Group:
        """The kept group if it is whole, else a new one."""
        if self.group is not None and self.group.dead():
            self.end()
        if self.group is None:
            self.group = Group(layout, launcher(), trains)
        return self.group

    def start(self, layout: Layout) -> None:
        """Begin to start the ranks; returns at once."""
        refuse_inside_a_rank()
        with self.turn.take("the start of the ranks", lambda text: None):
            self._twice(lambda: self._fit(layout))

    def close(self) -> None:
        """End the run in progress, refuse those that wait for their turn, and let the ranks go."""
        self.closed = True  # before the stop: a run either sees this or can be stopped
        self.stop()
        with self.turn.take("the end of the cluster", lambda text: None):
            self.end()

    def stop(self) -> bool:
        """Wake the run in progress, from any thread: it ends its ranks and raises. False if none is in progress."""
        with self._waker_lock:
            if self._waker is None:
                return False
            self._waker.send_bytes(b"stop")
            return True

    def end(self) -> None:
        """Let the ranks go: politely if they are well."""
        group, self.group = self.group, None
        if group is not None:
            group.leave() if group.usable else group.kill()


class Turn:
    """One run at a time. Who has to wait more than a moment is told what is running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._label, self._since, self._thread = "", 0.0, None

    def take(self, label: str, say: Callable[[str], None]) -> Turn:
        if self._thread == threading.get_ident():
            raise RuntimeError(f"{label} was asked for from inside {self._label}: a run cannot start another")
        if not self._lock.acquire(timeout=1.0):
            say(f"waiting: {self._label} has been running for {time.monotonic() - self._since:.0f} s")
            self._lock.acquire()
        self._label, self._since, self._thread = label, time.monotonic(), threading.get_ident()
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *problem: Any) -> None:
        self._thread = None
        self._lock.release()


def refuse_inside_a_rank() -> None:
    """Ranks that start ranks would multiply without end; say so instead."""
    from disttutor.cluster import here

    if here.CHANNEL is not None:
        raise RuntimeError(f"this is rank {here.rank()} of a run already: ranks are started from the notebook only")


def read_all(answers: list) -> list[Any]:
    """Every rank's value. Raises RankError, naming the rank, for one that cannot be read here."""
    values = []
    for rank, (_, parcel) in enumerate(answers):
        try:
            values.append(unpack(parcel))
        except Exception as problem:  # unpickling raises anything
            told = describe_exception(problem, skip=__file__)
            headline = f"rank {rank} returned something that cannot be read here: {told['type']}: {told['message']}"
            raise RankError(rank, "raised", f"{headline}\n\n{with_cells(told['text'])}") from None
    return values


def trace_of(events: list[Any], slow_motion: Any, offsets: list[int] | None = None, note: str = "") -> Any:
    """The Trace of a run from what every rank recorded; `note`: what else its picture has to say."""
    from disttutor import traces

    source = "measured" if slow_motion is None else "slow motion"
    notes = [slow_motion.describe()] if slow_motion is not None else []
    return traces.merge(events, source=source, note="; ".join([*notes, *filter(None, [note])]), offsets=offsets)
