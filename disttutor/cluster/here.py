"""Where this code runs: helpers that work in a rank and in a plain process alike.

Without a process group there is one rank: rank 0 of 1, a barrier does nothing, a mean is the value itself.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

CHANNEL: Any = None  # in a rank of ours: the connection to the notebook
PROCESS = 0  # in a rank of ours: its process id
DEVICE: Any = None  # in a rank: the device it was given
_PAUSE = 0.1  # seconds between two messages about progress
_turn = 0
_inside = False


def _group():
    """torch.distributed if a process group stands, else None. Does not import torch."""
    dist = sys.modules.get("torch.distributed")
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None


def rank() -> int:
    """The number of this process in its group; 0 without a group."""
    dist = _group()
    return dist.get_rank() if dist else 0


def world_size() -> int:
    """How many ranks there are; 1 without a group."""
    dist = _group()
    return dist.get_world_size() if dist else 1


def is_a_rank() -> bool:
    """Whether this very process is a rank of ours; one that a rank forked inherits its connection, but is none."""
    return CHANNEL is not None and os.getpid() == PROCESS


def device():
    """The torch.device of this rank; the CPU in a plain process."""
    import torch

    return DEVICE if DEVICE is not None else torch.device("cpu")


def barrier() -> None:
    """Wait until every rank is here."""
    if dist := _group():
        dist.barrier()


def mean(value):
    """The mean of `value` over the ranks, on every rank: a tensor of any shape (a new one), or a number.

    Integers and booleans give the mean as a float.
    """
    import torch

    tensor = value.detach().clone() if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=torch.float64)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        tensor = tensor.to(torch.get_default_dtype())
    if dist := _group():
        tensor = tensor.to(device()) if dist.get_backend() == "nccl" else tensor
        dist.all_reduce(tensor)
        tensor /= dist.get_world_size()
    return tensor.to(value.device) if isinstance(value, torch.Tensor) else tensor.item()


def save(obj: Any, path: str | os.PathLike) -> None:
    """Write `obj` to `path` by torch.save, once: by rank 0, whole or not at all. Returns when the file is there.

    Every rank must call it. Raises OSError on every rank if rank 0 could not write.
    """
    import torch

    problem: list[Any] = [None]
    if rank() == 0:
        part = f"{os.fspath(path)}.{os.getpid()}.part"
        try:
            torch.save(obj, part)
            os.replace(part, path)
        except (OSError, RuntimeError) as error:
            problem = [str(error)]
            if os.path.exists(part):
                os.unlink(part)
    if dist := _group():
        dist.broadcast_object_list(problem, src=0)
    if problem[0] is not None:
        raise OSError(f"rank 0 could not write {os.fspath(path)!r}: {problem[0]}")


def progress(iterable: Iterable[T], title: str = "") -> Iterator[T]:
    """Go through `iterable` with a progress bar: one for all ranks, as far as the slowest of them.

    A loop inside such a loop draws nothing, nor does one in a process that a rank forked.
    """
    global _turn, _inside
    total = len(iterable) if hasattr(iterable, "__len__") else None
    if _inside or (CHANNEL is not None and not is_a_rank()):
        yield from iterable
        return
    _inside = True
    try:
        if CHANNEL is None:
            yield from _own_bar(iterable, title)
            return
        _turn += 1
        yield from _told(iterable, _turn, title, total)
    finally:
        _inside = False


def _told(iterable: Iterable[T], turn: int, title: str, total: int | None) -> Iterator[T]:
    done, last = 0, 0.0
    for item in iterable:
        now = time.monotonic()
        if now - last >= _PAUSE:
            last = now
            CHANNEL.send("progress", {"turn": turn, "title": title, "done": done, "total": total})
        yield item
        done += 1
    CHANNEL.send("progress", {"turn": turn, "title": title, "done": done, "total": total})


def _own_bar(iterable: Iterable[T], title: str) -> Iterator[T]:
    if rank() != 0:
        yield from iterable
        return
    from tqdm.auto import tqdm

    yield from tqdm(iterable, desc=title)
