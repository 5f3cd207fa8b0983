"""The interpreter: one rank's list of a collective's plan, carried out on real tensors.

A send leaves at once, a receive is waited for, and what has arrived is put in the place of a chunk or combined with it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from disttutor.strategies.collective_program import ROOM, Prepared, Program
from disttutor.strategies.groups import Group
from disttutor.strategies.messages import Messages

Observer = Callable[[str], None]
OPS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "sum": Tensor.add_,
    "mean": Tensor.add_,            # and one division, when all is done
    "max": lambda mine, theirs: torch.maximum(mine, theirs, out=mine),
}
_kept: dict[torch.device, Tensor] = {}      # room for arriving messages, from call to call: getting it takes longer


def carry_out(prepared: Prepared, group: Group, store: dict[int, Tensor], op: str = "sum", *,
              observe: Observer | None = None, **about: Any) -> None:
    """Do this rank's part of a plan. The i-th rank of the plan is the i-th of the group.

    store: chunk number to 1-D tensor, which is overwritten or added to; a chunk that arrives and has no place there
    gets one. op: "sum", "mean" (as sum: the division is the caller's) or "max". observe(moment) is called before and
    after each round; then nothing arrives before its turn, so that it sees what the plan says. about: what the recorded
    messages are about, beside their round.
    """
    plan = prepared.plan
    program = prepared.stepwise if observe else prepared.eager
    ops, messages = plan.ops[group.index], Messages(group)
    places = Places(prepared, program, group.index, store)
    moments = list(reversed(plan.goal.moments)) if observe else []
    under_way: dict[int, Any] = {}
    for do, at in program.actions[group.index]:
        it = ops[at]
        while moments and len(plan.goal.moments) - len(moments) <= it.round:
            observe(moments.pop())
        if do == "send":
            content = places.content(it.chunks, copy=program.copies)
            (under_way[at],) = messages.send(content, group.ranks[it.peer], tag=it.round, round=it.round,
                                             chunks=it.chunks, **about)
        elif do == "offer":
            under_way[at] = messages.expect(places.room(at), group.ranks[it.peer], tag=it.round)
        elif do == "take":
            (arrived,) = messages.receive(under_way.pop(at), it.kind, round=it.round, chunks=it.chunks, **about)
        elif do == "put":
            places.put(at, arrived, OPS[op])
        else:
            messages.settle(under_way.pop(at))
    messages.finish()
    places.give_back()
    while moments:
        observe(moments.pop())


class Places:
    """Where messages lie: in the array where their chunks lie side by side there, else in a place beside it."""

    def __init__(self, prepared: Prepared, program: Program, rank: int, store: dict[int, Tensor]):
        self.ops, self.sizes, self.store = prepared.plan.ops[rank], prepared.plan.goal.sizes, store
        self.slot_of, self.slots = program.slot_of[rank], program.slots[rank]
        self.rows: dict[int, Tensor | None] = {}            # of each receive: its chunks, if they lie side by side
        self.beside: Tensor | None = None

    def content(self, chunks: tuple[int, ...], copy: bool) -> Tensor:
        """These chunks in one row, to be sent."""
        parts = [self.store[c] for c in chunks]
        row = None if copy else _row(parts)
        return torch.cat(parts) if row is None else row

    def room(self, at: int) -> Tensor:
        """Where the message of this receive is to arrive."""
        op = self.ops[at]
        row = self.rows[at] = self._in_place(op.chunks)
        if row is not None and op.kind == "recv":
            return row
        like = next(iter(self.store.values()))
        if self.beside is None:
            self.beside = _room_beside(self.slots[0] * self.slots[1], like.device)
        start = self.slot_of[at] * self.slots[1]
        return self.beside[start:start + op.nbytes].view(like.dtype)

    def put(self, at: int, arrived: Tensor, combine: Callable[[Tensor, Tensor], Any]) -> None:
        """Bring what has arrived to its chunks."""
        op, row = self.ops[at], self.rows.pop(at)
        if row is not None:
            if op.kind == "recv_reduce":
                combine(row, arrived)
            return                                  # else it has arrived there
        sizes = [self.sizes[c] for c in op.chunks]
        each = arrived.numel() // sum(sizes)        # an element of the plan may be a row of several
        for c, piece in zip(op.chunks, arrived.split([size * each for size in sizes]), strict=True):
            if c not in self.store:
                self.store[c] = piece.clone()
            elif op.kind == "recv_reduce":
                combine(self.store[c], piece)
            else:
                self.store[c].copy_(piece)

    def give_back(self) -> None:
        """All has arrived: the next collective may have the room. (Where something went wrong, nobody has it again, as
        a message that is late could still come into it.)"""
        if self.beside is not None and len(self.beside) <= ROOM:
            _kept[self.beside.device] = self.beside

    def _in_place(self, chunks: tuple[int, ...]) -> Tensor | None:
        return _row([self.store[c] for c in chunks]) if all(c in self.store for c in chunks) else None


def _room_beside(nbytes: int, device: torch.device) -> Tensor:
    room = _kept.pop(device, None)              # another thread, in another collective, does not find it then
    return room if room is not None and len(room) >= nbytes else torch.empty(nbytes, dtype=torch.uint8, device=device)


def _row(parts: list[Tensor]) -> Tensor | None:
    """The parts as one tensor, if they lie side by side in memory."""
    if len(parts) == 1:
        return parts[0]
    for one, other in zip(parts, parts[1:], strict=False):
        if one.data_ptr() + one.nbytes != other.data_ptr() or (
                one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr()):
            return None
    return parts[0].as_strided((sum(map(len, parts)),), (1,))
