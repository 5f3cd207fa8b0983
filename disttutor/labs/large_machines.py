"""Data parallelism where we have no machine: the same plan, priced for many GPUs; and why k devices can be more than k
times as fast. Rates, links and their sources: `disttutor.cost.hardware`."""

import time

from disttutor.cost import simulate
from disttutor.cost.hardware import H100, INFINIBAND_NDR, ring_over_nodes
from disttutor.plans import Gradient, Machine, Mesh, data_parallel_step
from disttutor.strategies.strategy import BACKWARD_WORK, FORWARD_WORK
from disttutor.traces import Trace

PARAMETERS, LAYERS = 1_300_000_000, 24
TOKENS = 2**19              # of one global batch


def dgx(gpus: int) -> Machine:
    """This many H100 in nodes of 8: NVLink within a node, 8 InfiniBand NICs between them."""
    return Machine(H100, ring_over_nodes(INFINIBAND_NDR, gpus))


def predicted_step(gpus: int, form: str = "overlapped", *, tokens: int = TOKENS, machine: Machine | None = None,
                   bucket_bytes: int = 250_000_000) -> Trace:
    """One data-parallel step of a language model of 1.3 billion parameters on `gpus`, gradients in bfloat16.

    tokens: of the global batch, a multiple of `gpus`; machine: default `dgx(gpus)`. Raises ValueError if the tokens do
    not divide.
    """
    if tokens % gpus:
        raise ValueError(f"{tokens} tokens cannot be shared evenly by {gpus} GPUs; a power of two up to {tokens} works")
    weights = PARAMETERS // LAYERS
    layers = [Gradient(f"layer {i}", weights, 2, "bfloat16", BACKWARD_WORK * weights) for i in range(LAYERS)]
    plan = data_parallel_step(layers, Mesh(data=gpus), bucket_bytes=bucket_bytes, form=form,
                              shares=[[tokens // gpus]] * gpus, forward_flops=FORWARD_WORK * PARAMETERS)
    return simulate(plan, machine or dgx(gpus))


def walking_speed(sizes: tuple[int, ...] = (2**18, 2**20, 2**22, 2**24, 2**26), total: int = 2**27) -> dict[int, float]:
    """Bytes a second at which this process (of one thread) adds 1 to a working set of each size in bytes, best of 5."""
    import torch

    speeds = {}
    for size in sizes:
        x = torch.zeros(size // 4)
        rounds = max(1, total // size)
        speeds[size] = max(_one_walk(x, rounds) for _ in range(5))
    return speeds


def _one_walk(x, rounds: int) -> float:
    x.add_(1)
    begun = time.thread_time()
    for _ in range(rounds):
        x.add_(1)
    return x.nbytes * rounds / (time.thread_time() - begun)
