"""All-reduce in memory that the ranks of one machine share: the fast link beside gloo's messages.

Nothing is sent: each rank lays its data where all can read it, and reads the others'. This is how the all-reduce
kernels of inference engines work over NVLink, where a GPU reads its peers' memory as these processes do (vLLM's
custom_all_reduce with a one-stage and a two-stage kernel, TensorRT-LLM's strategies ONESHOT and TWOSHOT, PyTorch's
symmetric memory with one_shot_all_reduce and two_shot_all_reduce_):

one-shot: every rank reads all n arrays and sums them by itself. One meeting; (n-1) N bytes read by each rank.
two-shot: rank r sums the r-th part of all n arrays, then all read the finished parts. A reduce-scatter and an
all-gather: two meetings; 2(n-1)/n N bytes read by each rank.

One-shot is for small arrays, where a meeting costs more than the bytes, and for two ranks, where both read the same
(vLLM changes over at 512 KB for up to 4 GPUs, at 256 KB for up to 8). Work goes in pieces small enough to stay in a
core's cache between writing and reading.

A tensor from `empty` lies in the shared memory itself (a registered buffer), so that nothing has to be copied in or
out: rank r sums the r-th part of all ranks' tensors and writes the sum into each.

Sums are taken in the order of the ranks, types of 16 bits in float32 and rounded once. So the result is the same to the
last bit on all ranks and in every run.
"""

import os
import struct
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from disttutor.strategies.checks import whole_number
from disttutor.strategies.groups import Group
from disttutor.strategies.shared_barrier import Barrier, make_barrier
from disttutor.strategies.shared_segment import Segment
from disttutor.strategies.shared_sums import OPS, TYPES, check_reducible, check_type, combine, name

SMALL = 256 << 10          # bytes up to which one shot is faster with more than two ranks, as measured
SMALL_INSIDE = 16 << 10    # the same for a tensor from `empty`, for any number of ranks
PIECE = 512 << 10          # bytes: two fit in the cache of one core, and a meeting costs little beside their sum
_PAGE = 4096               # bytes: each rank's memory begins on a page of its own
_VIEWS = 500               # sets of views that are kept
_ALIGN = 64                # bytes: a cache line
_CALL = struct.Struct("=5q")


