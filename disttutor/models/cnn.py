"""A small convolutional network for the 8x8 digits, with batch norm: the layer that looks across the batch."""

import torch
from torch import Tensor, nn

from disttutor.models.checks import share_of_dropped, sizes
from disttutor.models.seeding import seeded


class SmallCNN(nn.Module):
    """Two 3x3 convolutions with batch norm, each halving the picture, then one linear layer.

    Input [B, 64] or [B, 1, 8, 8], output [B, classes]. With c channels it has
    9c + 2c + 18c² + 4c + (8c + 1)·classes parameters: 1,922 for c = 8 and ten classes.
    """

    def __init__(
        self,
        channels: int = 8,
        *,
        classes: int = 10,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Raises ValueError for a size below 1 or a dropout outside [0, 1)."""
        super().__init__()
        sizes(channels=channels, classes=classes)
        share_of_dropped(dropout)
        with seeded(seed):
            # No bias before a batch norm, which would subtract it again.
            self.conv1 = nn.Conv2d(1, channels, kernel_size=3, padding=1, bias=False)
            self.norm1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, 2 * channels, kernel_size=3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(2 * channels)
            self.dropout = nn.Dropout(dropout)
            self.linear = nn.Linear(2 * channels * 2 * 2, classes)
        self.to(dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = Picture.of(x)  # B, 1, 8, 8
        x = torch.relu(self.norm1(self.conv1(x)))  # B, c, 8, 8
        x = nn.functional.max_pool2d(x, 2)  # B, c, 4, 4
        x = torch.relu(self.norm2(self.conv2(x)))  # B, 2c, 4, 4
        x = nn.functional.max_pool2d(x, 2)  # B, 2c, 2, 2
        return self.linear(self.dropout(x.flatten(1)))  # B, classes

    def layers_in_order(self) -> list[nn.Module]:
        """Parts that, one after the other, are the model: two convolutions with what belongs to them, and the head."""
        return [
            nn.Sequential(Picture(), self.conv1, self.norm1, nn.ReLU(), nn.MaxPool2d(2)),  # B, c, 4, 4
            nn.Sequential(self.conv2, self.norm2, nn.ReLU(), nn.MaxPool2d(2)),  # B, 2c, 2, 2
            nn.Sequential(nn.Flatten(1), self.dropout, self.linear),  # B, classes
        ]


class Picture(nn.Module):
    """Rows of 64 pixels as pictures."""

    @staticmethod
    def of(x: Tensor) -> Tensor:
        return x.reshape(-1, 1, 8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.of(x)
