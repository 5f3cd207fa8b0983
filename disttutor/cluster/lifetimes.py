"""Two lifetimes of ranks, one engine: `run` makes fresh ranks for each call, a `Cluster` keeps its own."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

from disttutor.cluster.devices import lay_out
from disttutor.cluster.output import Sink
from disttutor.cluster.ranks import CLOSED, Ranks, Results, Turn

_TURN = Turn()


class FreshRuns:
    """Runs on fresh ranks, with a handle by which another thread can stop the one in progress (a lab's Stop button).

    All fresh ranks take turns, whoever asks for them: two runs at once would only show who got the cores.
    """

    def __init__(self) -> None:
        self._ranks = Ranks(keep=False, turn=_TURN)

    def run(
        self,
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

        `timeout`: seconds after which the run is given up, with the place where each rank stood (None or infinity: no
        limit). `device`: "cpu", "cuda" or "auto". `threads`: of each rank (default: cores // ranks). `record=True`
        gives the result a `.trace`; `slow_motion=SlowMotion(...)` records at the pace of a modelled machine.
        `output(rank, text)` gets what the ranks print, a line at a time, instead of the cell.

        Raises RankError if a rank raises, dies, or does not return in time; TypeError, ValueError or RuntimeError,
        before anything starts, for what cannot be run.
        """
        from disttutor.cluster import attach

        if attach.started_by_torchrun():
            raise RuntimeError(
                "run() starts ranks of its own, but this process is one of torchrun's ranks: use Cluster().run(...)"
            )
        return self._ranks.run(lay_out(ranks, device, threads), fn, args, timeout, record, slow_motion, output)

    def stop(self) -> bool:
        """End the run in progress, from any thread: it raises RankError of kind "interrupted" where it was called.

        False if none is in progress.
        """
        return self._ranks.stop()


run = FreshRuns().run


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
            raise RuntimeError(CLOSED)
        if self._attached is not None:
            return self._attached.run(fn, args, timeout, record, slow_motion, output)
        return self._ranks.run(self._layout, fn, args, timeout, record, slow_motion, output)

    def stop(self) -> None:
        """End the run in progress, from any thread: it raises RankError of kind "interrupted" where it was called."""
        if self._ranks is not None:
            self._ranks.stop()

    def close(self) -> None:
        """End the ranks. A run in progress is stopped first; those that wait for their turn raise RuntimeError."""
        if self._closed:
            return
        self._closed = True
        if self._attached is not None:
            self._attached.close()
            return
        self._ranks.close()
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


def _end_in(process: int, ranks: Ranks) -> None:
    if os.getpid() == process and not sys.is_finalizing():
        ranks.end()
