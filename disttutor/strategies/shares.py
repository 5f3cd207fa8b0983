"""Cutting a batch into shares: contiguous, in order, each sample once, sizes that differ by at most one.

10 samples in 4 shares are 3, 3, 2, 2. Nothing is padded and nothing is dropped; where there are fewer samples than
shares, the last ones are empty. What a share counts for is its number of samples (or tokens), never 1/parts.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor

Batch = Any      # a tensor, or a tuple, list or dict of batches; the first dimension counts the samples


def share_sizes(samples: int, parts: int) -> list[int]:
    """Sizes of the shares of `samples` samples: the first `samples % parts` hold one more.

    Raises ValueError for a negative number of samples or fewer than one part.
    """
    if parts < 1 or samples < 0:
        raise ValueError(f"{samples} samples cannot be cut into {parts} shares; it takes 0 or more samples and 1 or "
                         "more shares")
    least, more = divmod(samples, parts)
    return [least + (i < more) for i in range(parts)]


def split(batch: Batch, parts: int) -> list[Batch]:
    """The shares of a batch, `parts` of them, as views of its tensors. Raises ValueError as `samples_of` does."""
    shares, start = [], 0
    for size in share_sizes(samples_of(batch), parts):
        shares.append(_map(lambda t, piece=slice(start, start + size): t[piece], batch))
        start += size
    return shares


def samples_of(batch: Batch) -> int:
    """Number of samples: the length that all tensors of the batch share.

    Raises ValueError if they do not, and TypeError for what is no batch.
    """
    lengths = {len(t) for t in _tensors(batch)}
    if len(lengths) != 1:
        raise ValueError("the tensors of a batch must have the same number of samples as their first dimension; "
                         f"these have {sorted(lengths)}")
    return lengths.pop()


def take(batch: Batch, indices: Tensor) -> Batch:
    """The samples at these places, as a batch."""
    return _map(lambda t: t[indices], batch)


def move(batch: Batch, device: torch.device) -> Batch:
    """The batch on `device`."""
    return _map(lambda t: t.to(device, non_blocking=True), batch)


def groups(microbatches: Iterable[Batch], accumulate: int) -> Iterator[list[Batch]]:
    """Micro-batches in groups of `accumulate`, one update each; the last group holds what is left, and counts for that
    much. Raises ValueError if `accumulate` is below 1."""
    if accumulate < 1:
        raise ValueError(f"accumulate is {accumulate}; it must be 1 or more micro-batches")
    stream = iter(microbatches)
    while group := list(islice(stream, accumulate)):
        yield group


def _map(change: Callable[[Tensor], Tensor], batch: Batch) -> Batch:
    """`batch` with each tensor changed."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, dict):
        return {key: _map(change, value) for key, value in batch.items()}
    made = [_map(change, value) for value in batch]
    is_named = hasattr(batch, "_fields")                 # a named tuple wants its fields one by one
    return type(batch)(*made) if is_named else type(batch)(made)


def _tensors(batch: Batch) -> Iterator[Tensor]:
    if isinstance(batch, Tensor):
        if batch.dim() == 0:
            raise ValueError("a batch needs a first dimension that counts its samples; this tensor is a scalar")
        yield batch
    elif isinstance(batch, (tuple, list, dict)):
        if not batch:
            raise ValueError("the batch holds no tensors")
        for value in batch.values() if isinstance(batch, dict) else batch:
            yield from _tensors(value)
    else:
        raise TypeError(f"a batch is a tensor, or a tuple, list or dict of them, not {type(batch).__name__}")
