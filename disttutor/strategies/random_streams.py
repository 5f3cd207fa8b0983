"""Random streams: what must agree between ranks agrees, what must differ differs, and a second run draws the same.

Dropout draws from a stream of its own for each (seed, step, share of the batch). So two ranks drop different units, a
resumed run goes on as the uninterrupted one, and one process that works through the same shares one after the other
draws the very same masks.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def stream_seed(*place: int) -> int:
    """A 63-bit seed for this place (seed, step, share, worker, …); different places have unrelated streams."""
    text = ",".join(map(str, place)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


@contextmanager
def random_stream(device: torch.device, *place: int) -> Iterator[None]:
    """Inside, torch draws from the stream of `place`; afterwards it goes on as if nothing had been drawn."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(stream_seed(*place))
        if devices:
            torch.cuda.manual_seed(stream_seed(*place))
        yield


def seed_workers(seed: int, rank: int, epoch: int = 0) -> Callable[[int], None]:
    """A `worker_init_fn` for torch's DataLoader: every worker of every rank draws its own stream in torch, numpy and
    random (without one, all workers of all ranks draw the same numpy augmentation)."""

    def init(worker: int) -> None:
        import numpy

        own = stream_seed(seed, epoch, rank, worker)
        torch.manual_seed(own)
        random.seed(own)
        numpy.random.seed(own % 2**32)

    return init
