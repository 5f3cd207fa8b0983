"""Evaluation for a while: every module's own mode comes back, whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode. Afterwards each of its modules is in the mode it was in (a BatchNorm
    that was frozen with `.eval()` stays so)."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
