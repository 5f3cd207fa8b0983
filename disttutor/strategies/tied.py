"""Weights that several stages of a pipeline share: each rank has a copy, and their gradients are added up."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from disttutor.strategies.buckets import Bucket
from disttutor.strategies.groups import Group, subgroups


class TiedWeights:
    """Those of `model` that lie on several ranks. owners: for each by name, these ranks' places in the pipeline.

    Which of them are frozen may change from step to step, on all ranks alike.
    """

    def __init__(self, model: nn.Module, owners: Mapping[str, tuple[int, ...]], pipe: Group):
        self.model, self.owners, self.pipe = model, owners, pipe
        self.groups = subgroups(pipe, owners.values())
        # A flag goes with each, whether its gradient is there.
        self.nbytes = {name: (w.numel() + 1) * w.element_size()
                       for name, w in ((name, model.get_parameter(name)) for name in owners)}

    def trained(self) -> list[tuple[str, tuple[int, ...], int]]:
        """Those that are not frozen now: name, owners, and bytes of the gradient with its flag."""
        return [(name, owners, self.nbytes[name]) for name, owners in self.owners.items()
                if self.model.get_parameter(name).requires_grad]

    def add_up(self, all_reduce: Callable[..., Any]) -> None:
        """Replace the gradient of each on its owners by their sum; by none where no stage has used it."""
        for number, (name, owners, _) in enumerate(self.trained()):
            if self.pipe.index in owners:
                weight: Tensor = self.model.get_parameter(name)
                bucket = Bucket([weight], 0)
                bucket.lie_in(None)
                bucket.complete(())
                all_reduce(bucket.buffer, self.groups[owners], bucket=number)
                bucket.hand_out()
