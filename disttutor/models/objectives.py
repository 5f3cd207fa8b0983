"""What is minimised. An objective returns the SUM of the losses and how many there were, never their mean.

Means of shares are not the mean of the whole when shares count differently; sums and counts always add up. So the
division happens once, at the end, by whoever knows the whole batch.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from disttutor.models.modes import evaluating
from disttutor.models.text import IGNORE

Batch = tuple[Tensor, Tensor]


def classification(model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
    """Cross-entropy over (x [B, ...], y [B]): its sum over the samples, and B."""
    x, y = batch
    return cross_entropy(model(x), y, reduction="sum"), len(y)


def regression(model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
    """Squared error over (x [B, ...], y of the output's shape): each sample's mean over its outputs, summed, and B.

    Raises ValueError if y has another shape than the output: [B] and [B, 1] would broadcast to [B, B] unseen.
    """
    x, y = batch
    output = model(x)
    if output.shape != y.shape:
        raise ValueError(f"the model's output is {list(output.shape)}, the targets are {list(y.shape)}: reshape one")
    outputs_of_each = y[0].numel() if len(y) else 1
    return mse_loss(output, y, reduction="sum") / outputs_of_each, len(y)


def next_token(model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
    """Cross-entropy over (ids [B, T], targets [B, T]): its sum over the targets that are not IGNORE, and their number.

    With no valid target at all the sum is 0.0, still a function of the model (its gradients are zeros), and the
    number 0.
    """
    ids, targets = batch
    logits = model(ids)  # B, T, V
    total = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum")
    return total, int((targets != IGNORE).sum())


@torch.no_grad()
def accuracy(model: nn.Module, batch: Batch) -> tuple[int, int]:
    """How many of (x, y) the model gets right, in evaluation mode, and how many count (targets IGNORE do not)."""
    x, y = batch
    with evaluating(model):
        guesses = model(x).argmax(dim=-1)
    counts = y != IGNORE
    return int((guesses == y)[counts].sum()), int(counts.sum())
