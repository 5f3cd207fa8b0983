"""A barrier between processes of one machine that costs microseconds, burns no processor while it waits long, and ends
with an error when a rank is gone.

Who waits looks a few times at once (the others are often a moment away), then lends its core to whoever wants it (with
fewer cores than ranks, the rank that everybody waits for may need this very core), and then sleeps.

What a rank wrote before a barrier must be seen by those that read after it. On Linux that is POSIX's word: the barrier
is made of semaphores in the shared memory, and sem_post and sem_wait "synchronize memory" between threads of all
processes (POSIX.1-2017, XBD 4.12), on x86 as on ARM. macOS has no such semaphores, Windows other ones. There each rank
counts its arrivals in an aligned 8-byte integer, which CPython's ctypes writes and reads by one instruction. On x86-64
that is enough: stores are seen in their order, and loads are done in theirs (Intel SDM vol. 3A, "Memory Ordering";
memcpy fences its streaming stores itself). Other processors order neither, so each look is followed, and each arrival
preceded, by a full fence from the C library (OSMemoryBarrier on macOS); where there is none, the barrier is refused.
"""

import ctypes
import errno
import os
import platform
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import torch

from disttutor.strategies.groups import Group
from disttutor.strategies.shared_segment import Segment, tell_all

_LINE = 64                 # bytes between two flags: a cache line of its own for each, so that none slows another
_LOOKS = 10                # at once; each takes 0.1 to 0.2 µs
_YIELDS = 100              # looks with the core offered to others in between
_SLICE = 0.2               # seconds of sleep between two looks at whether the others are still alive


class Barrier:
    """`wait()` returns once every rank of the group has called it. Takes `room(ranks)` bytes of a segment from `at` on.

    wait raises RuntimeError if a rank that it waits for has ended, and TimeoutError after `timeout` seconds.
    """

    def __init__(self, group: Group, segment: Segment, at: int, timeout: float):
        self.group, self.timeout, self._segment = group, timeout, segment
        self.peers = [i for i in range(group.size) if i != group.index]
        self._prepare(segment.tensor(at, self.room(group.size), torch.uint8).data_ptr())
        pids = tell_all(group, os.getpid())                  # nobody goes on before all are prepared
        self._processes = {i: process(pids[i]) for i in self.peers}
        crowded = group.size > len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else False
        self._looks = 1 if crowded else _LOOKS

    @staticmethod
    def room(ranks: int) -> int:
        """Bytes that a barrier of so many ranks takes."""
        return ranks * ranks * _LINE

    def wait(self) -> None:
        """Until all are here."""
        self._arrive()
        for place, peer in enumerate(self.peers):
            if not self._is_here(peer):
                self._wait_for(peer, self.peers[place:])

    def _wait_for(self, peer: int, awaited: list[int]) -> None:
        for _ in range(self._looks):
            if self._is_here(peer):
                return
        for _ in range(_YIELDS):
            _lend_core()
            if self._is_here(peer):
                return
        end = time.monotonic() + self.timeout
        while not self._sleep(peer):
            for other in awaited:
                # One that has been here and ended since is not missed.
                if self._processes[other].has_ended() and not self._seen(other):
                    raise RuntimeError(f"rank {self.group.ranks[other]} has ended, and rank "
                                       f"{self.group.ranks[self.group.index]} waits for it in a barrier in shared "
                                       "memory: connection closed by peer")
            if time.monotonic() > end:
                raise TimeoutError(f"rank {self.group.ranks[self.group.index]} waited {self.timeout:g} s for rank "
                                   f"{self.group.ranks[peer]} in a barrier in shared memory. Every rank of the group "
                                   "must make the same calls; if it only needs longer, give a longer timeout")


