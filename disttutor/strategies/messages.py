"""One rank's messages: sends that leave while the rank goes on, receives that hold it up until they are there.

Each is written down under the name that it has in the plan. In slow motion a message is followed by the moment at which
it has crossed the modelled link, since only its sender knows when it left.
"""

from collections import deque
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from disttutor.strategies.groups import Group
from disttutor.traces import recorder


class Messages:
    """What this rank sends and receives within `group`; peers are global ranks.

    Messages from one rank to another with the same tag arrive in the order in which they were sent.
    """

    def __init__(self, group: Group):
        self.group = group
        self._leaving: deque[tuple[Any, Tensor]] = deque()      # a tensor must stay as it is until it has left

    def send(self, tensor: Tensor, peer: int, *, tag: int = 0, kind: str = "send", **about: Any) -> Any:
        """`tensor` (contiguous; not to be changed before it has left) goes to `peer`. Returns torch's handle."""
        log = recorder()
        begun = log.begin()
        crossed = log.departure(peer, tensor.nbytes)
        work = self._isend(tensor, peer, tag)
        if crossed is not None:
            self._isend(torch.tensor(crossed, dtype=torch.int64, device=tensor.device), peer, tag)
        log.end(begun, kind, nbytes=tensor.nbytes, peer=peer, **about)
        return work

    def expect(self, tensor: Tensor, peer: int, *, tag: int = 0) -> "Expected":
        """Room for a message, offered to the network now, so that it can come in while the rank computes."""
        moment = torch.zeros((), dtype=torch.int64, device=tensor.device) if recorder().paced else None
        return Expected(tensor, peer, dist.irecv(tensor, peer, group=self.group.handle, tag=tag),
                        moment, None if moment is None else dist.irecv(moment, peer, group=self.group.handle, tag=tag))

    def receive(self, expected: "Expected", kind: str = "recv", **about: Any) -> Tensor:
        """Wait until it is there."""
        log = recorder()
        begun = log.begin()
        expected.work.wait()
        if expected.moment is not None:
            expected.moment_work.wait()
            log.arrival(int(expected.moment))
        log.end(begun, kind, nbytes=expected.tensor.nbytes, peer=expected.peer, **about)
        return expected.tensor

    def finish(self) -> None:
        """Wait until everything has left."""
        while self._leaving:
            self._leaving.popleft()[0].wait()

    def _isend(self, tensor: Tensor, peer: int, tag: int) -> Any:
        while self._leaving and self._leaving[0][0].is_completed():
            self._leaving.popleft()
        work = dist.isend(tensor, peer, group=self.group.handle, tag=tag)
        self._leaving.append((work, tensor))
        return work


class Expected:
    """A message that has not come yet: where it will lie, and who sends it."""

    __slots__ = ("moment", "moment_work", "peer", "tensor", "work")

    def __init__(self, tensor: Tensor, peer: int, work: Any, moment: Tensor | None, moment_work: Any):
        self.tensor, self.peer, self.work = tensor, peer, work
        self.moment, self.moment_work = moment, moment_work
