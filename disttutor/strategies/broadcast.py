"""Rank 0's tensors for everybody, and sums of a few numbers."""

from collections import defaultdict

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


def sum_over(group: Group, *values: float | Tensor) -> list[float]:
    """The sum of each value over the group's ranks, in float64."""
    device = next((v.device for v in values if isinstance(v, Tensor)), torch.device("cpu"))
    row = torch.stack([torch.as_tensor(v, dtype=torch.float64, device=device) for v in values])
    if group.size > 1:
        dist.all_reduce(row, group=group.handle)
    return row.tolist()
