"""A segment of memory that all ranks of a group map, and that has no name which could be left behind.

On Linux the group's first rank makes an anonymous file in memory (memfd_create), and the others open it through
/proc/<pid>/fd/<fd>: it never has a name, so the kernel gives the memory back with the last process that maps it,
however the ranks end. Nor is it limited by the size of /dev/shm, which in a container may be 64 MB.
Elsewhere the segment has a random name for the milliseconds of its making: on macOS (POSIX shm_open) it is unlinked as
soon as all ranks have mapped it, and only a rank that is killed in between leaves it; on Windows a mapping's name goes
with its last handle.
"""

import mmap
import os
import platform
import secrets
import sys
import tempfile
from contextlib import suppress
from typing import Any

import psutil
import torch
import torch.distributed as dist
from torch import Tensor

from disttutor.strategies.groups import Group

LINUX = sys.platform == "linux"


class Segment:
    """`nbytes` bytes, zero at first, which every rank of `group` maps. Every rank must make it, with the same size.

    Raises, on every rank alike, ValueError if the ranks are not on one machine or ask for different sizes, and
    RuntimeError if the system has no such memory to give.
    """

    def __init__(self, group: Group, nbytes: int, way: type | None = None):
        way = way or (Nameless if LINUX else Mapping if os.name == "nt" else Named)
        problem, offer, made = "", None, None
        try:
            if group.index == 0:
                made = way(nbytes)
                offer = made.offer()
        except OSError as error:
            problem = str(error)
        try:
            everybodys = tell_all(group, (machine(), nbytes, problem, offer))
            _check(group, everybodys)
            try:
                self.memory = (made or way(nbytes, everybodys[0][3])).map()
            except OSError as error:
                problem = str(error)
            _complain(group, tell_all(group, problem))
        finally:
            if made is not None:
                made.forget()

    def tensor(self, at: int, numel: int, dtype: torch.dtype) -> Tensor:
        """`numel` elements from byte `at` on. The memory stays mapped as long as such a tensor lives."""
        if not numel:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(self.memory, dtype=dtype, count=numel, offset=at)


class Nameless:
    """Linux: a file that has no name in any folder. Without memfd_create (Pythons built for old systems lack it) it is
    one in /dev/shm, made nameless (O_TMPFILE)."""

    def __init__(self, nbytes: int, offer: tuple[int, int, tuple[int, int]] | None = None):
        self.nbytes, self._file = nbytes, None
        if offer is not None:
            pid, fd, identity = offer
            self._file = open(f"/proc/{pid}/fd/{fd}", "r+b", buffering=0)
            if self._identity() != identity:
                raise OSError(f"/proc/{pid}/fd/{fd} is another file than the one that was offered")
            return
        free = psutil.virtual_memory().available
        if nbytes > free:                                     # the kernel would give it, and then end processes for it
            raise OSError(f"of this machine's memory {free} bytes are left")
        if hasattr(os, "memfd_create"):
            self._file = open(os.memfd_create("all-reduce", os.MFD_CLOEXEC), "r+b", buffering=0)
        else:
            self._file = tempfile.TemporaryFile(dir="/dev/shm", buffering=0)
        os.posix_fallocate(self._file.fileno(), 0, nbytes)    # too little memory is an error now, not a SIGBUS later

    def _identity(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_dev, status.st_ino

    def offer(self) -> tuple[int, int, tuple[int, int]]:
        return os.getpid(), self._file.fileno(), self._identity()

    def map(self) -> mmap.mmap:
        return mmap.mmap(self._file.fileno(), self.nbytes)

    def forget(self) -> None:
        """All ranks have mapped it, or will not."""
        self._file.close()


class Named:
    """macOS and other systems with POSIX shared memory: a random name, readable by this user only, until all have
    mapped it."""

    def __init__(self, nbytes: int, name: str | None = None):
        import _posixshmem  # what multiprocessing.shared_memory stands on; that itself would keep the name

        self._posix, self.nbytes = _posixshmem, nbytes
        self._owns = name is None
        self.name = name or f"/disttutor-{secrets.token_hex(6)}"
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if self._owns else 0)
        self._fd = self._posix.shm_open(self.name, flags, mode=0o600)
        if self._owns:
            try:
                os.ftruncate(self._fd, nbytes)
            except OSError:
                self.forget()
                raise

    def offer(self) -> str:
        return self.name

    def map(self) -> mmap.mmap:
        try:
            return mmap.mmap(self._fd, self.nbytes)
        finally:
            os.close(self._fd)

    def forget(self) -> None:
        if self._owns:
            with suppress(OSError):
                self._posix.shm_unlink(self.name)


class Mapping:
    """Windows: a named mapping of the paging file."""

    def __init__(self, nbytes: int, name: str | None = None):
        self.name = name or f"disttutor-{secrets.token_hex(6)}"
        self._memory = mmap.mmap(-1, nbytes, tagname=self.name)

    def offer(self) -> str:
        return self.name

    def map(self) -> mmap.mmap:
        return self._memory

    def forget(self) -> None:
        del self._memory


def machine() -> tuple[str, ...]:
    """What two processes have in common if, and only if, they can share memory in this way."""
    if not LINUX:
        return (platform.node(),)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    # Process numbers, by which the memory is found, mean something else in another container.
    return platform.node(), boot, os.readlink("/proc/self/ns/pid")


def tell_all(group: Group, mine: Any) -> list[Any]:
    """What each rank of the group says, in order."""
    said: list[Any] = [None] * group.size
    if group.size == 1:
        return [mine]
    dist.all_gather_object(said, mine, group=group.handle)
    return said


def _check(group: Group, everybodys: list[tuple]) -> None:
    first_machine, first_bytes, problem, _ = everybodys[0]
    for rank, (where, nbytes, _, _) in zip(group.ranks, everybodys, strict=True):
        if where[1:] != first_machine[1:] or (not LINUX and where != first_machine):
            apart = " in another container" if where[:2] == first_machine[:2] else ""
            raise ValueError(f"rank {group.ranks[0]} runs on {first_machine[0]} and rank {rank} on {where[0]}{apart}: "
                             "they have no memory in common. Use gloo, or a group of ranks on one machine")
        if nbytes != first_bytes:
            raise ValueError(f"the ranks ask for segments of different size: {first_bytes} bytes on rank "
                             f"{group.ranks[0]} and {nbytes} on rank {rank}. Ask for the same on every rank")
    if problem:
        raise RuntimeError(f"rank {group.ranks[0]} could not make {first_bytes} bytes of shared memory: {problem}")


def _complain(group: Group, problems: list[str]) -> None:
    for rank, problem in zip(group.ranks, problems, strict=True):
        if problem:
            raise RuntimeError(f"rank {rank} could not map the shared memory of rank {group.ranks[0]}: {problem}")
