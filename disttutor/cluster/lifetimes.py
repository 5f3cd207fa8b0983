"""Two lifetimes of ranks, one engine: `run` makes fresh ranks for each call, a `Cluster` keeps its own."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Pipe
from typing import Any

from disttutor.cluster.devices import Layout, lay_out
from disttutor.cluster.engine import Call, Group
from disttutor.cluster.errors import RankError, describe_exception, with_cells
from disttutor.cluster.output import Console, Sink
from disttutor.cluster.payload import likely_trains, name_of, pack_call
from disttutor.cluster.pickles import unpack
from disttutor.cluster.server import launcher


class Results(list):
    """What every rank returned, in the order of the ranks.

    `trace`: the Trace of the run if it was recorded, else None. `seconds`: how long the run took, from the call to
    the last result, in wall-clock seconds.
    """

    trace: Any = None
    seconds: float = 0.0


def run(
    fn: Callable[..., Any],
    *args: Any,
    ranks: int = 2,
    timeout: float | None = None,
    device: str = "cpu",
    threads: int | None = None,
    record: bool = False,
    slow_motion: Any = None,
    output: Sink | None = None,
) -> Results:
    """Run `fn(rank, *args)` on `ranks` fresh processes and return what each of them returned.

    In each, torch.distributed's process group stands ready. Nothing is left of them afterwards: no state leaks from
    one run to the next, and a notebook run from top to bottom always gives the same.

    `timeout`: seconds after which the run is given up, with the place where each rank stood. `device`: "cpu", "cuda"
    or "auto". `threads`: of each rank (default: cores // ranks). `record=True` gives the result a `.trace`;
    `slow_motion=SlowMotion(...)` records at the pace of a modelled machine. `output(rank, text)` gets what the ranks
    print, a line at a time, instead of the cell.

    Raises RankError if a rank raises, dies, or does not return in time; TypeError, ValueError or RuntimeError, before
    anything starts, for what cannot be run.
    """
    from disttutor.cluster import attach

    if attach.started_by_torchrun():
        raise RuntimeError(
            "run() starts ranks of its own, but this process is one of torchrun's ranks: use Cluster().run(...)"
        )
    return _FRESH.run(lay_out(ranks, device, threads), fn, args, timeout, record, slow_motion, output)


class Ranks:
    """The engine with a lifetime: one run at a time; fresh ranks for each run, or kept ones."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.group: Group | None = None
        self._turn = Turn()
        self._waker_lock = threading.Lock()
        self._waker: Any = None

    def run(self, layout: Layout, fn, args, timeout, record, slow_motion, output) -> Results:
        refuse_inside_a_rank()
        check_timeout(timeout)
        parcel, sources = pack_call(fn, args, layout.ranks)
        info = {"sources": sources, "record": bool(record or slow_motion), "slow_motion": slow_motion}
        label = f"{name_of(fn)} on {layout.ranks} rank{'s' if layout.ranks > 1 else ''}"
        console = Console(output)
        with self._turn.take(label, console.remark):
            start = time.perf_counter()
            for remark in layout.remarks:
                console.remark(remark)
            try:
                answers = self._answers(layout, info, parcel, timeout, console, label)
            except KeyboardInterrupt:  # said shortly: where the notebook stood when it waited is of no interest
                raise KeyboardInterrupt(f"{label} was stopped; its ranks are gone") from None
            results = Results(_read_all(answers))
            results.seconds = time.perf_counter() - start
            if info["record"]:
                results.trace = _trace([answer[0]["events"] for answer in answers], slow_motion)
        return results

    def _answers(self, layout, info, parcel, timeout, console, label) -> list:
        ours, theirs = Pipe(duplex=False)
        with self._waker_lock:
            self._waker = theirs
        try:
            group = self._fit(layout, trains=self.keep or likely_trains(parcel))
            answers = Call(group, console, ours, label).perform(info, parcel, timeout)
        finally:
            with self._waker_lock:
                self._waker = None
            ours.close()
            theirs.close()
            if not self.keep or (self.group and not self.group.usable):
                self.end()
            console.finish()
        return answers

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
        with self._turn.take("the start of the ranks", lambda text: None):
            self._fit(layout)

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


class Cluster:
    """Ranks that stay: what they hold between two runs (models, data, a GPU's context) is still there.

    `ranks`: how many (default 2). In a process that torchrun started, the cluster is the processes that torchrun
    started, and `ranks` may be left out; `run` then returns in each of them.

    After a failure, a deadline or `stop`, the ranks are ended and the next run starts new ones, with empty memory.
    A module of the learner's own that was edited is still the old one in kept ranks: `close()` the cluster, or use
    `run`, whose ranks are always fresh. Use it as a context manager, or `close()` it.
    """

    def __init__(self, ranks: int | None = None, *, device: str = "cpu", threads: int | None = None) -> None:
        from disttutor.cluster import attach

        self._closed = False
        if attach.started_by_torchrun():
            self._attached = attach.Attached(ranks, device, threads)
            self._ranks = self._layout = None
            return
        self._attached = None
        self._layout = lay_out(2 if ranks is None else ranks, device, threads)
        self._ranks = Ranks(keep=True)
        self._end = weakref.finalize(self, _end_in, os.getpid(), self._ranks)
        self._ranks.start(self._layout)

    def run(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float | None = None,
        record: bool = False,
        slow_motion: Any = None,
        output: Sink | None = None,
    ) -> Results:
        """Run `fn(rank, *args)` on every rank; the same as `disttutor.run`, on ranks that stay.

        One run at a time: a second one waits, and says for what. Safe to call from any thread.
        """
        if self._closed:
            raise RuntimeError("this cluster is closed: make a new one, Cluster(...)")
        if self._attached is not None:
            return self._attached.run(fn, args, timeout, record, slow_motion, output)
        return self._ranks.run(self._layout, fn, args, timeout, record, slow_motion, output)

    def stop(self) -> None:
        """End the run in progress, from any thread: it raises RankError of kind "interrupted" where it was called."""
        if self._ranks is not None:
            self._ranks.stop()

    def close(self) -> None:
        """End the ranks. A run in progress is stopped first."""
        if self._closed:
            return
        self._closed = True
        if self._attached is not None:
            self._attached.close()
            return
        self._ranks.stop()
        with self._ranks._turn.take("the end of the cluster", lambda text: None):
            self._ranks.end()
        self._end.detach()

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return self._attached.ranks if self._attached is not None else self._layout.ranks

    @property
    def pids(self) -> list[int]:
        """The process ids of the ranks, in order; empty after a failure, until the next run."""
        if self._attached is not None:
            return self._attached.pids()
        group = self._ranks.group
        return group.pids() if group is not None else []

    def describe(self) -> str:
        """In one line: how many ranks, on what, with which backend."""
        return self._attached.describe() if self._attached is not None else self._layout.describe()

    def __repr__(self) -> str:
        return f"<Cluster: {self.describe()}{', closed' if self._closed else ''}>"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()


def check_timeout(timeout: float | None) -> None:
    """Raise unless it is None or a positive number of seconds."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout={timeout!r} is of type {type(timeout).__name__}: give seconds, or None for no limit")
    if not timeout > 0:
        raise ValueError(f"timeout={timeout}: give a positive number of seconds, or None for no limit")


def refuse_inside_a_rank() -> None:
    """Ranks that start ranks would multiply without end; say so instead."""
    from disttutor.cluster import here

    if here.CHANNEL is not None:
        raise RuntimeError(f"this is rank {here.rank()} of a run already: ranks are started from the notebook only")


def _read_all(answers: list) -> list[Any]:
    values = []
    for rank, (_, parcel) in enumerate(answers):
        try:
            values.append(unpack(parcel))
        except Exception as problem:  # unpickling raises anything
            told = describe_exception(problem, skip=__file__)
            headline = f"rank {rank} returned something that cannot be read here: {told['type']}: {told['message']}"
            raise RankError(rank, "raised", f"{headline}\n\n{with_cells(told['text'])}") from None
    return values


def _trace(events: list[Any], slow_motion: Any, offsets: list[int] | None = None, note: str = "") -> Any:
    from disttutor import traces

    source = "measured" if slow_motion is None else "slow motion"
    notes = [slow_motion.describe()] if slow_motion is not None else []
    return traces.merge(events, source=source, note="; ".join([*notes, *filter(None, [note])]), offsets=offsets)


def _end_in(process: int, ranks: Ranks) -> None:
    if os.getpid() == process and not sys.is_finalizing():
        ranks.end()


_FRESH = Ranks(keep=False)
