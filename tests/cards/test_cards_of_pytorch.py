"""What the cards say of PyTorch is true of the one that is installed: asked of its code, and of two real ranks."""

from collections.abc import Callable
from datetime import timedelta
from inspect import signature

import pytest
import torch
import torch.distributed as dist
import torch.nn.parallel.distributed as ddp_module
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def test_defaults_and_names():
    assert ddp_module._DEFAULT_BUCKET_CAP_MB == 25                                          # dp-bucket-size
    assert dist._DEFAULT_FIRST_BUCKET_BYTES == 2**20                                        # dp-first-bucket
    assert dist.constants.default_pg_timeout == timedelta(minutes=30)                       # talk-timeout
    assert dist.get_default_backend_for_device("cpu") == "gloo"                             # talk-backends
    assert dist.get_default_backend_for_device("cuda") == "nccl"
    assert callable(FSDPModule.set_requires_gradient_sync)                                  # ga-fsdp-sync
    assert signature(DistributedDataParallel).parameters["find_unused_parameters"].default is False


def test_convert_sync_batchnorm():                                                          # dp-syncbn
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    assert isinstance(model[1], nn.SyncBatchNorm)


def test_the_sampler_repeats_samples_and_an_epoch_until_it_is_told():
    shares = [list(DistributedSampler(range(10), 4, rank, shuffle=False)) for rank in range(4)]
    assert [len(share) for share in shares] == [3] * 4                                      # dp-sampler-repeats
    assert sorted(sum(shares, [])) == [0, 0, 1, 1, *range(2, 10)]
    sampler = DistributedSampler(range(10), 1, 0)
    first = list(sampler)
    assert list(sampler) == first                                                           # dp-set-epoch
    sampler.set_epoch(1)
    assert list(sampler) != first


def gradients(rank: int) -> dict[str, float]:
    """A linear layer on an input that is 1 on rank 0 and 2 on rank 1: its gradient, exchanged or not."""
    model = DistributedDataParallel(nn.Linear(1, 1))
    x = torch.tensor([[rank + 1.0]])
    weight = model.module.weight

    def after(forward: Callable[[Tensor], Tensor]) -> float:
        model.zero_grad()
        forward(x).sum().backward()
        return weight.grad.item()

    found = {"wrapped": after(model), "inner": after(model.module)}
    with model.no_sync():
        found["no_sync"] = after(model)
    model.zero_grad()
    loss = model(x).sum()
    with model.no_sync():
        loss.backward()
    found["no_sync round backward only"] = weight.grad.item()
    return found


def test_what_is_exchanged(clusters):
    zero, one = clusters(2).run(gradients)
    assert zero["wrapped"] == one["wrapped"] == 1.5
    assert (zero["inner"], one["inner"]) == (1, 2)                                          # dp-unwrapped
    assert (zero["no_sync"], one["no_sync"]) == (1, 2)                                      # ga-no-sync
    assert zero["no_sync round backward only"] == 1.5                                       # ga-no-sync-forward


class TwoBranches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.skipped = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.used(x)


def two_steps(rank: int, find: bool) -> str:
    model = DistributedDataParallel(TwoBranches(), find_unused_parameters=find)
    try:
        for _ in range(2):
            model(torch.ones(1, 1)).sum().backward()
    except RuntimeError as error:
        return str(error)
    return "two steps"


@pytest.mark.parametrize(("find", "said"), [(False, "Expected to have finished reduction"), (True, "two steps")])
def test_a_parameter_without_a_gradient(clusters, find, said):                              # dp-find-unused
    assert all(said in answer for answer in clusters(2).run(two_steps, find))


def clipped(rank: int) -> tuple[tuple[int, ...], float, float]:
    """The shape of a rank's shard; the whole gradient's norm as `clip_grad_norm_` says, and after it."""
    layer = nn.Linear(4, 8, bias=False)
    fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
    layer(torch.full((1, 4), rank + 1.0)).sum().backward()                # each weight's gradient: the mean of 1 and 2
    norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    whole = layer.weight.grad.full_tensor()
    return tuple(layer.weight.to_local().shape), norm.full_tensor().item(), whole.norm().item()


def test_clipping_under_sharding(clusters):                                                 # fsdp-clip-how
    for shape, norm, after in clusters(2).run(clipped):
        assert shape == (4, 4)                                                              # fsdp-dtensor
        assert norm == pytest.approx(1.5 * 32**0.5)
        assert after == pytest.approx(1, rel=1e-4)
