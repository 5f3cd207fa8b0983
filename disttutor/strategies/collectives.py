"""Ring all-reduce by hand, message by message, for those who want to look on.

Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations". The array is cut into n
chunks. Reduce-scatter: in each of n-1 steps every rank passes one chunk on and adds what arrives to its own, until rank
r holds the whole sum of chunk r+1. All-gather: in n-1 more steps the finished chunks go round. Each rank sends
2(n-1)/n of the array.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from disttutor.strategies.groups import Group
from disttutor.traces import recorder


def ring_all_reduce(buffer: Tensor, group: Group, observe: Callable[[str], None] = lambda moment: None) -> None:
    """Replace the 1-D `buffer` by its sum over the group. observe(moment) is called before, after each message, and
    after. The result is the same to the last bit on every rank."""
    n, me = group.size, group.index
    chunks = buffer.tensor_split(n)
    observe("before")
    for step in range(n - 1):
        sent, received = (me - step) % n, (me - step - 1) % n
        arrived = _pass_on(chunks[sent], torch.empty_like(chunks[received]), group)
        chunks[received].add_(arrived)
        observe(f"reduce-scatter {step + 1} of {n - 1}")
    for step in range(n - 1):
        sent, received = (me + 1 - step) % n, (me - step) % n
        chunks[received].copy_(_pass_on(chunks[sent], torch.empty_like(chunks[received]), group))
        observe(f"all-gather {step + 1} of {n - 1}")


def _pass_on(outgoing: Tensor, incoming: Tensor, group: Group) -> Tensor:
    """Send to the next rank of the ring while receiving from the last."""
    log = recorder()
    after = group.ranks[(group.index + 1) % group.size]
    before = group.ranks[(group.index - 1) % group.size]
    log.message("send", after, outgoing.nbytes)
    send = dist.isend(outgoing.contiguous(), after, group=group.handle)
    dist.recv(incoming, before, group=group.handle)
    log.message("recv", before, incoming.nbytes)
    send.wait()
    return incoming
