"""One group of ranks and one call on it: start, send, wait for all, and on the first bad news end them all.

Everything here runs on the thread that called: what ranks print lands in the cell that waits for them, and Stop
(KeyboardInterrupt) is raised where it is handled. A group in which anything went wrong is killed, never used again.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from disttutor.cluster.channel import Parcel
from disttutor.cluster.crashes import CRASHES, crashing_stack
from disttutor.cluster.devices import Layout
from disttutor.cluster.errors import Fault, RankError, StartLost, blame, names, timed_out
from disttutor.cluster.output import Console
from disttutor.cluster.server import ServerGone
from disttutor.cluster.settings import working_folder

START_SECONDS = 180.0  # for importing torch on a very busy machine; then the start is given up
_GRACE = 0.1  # seconds in which other ranks may report too, once one has failed
_GRACE_AFTER_VICTIM = 0.5  # the same, when all reports so far are of ranks that lost a peer
_PATIENCE = 30.0  # seconds after which ranks that go on alone are pointed out
_TICK = 0.2  # seconds between two looks at what cannot be waited for
_LONGEST_WAIT = 3600.0  # seconds; what the system can be asked to wait for is limited
_UNBORN = 0.3  # seconds in which a rank that was asked for and is no longer wanted may still be forked


class Group:
    """Ranks that live together and die together."""

    def __init__(self, layout: Layout, launcher: Any, trains: bool = True) -> None:
        self.work = working_folder()
        self.layout, self.ready, self.usable = layout, set(), True
        launcher.start()
        self.folder = tempfile.mkdtemp(dir=launcher.folder)  # mode 0700: no other user can join the rendezvous
        self.members: list[Any] = []
        try:
            for rank in range(layout.ranks):
                member = launcher.new_rank(trains)
                self.members.append(member)
                member.channel.send("setup", self._setup(rank))
        except BaseException as problem:
            self.kill()
            if isinstance(problem, ServerGone | BrokenPipeError):
                raise StartLost(0, "died", f"rank 0 could not start: {launcher.complaint() or problem}") from None
            raise

    def _setup(self, rank: int) -> dict[str, Any]:
        layout = self.layout
        environment = {**os.environ, "TQDM_DISABLE": "1"}
        for name in ("MASTER_ADDR", "MASTER_PORT", "GROUP_RANK"):
            environment.pop(name, None)
        for name in ("LOCAL_RANK", "RANK"):
            environment[name] = str(rank)
        for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"):
            environment[name] = str(layout.ranks)
        environment["DISTTUTOR_RANK"] = str(rank)
        if os.name == "posix":  # otherwise gloo listens where the host name points to, which may be the whole network
            loopback = "lo0" if sys.platform == "darwin" else "lo"
            environment["GLOO_SOCKET_IFNAME"] = environment["NCCL_SOCKET_IFNAME"] = loopback
        return {
            "rank": rank,
            "ranks": layout.ranks,
            "backend": layout.backend,
            "device": layout.devices[rank],
            "threads": layout.threads,
            "store": os.path.join(self.folder, "store"),
            "stack": self._stack_file(rank),
            "crash": self._crash_file(rank),
            "environment": environment,
            "folder": self.work,
            "path": list(sys.path),
        }

    def _stack_file(self, rank: int) -> str:
        return os.path.join(self.folder, f"stack-{rank}")

    def _crash_file(self, rank: int) -> str:
        return os.path.join(self.folder, f"crash-{rank}")

    def crash(self, rank: int, exit_code: int | None) -> str:
        """Where a rank stood that ended in this way, as faulthandler wrote it; empty if compiled code did not crash."""
        try:
            with open(self._crash_file(rank), encoding="utf-8", errors="replace") as file:
                return crashing_stack(file.read()) if exit_code in CRASHES else ""
        except OSError:
            return ""

    def stacks(self, ranks: set[int]) -> dict[int, str]:
        """Where the main thread of each of these ranks stands now, as faulthandler writes it."""
        for rank in ranks:
            self.members[rank].signal_stack()
        found: dict[int, str] = {}
        end = time.monotonic() + 3.0
        while set(found) != ranks and time.monotonic() < end:
            time.sleep(0.02)
            for rank in ranks:
                try:
                    with open(self._stack_file(rank), encoding="utf-8", errors="replace") as file:
                        text = file.read()
                except OSError:
                    continue
                if text.endswith("\n"):
                    found[rank] = text
        return found

    def pids(self) -> list[int]:
        """The process id of every rank; waits until they have been forked."""
        return [member.wait_for_pid(START_SECONDS) for member in self.members]

    def dead(self) -> bool:
        """Whether a rank has ended since the last run."""
        return not self.usable or any(member.look() for member in self.members)

    def leave(self) -> None:
        """Let the ranks end by themselves (their exit functions run; after two seconds they are gone in any case).

        Does not wait for it: to end a process that has torch in its memory takes longer than a small run.
        """
        if len(self.ready) < self.layout.ranks:
            return self.kill()  # one may still be waiting for the others to join
        self.usable = False
        for member in self.members:
            try:
                member.channel.send("leave")
            except OSError:
                pass
        self._let_go()

    def kill(self) -> None:
        """End every rank and what it started, at once, and wait until they are gone."""
        self.usable = False
        try:
            self._end_all_within(5.0)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        for member in self.members:
            member.close()
        self.members = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_all_within(self, seconds: float) -> None:
        start = time.monotonic()
        while True:
            for member in self.members:
                member.kill()  # each time: its number may have come only now
            passed = time.monotonic() - start
            left = [m for m in self.members if not m.look() and (m.pid is not None or passed < _UNBORN)]
            if not left or passed >= seconds:
                return
            rest = (seconds if any(m.pid is not None for m in left) else _UNBORN) - passed
            wait([m.sentinel for m in left if m.sentinel is not None], min(rest, _TICK))


class Call:
    """One function on every rank of a group: the wait for what comes of it."""

    def __init__(self, group: Group, console: Console, waker: Any, label: str) -> None:
        self.group, self.console, self.waker, self.label = group, console, waker, label
        self.results: dict[int, tuple[dict[str, Any], Parcel]] = {}
        self.faults: dict[int, Fault] = {}
        self._mute: set[int] = set()  # ranks whose connection is closed; their end will be told
        self._silent: set[int] = set()  # ranks whose output is at its end
        self._remark_at: float | None = None  # when to point out that some ranks go on alone

    def perform(self, info: dict[str, Any], parcel: Parcel, timeout: float | None) -> list[tuple[dict, Parcel]]:
        """Run it and return every rank's answer. Raises RankError; then, and on Stop, the group is gone."""
        everyone = set(range(self.group.layout.ranks))
        try:
            self._until(lambda: self.group.ready == everyone, START_SECONDS, starting=True)
            for rank in everyone:
                try:
                    self.group.members[rank].channel.send("call", info, parcel)
                except OSError:
                    pass  # it has died: its sentinel tells how
            self._until(lambda: self.results.keys() == everyone, timeout)
            self._drain()
            return [self.results[rank] for rank in sorted(everyone)]
        except BaseException:
            try:
                self._drain()
            finally:
                self.group.kill()
            raise

    def _until(self, done: Callable[[], bool], timeout: float | None, starting: bool = False) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        while not done():
            rest = None if end is None else end - time.monotonic()
            if rest is not None and rest <= 0:
                raise self._too_late(timeout, starting)
            rest = self._until_remark(rest)
            self._step(None if rest is None else min(rest, _LONGEST_WAIT))
            if self.faults:
                self._collect_more()
                error = blame(list(self.faults.values()))
                if starting and all(fault.of_the_server for fault in self.faults.values()):
                    raise StartLost(*error.args)
                raise error

    def _until_remark(self, rest: float | None) -> float | None:
        """Some ranks have returned and others go on: after a while say so once, since they may wait for ever."""
        if self._remark_at is None:
            return rest
        now = time.monotonic()
        if now >= self._remark_at:
            self._remark_at = None
            others = set(range(len(self.group.members))) - self.results.keys()
            self.console.remark(
                f"{names(self.results)} returned {_PATIENCE:.0f} s ago, {names(others)} did not: in a collective that "
                "not every rank joins, it waits for ever. Stop ends the run"
            )
            return rest
        return self._remark_at - now if rest is None else min(rest, self._remark_at - now)

    def _step(self, seconds: float | None) -> None:
        """Wait for news of any kind and take it in: text first, so that it stands before what it led to."""
        members, sources = self.group.members, {self.waker: ("stop", -1)}
        tick = seconds
        for rank, member in enumerate(members):
            if rank not in self._silent:
                sources[member.out] = ("out", rank)
            if rank not in self._mute:
                sources[member.channel.connection] = ("message", rank)
            if rank in self.faults:
                continue
            if member.sentinel is None:
                tick = _TICK if tick is None else min(tick, _TICK)
            else:
                sources[member.sentinel] = ("end", rank)
        news = [sources[source] for source in wait(list(sources), tick)]
        news += [("end", rank) for rank, member in enumerate(members) if member.sentinel is None]
        for kind, rank in sorted(news, key=lambda n: ("stop", "out", "message", "end").index(n[0])):
            if kind == "stop":
                raise RankError(None, "interrupted", f"the run of {self.label} was stopped")
            elif kind == "out":
                self._read_output(rank)
            elif kind == "message" and rank not in self._mute:
                self._read_message(rank)
            elif kind == "end" and rank not in self.faults and members[rank].look():
                self._read_last_words(rank)
                if rank not in self.faults:
                    code = members[rank].exit_code
                    self.faults[rank] = Fault(rank, code, died=True, stack=self.group.crash(rank, code))

    def _read_message(self, rank: int) -> None:
        try:
            kind, info, parcel = self.group.members[rank].channel.receive()
        except (EOFError, OSError):
            self._mute.add(rank)
            return
        if kind == "ready":
            self.group.ready.add(rank)
        elif kind == "result":
            self.results[rank] = (info, parcel)
            self._remark_at = time.monotonic() + _PATIENCE
        elif kind == "raised":
            self.faults[rank] = Fault(rank, report=info, when=info["when"])
        elif kind == "warning":
            self.console.warning(rank, info)
        elif kind == "progress":
            self.console.progress(rank, info)

    def _read_last_words(self, rank: int) -> None:
        """What a rank that has ended had still sent: a rank that raised and was then killed did raise."""
        while rank not in self._mute and rank not in self.faults:
            if not self.group.members[rank].channel.connection.poll():
                break
            self._read_message(rank)

    def _read_output(self, rank: int) -> bool:
        """Take what a rank printed; False if there is no more for now."""
        data = self.group.members[rank].read_output()
        if data == b"":
            self._silent.add(rank)
        if data:
            self.console.feed(rank, data)
        return bool(data)

    def _drain(self) -> None:
        """What was printed before the results were sent is in the pipes; take it all, but not for ever."""
        end = time.monotonic() + 1.0
        for rank in range(len(self.group.members)):
            while rank not in self._silent and self._read_output(rank) and time.monotonic() < end:
                pass

    def _collect_more(self) -> None:
        """After the first failure, wait a moment for others: the culprit may report after its victim."""
        start = time.monotonic()
        while len(self.faults) < len(self.group.members):
            only_victims = all(fault.of_a_peer for fault in self.faults.values())
            rest = start + (_GRACE_AFTER_VICTIM if only_victims else _GRACE) - time.monotonic()
            if rest <= 0:
                return
            self._step(rest)

    def _too_late(self, timeout: float, starting: bool) -> RankError:
        everyone = set(range(len(self.group.members)))
        waiting = everyone - (self.group.ready if starting else self.results.keys())
        error = timed_out(waiting, timeout, self.group.stacks(waiting), everyone - waiting)
        if starting:
            return RankError(error.rank, "timeout", "the ranks did not start: " + error.detail)
        return error