class SharedMemory:
    """Memory shared by the ranks of `group` (on one machine), and all-reduces in it.

    nbytes: room in bytes for the tensors that this rank's `empty` hands out. timeout: seconds that a call waits for the
    other ranks. Every rank of the group must make it, with the same arguments; it takes some milliseconds. The system
    has the memory back when the last rank and the last tensor from `empty` are gone, also if ranks are killed.

    Raises ValueError for ranks on several machines, TypeError or ValueError for an `nbytes` that cannot be, and
    RuntimeError where the system has no such memory to give.
    """

    def __init__(self, group: Group, nbytes: int = 0, *, timeout: float = 1800.0):
        whole_number("nbytes", nbytes, least=0)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise ValueError(f"timeout is {timeout!r}; it must be more than 0 seconds")
        self.group, self.nbytes = group, _up(nbytes, _PAGE)
        self._used, self._meetings, self._inside, self._process = 0, 0, False, os.getpid()
        self._views: dict[tuple, list[Any]] = {}
        self._segment: Segment | None = None
        n = group.size
        # First each rank's room for `empty`. Then, used in turn, two of each: a piece of every rank, a finished piece,
        # and a line of every rank that tells what it was called for.
        self._staged_at = self.nbytes * n
        calls_at = self._staged_at + 2 * PIECE * (n + 1)
        barrier_at = calls_at + 2 * _ALIGN * n
        lines = [slice(at, at + _CALL.size) for at in range(calls_at, barrier_at, _ALIGN)]
        self._lines = lines[:n], lines[n:]
        if n == 1:
            self._alone = torch.zeros(self.nbytes, dtype=torch.uint8)
            return
        self._segment = Segment(group, barrier_at + Barrier.room(n))
        self._barrier = make_barrier(group, self._segment, barrier_at, timeout)
        self._base = self._segment.tensor(0, 1, torch.uint8).data_ptr()

    def empty(self, numel: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """A tensor [numel] of zeros in the shared memory; other ranks write into it, in `all_reduce` only.

        Every rank must ask for the same, in the same order. Raises ValueError if the room that was asked for at first
        is used up, TypeError for a type that cannot be reduced.
        """
        self._check_open()
        whole_number("numel", numel, least=0)
        check_type(dtype)
        size = self.room(numel, dtype)
        if self._used + size > self.nbytes:
            raise ValueError(f"{numel} elements of {name(dtype)} need {size} bytes, and of the "
                             f"{self.nbytes} bytes of this shared memory {self.nbytes - self._used} are left: make it "
                             "with a larger nbytes")
        at, self._used = self._used, self._used + size
        if self._segment is None:
            return self._alone[at:at + numel * dtype.itemsize].view(dtype)
        return self._segment.tensor(self.group.index * self.nbytes + at, numel, dtype)

    @staticmethod
    def room(numel: int, dtype: torch.dtype) -> int:
        """Bytes that `empty(numel, dtype)` takes."""
        return _up(numel * dtype.itemsize, _ALIGN)

    def all_reduce(self, tensor: Tensor, op: str = "sum", shots: int | None = None) -> Tensor:
        """Replace `tensor` (any shape, contiguous, on the CPU) by its sum, mean or max over the ranks; return it.

        shots: 1 or 2 as above; None chooses by size. Every rank must make the same call. max gives NaN where any rank
        has one.

        Raises ValueError or TypeError for a tensor or an argument that cannot be; ValueError, on every rank, if the
        ranks' calls differ; RuntimeError if another rank has ended, TimeoutError if one does not come.
        """
        self._check_open()
        check_reducible(tensor, op)
        if shots not in (None, 1, 2):
            raise ValueError(f"shots is {shots!r}; it can be 1, 2, or None to choose by size")
        if self.group.size == 1:
            return tensor
        flat = tensor.detach().view(-1)
        at = flat.data_ptr() - self._base - self.group.index * self.nbytes
        if not 0 <= at < self._used:
            at = -1                                      # not in the shared memory
        if shots is None:
            shots = self._choose(flat.nbytes, at)
        call = _CALL.pack(flat.numel(), TYPES.index(flat.dtype), OPS.index(op), shots, at)
        self._inside = True          # and stays so if this is left by an exception: the ranks have lost step then
        if shots == 1:
            self._one_shot(flat, op, call)
        elif at < 0:
            self._two_shot(flat, op, call)
        else:
            self._two_shot_in_place(flat, at, op, call)
        self._inside = False
        return tensor

    def close(self) -> None:
        """This rank no longer takes part. Tensors from `empty` stay what they are."""
        self._segment = self._barrier = None
        self._views, self._process = {}, 0

    def __enter__(self) -> "SharedMemory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------------- the algorithms

    def _one_shot(self, flat: Tensor, op: str, call: bytes) -> None:
        me = self.group.index
        for piece in _pieces(flat):
            # One meeting a piece: whoever writes this half again has met the others once more, so they have read it.
            *rows, _ = self._staged(flat.dtype, piece.numel())
            rows[me].copy_(piece)
            self._meet(call)
            if len(rows) == 2:
                rows[me] = piece                         # where it has just been read from
            combine(rows, piece, op)
            call = None

    def _two_shot(self, flat: Tensor, op: str, call: bytes) -> None:
        last = None
        for piece in _pieces(flat):
            *rows, finished = self._staged(flat.dtype, piece.numel())
            rows[self.group.index].copy_(piece)
            self._meet(call)
            # The meeting that makes this piece's parts ready to be summed makes the sums of the last one ready, too.
            if last is not None:
                last[0].copy_(last[1])
            begin, end = self._part(piece.numel(), flat.itemsize)
            combine([row[begin:end] for row in rows], finished[begin:end], op)
            last, call = (piece, finished), None
        self._meet(None)
        last[0].copy_(last[1])

    def _two_shot_in_place(self, flat: Tensor, at: int, op: str, call: bytes) -> None:
        key = at, flat.numel(), flat.dtype
        if key not in self._views:
            begin, end = self._part(flat.numel(), flat.itemsize)
            whole = [self._segment.tensor(i * self.nbytes + at, flat.numel(), flat.dtype)
                     for i in range(self.group.size)]
            pieces = [t[begin:end].split(PIECE // self.group.size // flat.itemsize) for t in whole]
            self._keep(key, list(zip(*pieces, strict=True)))
        self._meet(call)
        for rows in self._views[key]:
            combine(rows, rows[0], op)
            for row in rows[1:]:
                row.copy_(rows[0])
        self._meet(None)

    def _choose(self, nbytes: int, at: int) -> int:
        if at >= 0:
            return 1 if nbytes <= SMALL_INSIDE else 2
        return 1 if self.group.size == 2 or nbytes <= SMALL else 2

    def _part(self, numel: int, itemsize: int) -> tuple[int, int]:
        """Which elements this rank sums; no cache line is two ranks'."""
        lines = -(-numel * itemsize // (_ALIGN * self.group.size))
        begin, end = (min(numel, (self.group.index + i) * lines * _ALIGN // itemsize) for i in (0, 1))
        return begin, end

    def _staged(self, dtype: torch.dtype, numel: int) -> list[Tensor]:
        """In the half whose turn it is: each rank's piece, and the finished piece."""
        key = dtype, numel, self._meetings % 2
        if key not in self._views:
            first = self._staged_at + self._meetings % 2 * (self.group.size + 1) * PIECE
            self._keep(key, [self._segment.tensor(first + i * PIECE, numel, dtype)
                             for i in range(self.group.size + 1)])
        return self._views[key]

    def _keep(self, key: tuple, views: list[Any]) -> None:
        """Making views takes longer than summing a small array, so those of the last sizes are kept."""
        if len(self._views) > _VIEWS:
            self._views.clear()
        self._views[key] = views

    # --------------------------------------------------------------------------------------------- meeting, checking

    def _meet(self, call: bytes | None) -> None:
        """Wait for the others, and see whether they were called for the same."""
        if call is None:
            self._barrier.wait()
            self._meetings += 1
            return
        memory, lines = self._segment.memory, self._lines[self._meetings % 2]
        memory[lines[self.group.index]] = call
        self._barrier.wait()
        self._meetings += 1
        for rank, line in zip(self.group.ranks, lines, strict=True):
            if memory[line] != call:
                self._inside = False                     # all ranks leave at this meeting, so none has lost step
                me = self.group.ranks[self.group.index]
                raise ValueError(f"rank {me} calls {_in_words(call)}, and rank {rank} {_in_words(memory[line])}. Every "
                                 "rank of the group must make the same call")

    def _check_open(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError("this shared memory was closed" if not self._process else
                               "this shared memory belongs to the process that this one was forked from")
        if self._inside:
            raise RuntimeError("an all-reduce in this shared memory was broken off, or another thread is in one: ranks "
                               "that lost step cannot go on with it. Make a new SharedMemory on all ranks")


def _pieces(flat: Tensor) -> Sequence[Tensor]:
    most = PIECE // flat.itemsize
    return flat.split(most) if flat.numel() > most else (flat,)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _in_words(call: bytes) -> str:
    numel, dtype, op, shots, at = _CALL.unpack(call)
    where = f"at byte {at} of its room" if at >= 0 else "outside of the shared memory"
    return f"all_reduce({OPS[op]}) of {numel} elements of {name(TYPES[dtype])} {where}, shots={shots}"
