"""Which device each rank gets, and which backend carries its messages. Decided before any process starts."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from disttutor.cluster.settings import whole_number

_CHOICES = ("cpu", "cuda", "auto")


@dataclass(frozen=True)
class Layout:
    """Where `ranks` ranks run."""

    ranks: int
    backend: str  # of torch.distributed
    devices: tuple[str, ...]  # of each rank
    threads: int  # of each rank's torch
    remarks: tuple[str, ...] = ()  # to be said plainly before the run

    def describe(self) -> str:
        """`4 ranks on the CPU, 1 thread each, gloo`."""
        kinds = sorted(set(self.devices))
        where = "the CPU" if kinds == ["cpu"] else ", ".join(kinds)
        plural = "s" if self.ranks > 1 else ""
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.ranks} rank{plural} on {where}, {threads} each, {self.backend}"


def lay_out(ranks: int, device: str = "cpu", threads: int | None = None) -> Layout:
    """Check the three settings and place the ranks.

    `device`: "cpu"; "cuda", one GPU for each rank, or, with more ranks than GPUs, the GPUs shared; "auto", "cuda"
    where every rank can have a GPU of its own, else "cpu". `threads`: of each rank, default max(1, cores // ranks),
    or OMP_NUM_THREADS where the user set it.

    Raises TypeError or ValueError for what cannot be, RuntimeError if there is no GPU.
    """
    ranks = _check_ranks(ranks)
    if device not in _CHOICES:
        raise ValueError(f"device={device!r}: choose one of {', '.join(map(repr, _CHOICES))}")
    remarks = []
    if ranks > 4 * cores():
        remarks.append(f"{ranks} ranks share {cores()} cores: it works, but what you see is mostly their waiting")
    gpus = 0 if device == "cpu" else count_gpus()
    if device == "auto":
        device = "cuda" if gpus >= ranks else "cpu"
    if device == "cpu":
        return Layout(ranks, "gloo", ("cpu",) * ranks, threads_per_rank(ranks, threads), tuple(remarks))
    if gpus == 0:
        raise RuntimeError(
            'device="cuda", but torch finds no NVIDIA GPU on this machine (or CUDA_VISIBLE_DEVICES hides it, or torch '
            'was installed without CUDA). Use device="cpu", or device="auto" to take a GPU only where there is one'
        )
    if ranks > gpus:
        remarks.append(
            f"{ranks} ranks share {gpus} GPU{'s' if gpus > 1 else ''}: messages go through gloo and the CPU's memory, "
            "since nccl needs a GPU for each rank. The results are right, the times are not those of more GPUs"
        )
    backend = "cpu:gloo,cuda:nccl" if ranks <= gpus else "gloo"
    devices = tuple(f"cuda:{rank % gpus}" for rank in range(ranks))
    return Layout(ranks, backend, devices, threads_per_rank(ranks, threads), tuple(remarks))


def _check_ranks(ranks: int) -> int:
    ranks = whole_number("ranks", ranks, "a whole number, such as ranks=4")
    if ranks < 1:
        raise ValueError(f"ranks={ranks}: there must be at least one rank, such as ranks=4")
    return ranks


def threads_per_rank(ranks: int, threads: int | None = None) -> int:
    """max(1, cores // ranks), unless it is given or the user set OMP_NUM_THREADS.

    torch's own default, every core for every rank, makes a step several times slower: the ranks' threads fight.
    """
    if threads is not None:
        threads = whole_number("threads", threads, "a whole number or None")
        if threads < 1:
            raise ValueError(f"threads={threads}: a rank needs at least one thread")
        return threads
    wish = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(wish) if wish.isdigit() and int(wish) > 0 else max(1, cores() // ranks)


def cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_gpus() -> int:
    """How many GPUs torch may use, without touching CUDA in this process (torch asks the driver's library)."""
    import torch

    if sys.platform == "darwin" or not torch.backends.cuda.is_built():
        return 0
    return torch.cuda.device_count()