class Semaphores(Barrier):
    """Linux: for each pair of ranks two semaphores in the shared memory, one each way."""

    def _prepare(self, base: int) -> None:
        n, me = self.group.size, self.group.index
        self._outgoing = [ctypes.c_void_p(base + (me * n + i) * _LINE) for i in self.peers]
        self._incoming = {i: ctypes.c_void_p(base + (i * n + me) * _LINE) for i in self.peers}
        # Looking and posting take less time than to let go of Python's lock and take it again; a sleep lets go of it.
        self._post, self._try, self._value = (getattr(_QUICK, f) for f in ("sem_post", "sem_trywait", "sem_getvalue"))
        for semaphore in self._incoming.values():
            if _QUICK.sem_init(semaphore, 1, 0):
                raise RuntimeError("this system has no semaphores in shared memory")

    def _arrive(self) -> None:
        for semaphore in self._outgoing:
            self._post(semaphore)

    def _is_here(self, peer: int) -> bool:
        return not self._try(self._incoming[peer])

    def _seen(self, peer: int) -> bool:
        value = ctypes.c_int()
        self._value(self._incoming[peer], ctypes.byref(value))
        return value.value > 0

    def _sleep(self, peer: int) -> bool:
        until = _Time(*divmod(time.time_ns() + int(_SLICE * 1e9), 10**9))
        if not _PATIENT.sem_timedwait(self._incoming[peer], ctypes.byref(until)):
            return True
        if ctypes.get_errno() not in (errno.ETIMEDOUT, errno.EINTR):
            raise OSError(ctypes.get_errno(), "sem_timedwait failed")
        return False


class Counters(Barrier):
    """Elsewhere: each rank counts its arrivals where the others can read it."""

    def _prepare(self, base: int) -> None:
        self._fence = _fence()
        self._counts = [ctypes.c_int64.from_address(base + i * _LINE) for i in range(self.group.size)]
        self._passed, self._pause = 0, 0.0

    def _arrive(self) -> None:
        self._passed += 1
        self._pause = 50e-6
        self._fence()
        self._counts[self.group.index].value = self._passed

    def _seen(self, peer: int) -> bool:
        return self._counts[peer].value >= self._passed

    def _is_here(self, peer: int) -> bool:
        here = self._seen(peer)
        self._fence()
        return here

    def _sleep(self, peer: int) -> bool:
        end = time.monotonic() + _SLICE
        while time.monotonic() < end:
            time.sleep(self._pause)
            self._pause = min(2e-3, 1.2 * self._pause)
            if self._is_here(peer):
                return True
        return False


class _Time(ctypes.Structure):
    """C's struct timespec."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_QUICK = ctypes.PyDLL(None) if sys.platform == "linux" else None
_PATIENT = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_lend_core: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


def _fence() -> Callable[[], None]:
    """What keeps loads and stores in their order on this processor. Raises RuntimeError if there is nothing."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return lambda: None
    with suppress(AttributeError, OSError, TypeError):
        return ctypes.CDLL(None).OSMemoryBarrier
    raise RuntimeError(f"shared memory needs POSIX semaphores, an x86-64 processor or macOS, and this is "
                       f"{platform.machine()} with {platform.system()}. Use gloo")


def make_barrier(group: Group, segment: Segment, at: int, timeout: float) -> Barrier:
    """The barrier for this system."""
    return (Semaphores if sys.platform == "linux" else Counters)(group, segment, at, timeout)


_PROCESSES: dict[int, "Process"] = {}


def process(pid: int) -> "Process":
    """The process with this number now: one open file for each, however many barriers there are."""
    known = _PROCESSES.get(pid)
    if known is None or known.has_ended():
        known = _PROCESSES[pid] = Process(pid)
    return known


class Process:
    """Another process, and whether it has ended."""

    def __init__(self, pid: int):
        self._pid, self._fd = pid, None
        with suppress(AttributeError, OSError):
            self._fd = os.pidfd_open(pid)                    # a process's number may be another's later; this may not
            self._news = select.poll()
            self._news.register(self._fd, select.POLLIN)     # readable: it has ended

    def has_ended(self) -> bool:
        if self._fd is not None:
            return bool(self._news.poll(0))
        if os.name == "nt":
            return False                                     # os.kill would end it; the timeout tells
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
        return False

    def __del__(self) -> None:
        if getattr(self, "_fd", None) is not None:
            os.close(self._fd)
