"""Lesson 04's second half: what a batch costs in memory and time, what its size does to training, and what accumulating
brings on a cluster that is not here."""

import time
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from disttutor.cost import simulate
from disttutor.cost.hardware import EFA_V1, H100, INFINIBAND_HDR, INFINIBAND_NDR, ONE_NIC, ring_over_nodes
from disttutor.models import MLP, classification
from disttutor.plans import Gradient, Link, Machine, Mesh, data_parallel_step
from disttutor.strategies import EpochSampler, Single
from disttutor.traces import Trace, bubble_share

Batch = tuple[Tensor, Tensor]

# ------------------------------------------------------------------------------------------------- memory and time


class Activations:
    """Bytes that forward keeps for backward, while this context is open: `held` now, `peak` at most.

    Weights and tensors in `known` are not counted, as they are in memory anyway; what several layers keep counts once.
    """

    def __init__(self, model: nn.Module, known: Iterable[Tensor] = ()):
        self.held = self.peak = 0
        self._anyway = {t.data_ptr() for t in (*model.parameters(), *known)}
        self._users: dict[tuple, int] = {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda kept: kept.tensor)

    def __enter__(self) -> "Activations":
        self._hooks.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._hooks.__exit__(*problem)

    def _pack(self, tensor: Tensor) -> "_Kept":
        kept, key = _Kept(tensor), (tensor.data_ptr(), tensor.nbytes)
        if tensor.data_ptr() not in self._anyway:
            self._users[key] = self._users.get(key, 0) + 1
            if self._users[key] == 1:
                self.held += tensor.nbytes
                self.peak = max(self.peak, self.held)
            weakref.finalize(kept, self._release, key, tensor.nbytes)     # backward lets go of it
        return kept

    def _release(self, key: tuple, nbytes: int) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key]
            self.held -= nbytes


class _Kept:
    """A tensor that backward will ask for."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor


@dataclass(frozen=True)
class Price:
    """Of one training step: peak `activations` in bytes, and `seconds` on this machine."""

    activations: int
    seconds: float


def prices_of_a_step(rank: int, accumulates: Sequence[int], batch: Batch) -> dict[int, Price]:
    """What a step in one process on `batch` takes, cut into each of these numbers of micro-batches."""
    return {k: _price(k, batch) for k in accumulates}


def _price(accumulate: int, batch: Batch) -> Price:
    model = MLP((64, 512, 512, 10), seed=0, dtype=batch[0].dtype)
    strategy = Single(model, classification, partial(torch.optim.SGD, lr=0.1), accumulate=accumulate)
    with Activations(model) as activations:
        strategy.step(batch)
    seconds = []
    for _ in range(5):
        begun = time.perf_counter()
        strategy.step(batch)
        seconds.append(time.perf_counter() - begun)
    return Price(activations.peak, min(seconds))


# ------------------------------------------------------------------------------------------------- learning rates


@dataclass(frozen=True)
class Recipe:
    """How to train: samples an update (`batch`), learning `rate`, updates over which it rises to that (`warm_up`)."""

    batch: int
    rate: float
    warm_up: int = 1


def losses_by_epoch(rank: int, recipes: list[Recipe], x: Tensor, y: Tensor, epochs: int = 10) -> list[float]:
    """Train recipe number `rank` alone on the digits (x, y); their mean loss before the first and after each epoch.

    Large batches are accumulated from micro-batches of 32. Momentum is 0.9, as in Goyal et al. 2017.
    """
    recipe = recipes[rank]
    strategy = Single(
        MLP((64, 32, 10), seed=0, dtype=torch.float64),
        classification,
        partial(torch.optim.SGD, lr=recipe.rate, momentum=0.9),
        accumulate=recipe.batch // 32,
        schedule=partial(torch.optim.lr_scheduler.LambdaLR, lr_lambda=lambda n: min(1.0, (n + 1) / recipe.warm_up)),
    )
    sampler = EpochSampler(len(y), recipe.batch, seed=0)
    losses = [strategy.evaluate(classification, (x, y))]
    for _ in range(epochs):
        for chosen in sampler:
            strategy.step((x[chosen], y[chosen]))
        losses.append(strategy.evaluate(classification, (x, y)))
    return losses


# ------------------------------------------------------------------------------------------------- far away

NETWORKS = {
    "400 GB/s a node (DGX H100)": INFINIBAND_NDR,
    "200 GB/s a node (DGX A100)": INFINIBAND_HDR,
    "50 GB/s a node (AWS P4d)": EFA_V1,
    "12.5 GB/s a node (one NIC)": ONE_NIC,
}
RANKS = 32                                          # four nodes: over two, NCCL prefers trees (NVIDIA/nccl#812)
SEQUENCES, TOKENS = 4, 1024                         # a micro-batch is 4 sequences of 1,024 tokens


def gpt2_xl() -> list[Gradient]:
    """The gradients of GPT-2 XL (Radford et al. 2019: 48 layers, width 1,600) in bfloat16, one for each two layers."""
    width, pairs, tokens = 1600, 24, SEQUENCES * TOKENS
    sizes = {"embeddings": (50_257 + 1_024) * width}
    sizes |= {f"layers {2 * i} and {2 * i + 1}": 2 * (12 * width**2 + 13 * width) for i in range(pairs)}
    sizes |= {"norm": 2 * width}
    return [Gradient(name, n, 2, "bfloat16", flops=4.0 * n * tokens) for name, n in sizes.items()]


def predicted_step(accumulate: int, network: Link, ranks: int = RANKS) -> Trace:
    """One data-parallel step of GPT-2 XL on `ranks` H100s with this network between nodes, as a predicted Trace."""
    gradients = gpt2_xl()
    forward = sum(g.flops for g in gradients) / 2
    plan = data_parallel_step(gradients, Mesh(data=ranks), accumulate=accumulate, forward_flops=forward)
    return simulate(plan, Machine(H100, ring_over_nodes(network, ranks)))


def computing_share(accumulate: int, network: Link) -> float:
    """Share of a step in which the ranks compute; in the rest they wait for the exchange."""
    return 1 - bubble_share(predicted_step(accumulate, network))
