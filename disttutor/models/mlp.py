"""A multilayer perceptron: linear layers with an activation between them."""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from disttutor.models.checks import share_of_dropped, sizes
from disttutor.models.seeding import seeded

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}


class MLP(nn.Module):
    """A stack of `linear -> [batch norm] -> activation -> [dropout]`, the last linear layer bare.

    Input [B, widths[0]] (further axes are flattened), output [B, widths[-1]]. Layer i holds
    widths[i]·widths[i+1] weights and widths[i+1] biases; a batch norm adds 2·widths[i+1] and its running statistics.

    `model.layers` is a plain `Sequential`, which can be cut anywhere: linear0, norm0, relu0, dropout0, linear1, ...
    """

    def __init__(
        self,
        widths: Sequence[int],
        *,
        dropout: float = 0.0,
        batch_norm: bool = False,
        activation: str = "relu",
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Raises ValueError for fewer than two widths, a width below 1, or an activation that is not there."""
        super().__init__()
        if len(widths) < 2:
            raise ValueError(f"widths={list(widths)} is no network: give at least two, the input's and the output's")
        sizes(widths=widths)
        share_of_dropped(dropout)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation={activation!r} is not one of {', '.join(map(repr, ACTIVATIONS))}")
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        with seeded(seed):
            for i, (wide, next_wide) in enumerate(zip(widths, widths[1:], strict=False)):
                layers[f"linear{i}"] = nn.Linear(wide, next_wide)
                if i == len(widths) - 2:
                    break
                if batch_norm:
                    layers[f"norm{i}"] = nn.BatchNorm1d(next_wide)
                layers[f"{activation}{i}"] = ACTIVATIONS[activation]()
                if dropout:
                    layers[f"dropout{i}"] = nn.Dropout(dropout)
        self.layers = nn.Sequential(layers)
        self.to(dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.flatten(1))

    def layers_in_order(self) -> list[nn.Module]:
        """Parts that, one after the other, are the model: each linear layer with what follows it up to the next."""
        parts = [[nn.Flatten(1)]]
        for layer in self.layers:
            if isinstance(layer, nn.Linear) and len(parts[-1]) > 1:
                parts.append([])
            parts[-1].append(layer)
        return [nn.Sequential(*part) for part in parts]
