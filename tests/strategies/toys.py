"""The smallest things that can be trained, for values that can be worked out by hand."""

from functools import partial

import torch
from torch import nn

from disttutor.models import classification

SGD = partial(torch.optim.SGD, lr=0.1)
STILL = partial(torch.optim.SGD, lr=0.0)


class Weights(nn.Module):
    """`w`, float64, and nothing else."""

    def __init__(self, *values: float):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(values or (0.0,), dtype=torch.float64))


def linear(model, batch):
    """Loss of a sample = w·x; x [B] or [B, features]."""
    return (model.w * batch.reshape(len(batch), -1)).sum(), len(batch)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def differently_made(rank: int, kind, differ) -> None:
    """A strategy of this kind on a rank, of the model and the options that `differ(rank)` gives it."""
    model, options = differ(rank)
    kind(model, classification, SGD, **options)
