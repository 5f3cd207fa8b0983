"""Cutting a batch into shares: contiguous, in order, each sample once, sizes that differ by at most one.

10 samples in 4 shares are 3, 3, 2, 2. Nothing is padded and nothing is dropped; where there are fewer samples than
shares, the last ones are empty. What a share counts for is its number of samples (or tokens), never 1/parts.
"""

from collections.abc import Iterable, Iterator
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
    samples_of(batch)
    if isinstance(batch, Tensor):
        sizes = share_sizes(len(batch), parts)
        return list(batch.split(sizes))
    if isinstance(batch, dict):
        cut = [split(value, parts) for value in batch.values()]
        return [dict(zip(batch, pieces, strict=True)) for pieces in zip(*cut, strict=True)]
    cut = [split(value, parts) for value in batch]
    return [type(batch)(pieces) for pieces in zip(*cut, strict=True)]


def samples_of(batch: Batch) -> int:
    """Number of samples: the length that all tensors of the batch share.

    Raises ValueError if they do not, and TypeError for what is no batch.
    """
    lengths = {len(t) for t in _tensors(batch)}
    if len(lengths) != 1:
        raise ValueError("the tensors of a batch must have the same number of samples as their first dimension; "
                         f"these have {sorted(lengths)}")
    return lengths.pop()


def move(batch: Batch, device: torch.device) -> Batch:
    """The batch on `device`."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: move(value, device) for key, value in batch.items()}
    return type(batch)(move(value, device) for value in batch)


def groups(microbatches: Iterable[Batch], accumulate: int) -> Iterator[list[Batch]]:
    """Micro-batches in groups of `accumulate`, one update each; the last group holds what is left, and counts for that
    much. Raises ValueError if `accumulate` is below 1."""
    if accumulate < 1:
        raise ValueError(f"accumulate is {accumulate}; it must be 1 or more micro-batches")
    stream = iter(microbatches)
    while group := list(islice(stream, accumulate)):
        yield group


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
