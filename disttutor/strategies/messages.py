"""One rank's messages: sends that leave while the rank goes on, receives that hold it up until they are there.

Each is written down under the name that it has in the plan. In slow motion a message is followed by the moment at which
it has crossed the modelled link, since only its sender knows when it left.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from disttutor.strategies.groups import Group
from disttutor.traces import recorder

AGREEMENT = 2**30       # the tag of what ranks tell each other before a run; the tags of a run's messages are smaller


class Messages:
    """What this rank sends and receives within `group`; peers are global ranks.

    Messages from one rank to another with the same tag arrive in the order in which they were sent.
    """

    def __init__(self, group: Group):
        self.group = group
        self._up, self._down = group.handle, group.down or group.handle
        self._leaving: dict[Any, Tensor] = {}           # a tensor must stay as it is until it has left

    def send(self, content: Tensor | Sequence[Tensor], peer: int, *, tag: int = 0, **about: Any) -> list[Any]:
        """`content` (contiguous; not to be changed before it has left) goes to `peer`; several tensors count as one
        message. Returns torch's handles."""
        tensors = [content] if isinstance(content, Tensor) else content
        log = recorder()
        begun = log.begin()
        nbytes = sum(t.nbytes for t in tensors)
        crossed = log.departure(peer, nbytes)
        works = [self._isend(t, peer, tag) for t in tensors]
        if crossed is not None:
            self._isend(torch.tensor(crossed, dtype=torch.int64, device=tensors[0].device), peer, tag)
        log.end(begun, "send", nbytes=nbytes, peer=peer, **about)
        return works

    def expect(self, room: Tensor | Sequence[Tensor], peer: int, *, tag: int = 0) -> "Expected":
        """Room for a message, offered to the network now, so that it can come in while the rank computes."""
        tensors = [room] if isinstance(room, Tensor) else room
        moment = torch.zeros((), dtype=torch.int64, device=tensors[0].device) if recorder().paced else None
        rooms = [*tensors, *([] if moment is None else [moment])]
        way = self._way(peer, self._me)
        return Expected(tensors, peer, moment, [dist.irecv(t, peer, group=way, tag=tag) for t in rooms])

    def receive(self, expected: "Expected", kind: str = "recv", **about: Any) -> Sequence[Tensor]:
        """Wait until it is there; what has come. kind: "recv" or "recv_reduce", as it is written down."""
        log = recorder()
        begun = log.begin()
        for work in expected.works:
            work.wait()
        if expected.moment is not None:
            log.arrival(int(expected.moment))
        nbytes = sum(t.nbytes for t in expected.tensors)
        log.end(begun, kind, nbytes=nbytes, peer=expected.peer, **about)
        return expected.tensors

    def settle(self, work: Any) -> None:
        """Wait until one send, by its handle, has left; its tensor is let go of."""
        if self._leaving.pop(work, None) is not None:
            work.wait()

    def differs_from_before(self, chain: Sequence[int], numbers: Tensor) -> tuple[int, list[int]] | None:
        """Whole numbers that must be the same on all ranks of `chain` (places in the group) go from each to the next,
        before anything else. The rank before and its numbers if they are not this rank's, else None.
        """
        place = chain.index(self.group.index)
        if place:
            before = self.group.ranks[chain[place - 1]]
            theirs = torch.empty_like(numbers)
            dist.recv(theirs, before, group=self._way(before, self._me), tag=AGREEMENT)
            if not torch.equal(theirs, numbers):
                return before, theirs.tolist()
        if place + 1 < len(chain):
            self._isend(numbers, self.group.ranks[chain[place + 1]], AGREEMENT)
        return None

    def finish(self) -> None:
        """Wait until everything has left."""
        for work in list(self._leaving):
            self.settle(work)

    @property
    def _me(self) -> int:
        return self.group.ranks[self.group.index]

    def _way(self, source: int, target: int) -> Any:
        """The group whose connections carry a message from one rank to the other."""
        return self._up if source < target else self._down

    def _isend(self, tensor: Tensor, peer: int, tag: int) -> Any:
        work = dist.isend(tensor, peer, group=self._way(self._me, peer), tag=tag)
        self._leaving[work] = tensor
        return work


class Expected:
    """A message that has not come yet: where it will lie, and who sends it. moment: in slow motion, room for when it
    has crossed the link."""

    __slots__ = ("moment", "peer", "tensors", "works")

    def __init__(self, tensors: Sequence[Tensor], peer: int, moment: Tensor | None, works: list[Any]):
        self.tensors, self.peer, self.moment, self.works = tensors, peer, moment, works
