"""Rank 0's tensors for everybody, sums of a few numbers, and what must be alike on all ranks."""

from collections import defaultdict
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from disttutor.strategies.groups import Group


def broadcast_state(model: nn.Module, group: Group, *, parameters: bool = True) -> None:
    """Overwrite the model's buffers, and its parameters unless told otherwise, with those of the group's first rank.

    Tensors of one type and device travel together, in one message.
    """
    tensors = [*(model.parameters() if parameters else ()), *model.buffers()]
    alike: dict[tuple, list[Tensor]] = defaultdict(list)
    for t in tensors:
        alike[t.dtype, t.device].append(t.detach())
    for together in alike.values():
        flat = torch.cat([t.reshape(-1) for t in together])
        dist.broadcast(flat, src=group.ranks[0], group=group.handle)
        for t, piece in zip(together, flat.split([t.numel() for t in together]), strict=True):
            t.copy_(piece.view(t.shape))


def describe(model: nn.Module) -> dict[str, Any]:
    """What of a model must be the same on every rank for messages about it to meet: names, shapes, types."""
    parameters = {f"parameter {name!r}": (tuple(p.shape), str(p.dtype), "trained" if p.requires_grad else "frozen")
                  for name, p in model.named_parameters()}
    buffers = {f"buffer {name!r}": (tuple(b.shape), str(b.dtype)) for name, b in model.named_buffers()}
    return parameters | buffers


def check_alike(group: Group, mine: dict[str, Any]) -> None:
    """Raises ValueError, on every rank, at the first thing that a rank has otherwise than the group's first rank."""
    everybodys: list[Any] = [None] * group.size
    dist.all_gather_object(everybodys, mine, group=group.handle)
    first = everybodys[0]
    for rank, theirs in zip(group.ranks[1:], everybodys[1:], strict=True):
        for what in dict.fromkeys((*first, *theirs)):
            if first.get(what) != theirs.get(what):
                raise ValueError(f"the ranks do not agree on {what}: it is {first.get(what, 'missing')} on rank "
                                 f"{group.ranks[0]} and {theirs.get(what, 'missing')} on rank {rank}. It must be the "
                                 "same on every rank")


def sum_over(group: Group, *values: float | Tensor) -> list[float]:
    """The sum of each value over the group's ranks, in float64."""
    device = next((v.device for v in values if isinstance(v, Tensor)), torch.device("cpu"))
    row = torch.stack([torch.as_tensor(v, dtype=torch.float64, device=device) for v in values])
    if group.size > 1:
        dist.all_reduce(row, group=group.handle)
    return row.tolist()
