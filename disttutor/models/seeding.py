"""Start weights that depend on a seed alone, and leave everybody else's random numbers as they were."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Draw from the CPU generator seeded with `seed` inside the block; with None, from wherever it stands."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
