"""BatchNorm over the whole batch, although each rank sees only its share.

Local BatchNorm normalises each rank's share by the share's own mean and variance, so it is not the same function as on
one process. Here ranks exchange count, mean and sum of squared deviations (2C+1 numbers a layer) in forward, and two
sums a channel in backward. Shares of different size count by their size (Chan et al. 1983, parallel variance).
Ioffe and Szegedy 2015, arXiv 1502.03167. torch's own SyncBatchNorm runs on GPUs only.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from disttutor.strategies.groups import Group
from disttutor.traces import recorder


class SynchronizedBatchNorm(nn.modules.batchnorm._BatchNorm):
    """BatchNorm1d, 2d or 3d whose statistics are those of all ranks' samples of one micro-batch together.

    Input [samples, channels, …]; a rank may hold no samples. Raises ValueError in training if all ranks together hold
    no more than one value a channel.
    """

    group: Group        # among whose ranks
    layer: int          # the how-manieth of the model, for recordings

    def forward(self, input: Tensor) -> Tensor:
        if not self.training and self.running_mean is not None or self.group.size == 1:
            return super().forward(input)
        self._check_input_dim(input)
        output, mean, variance, count = _Normalise.apply(input, self.weight, self.bias, self.eps, self.group,
                                                         self.layer)
        if self.training and self.running_mean is not None:
            self._update(mean, variance, count)
        return output

    @torch.no_grad()
    def _update(self, mean: Tensor, variance: Tensor, count: float) -> None:
        self.num_batches_tracked += 1
        share = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((variance * count / (count - 1)).to(self.running_var.dtype), share)


class SynchronizedBatchNorm1d(SynchronizedBatchNorm, nn.BatchNorm1d):
    """Input [samples, channels] or [samples, channels, length]."""


class SynchronizedBatchNorm2d(SynchronizedBatchNorm, nn.BatchNorm2d):
    """Input [samples, channels, height, width]."""


class SynchronizedBatchNorm3d(SynchronizedBatchNorm, nn.BatchNorm3d):
    """Input [samples, channels, depth, height, width]."""


SYNCHRONISED = {nn.BatchNorm1d: SynchronizedBatchNorm1d, nn.BatchNorm2d: SynchronizedBatchNorm2d,
                nn.BatchNorm3d: SynchronizedBatchNorm3d}


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, group: Group,
                layer: int) -> tuple[Tensor, Tensor, Tensor, float]:
        others = [d for d in range(x.dim()) if d != 1]
        shape = [1, -1] + [1] * (x.dim() - 2)
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        n = x.numel() // x.shape[1]
        local_mean = wide.mean(others) if n else wide.new_zeros(x.shape[1])
        local_m2 = (wide - local_mean.view(shape)).square().sum(others)
        parts = _gather(torch.cat([local_mean, local_m2, wide.new_tensor([n])]), group, layer)
        counts = parts[:, -1:]
        means, m2s = parts[:, :-1].chunk(2, dim=1)
        count = float(counts.sum())
        if count <= 1:
            raise ValueError(f"expected more than 1 value per channel when training, got {count:g} over {group.size} "
                             "ranks")
        mean = (means * counts).sum(0) / count
        variance = (m2s.sum(0) + (counts * (means - mean).square()).sum(0)) / count
        inverse = torch.rsqrt(variance + eps)
        normal = (wide - mean.view(shape)) * inverse.view(shape)
        ctx.save_for_backward(normal, weight, inverse)
        ctx.count, ctx.group, ctx.others, ctx.shape, ctx.layer = count, group, others, shape, layer
        ctx.mark_non_differentiable(mean, variance)
        y = normal if weight is None else normal * weight.view(shape) + bias.view(shape)
        return y.to(x.dtype), mean, variance, count

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Any) -> tuple:
        normal, weight, inverse = ctx.saved_tensors
        dy = dy.to(normal.dtype)
        dnormal = dy if weight is None else dy * weight.view(ctx.shape)
        sums = torch.stack([dnormal.sum(ctx.others), (dnormal * normal).sum(ctx.others)])
        log = recorder()
        begun = log.begin()
        dist.all_reduce(sums, group=ctx.group.handle)
        log.end(begun, "all_reduce", nbytes=sums.nbytes, group=ctx.group.ranks, process_group=ctx.group.handle,
                microbatch=log.microbatch, layer=ctx.layer)
        along, across = (s.view(ctx.shape) / ctx.count for s in sums)
        dx = (dnormal - along - normal * across) * inverse.view(ctx.shape)
        if weight is None:
            return dx, None, None, None, None, None
        return dx, (dy * normal).sum(ctx.others), dy.sum(ctx.others), None, None, None


def synchronize_batch_norm(model: nn.Module, group: Group) -> None:
    """Let every BatchNorm of `model` take its statistics over all ranks of the group.

    The modules stay the same objects, with their parameters, buffers and hooks; only their class changes.

    Raises ValueError for a BatchNorm with code of its own, which nobody knows how to synchronise.
    """
    norms = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for name, module in norms:
        if type(module) not in (*SYNCHRONISED, *SYNCHRONISED.values()):
            raise ValueError(f"{name or 'the model'} is a {type(module).__name__}, which cannot be synchronised; types "
                             f"that work: {', '.join(kind.__name__ for kind in SYNCHRONISED)}")
    for layer, (_, module) in enumerate(norms):
        module.__class__ = SYNCHRONISED.get(type(module), type(module))
        module.group, module.layer = group, layer


def _gather(row: Tensor, group: Group, layer: int) -> Tensor:
    """Every rank's row, [ranks, len(row)]."""
    log = recorder()
    begun = log.begin()
    rows = [torch.empty_like(row) for _ in group.ranks]
    dist.all_gather(rows, row, group=group.handle)
    log.end(begun, "all_gather", nbytes=row.nbytes * group.size, group=group.ranks, process_group=group.handle,
            microbatch=log.microbatch, layer=layer)
    return torch.stack(rows)
