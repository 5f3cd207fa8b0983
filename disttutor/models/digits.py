"""The handwritten digits that come with scikit-learn: 1,797 pictures of 8x8 pixels, no download.

E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998.
"""

import functools
from typing import NamedTuple

import torch
from torch import Tensor


class Digits(NamedTuple):
    """x: [N, 64] pixels between 0 and 1, row by row; y: [N] the digit, 0 to 9."""

    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor


def digits(dtype: torch.dtype = torch.float32, *, test_share: float = 0.2, seed: int = 0) -> Digits:
    """Return the digits, shuffled with `seed` and cut once: the last `test_share` of them are for testing.

    By default 1,438 to train on and 359 to test. Raises ValueError for a share outside (0, 1).
    """
    if not 0.0 < test_share < 1.0:
        raise ValueError(f"test_share={test_share} leaves nothing to train on or to test: choose between 0 and 1")
    pixels, labels = _load()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    train, test = order.tensor_split([len(order) - round(test_share * len(order))])
    x = pixels.to(dtype) / 16  # a pixel is 0 to 16 drops of ink
    return Digits(x[train], labels[train], x[test], labels[test])


@functools.cache
def _load() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits  # takes a second: only who wants the data pays for it

    pixels, labels = load_digits(return_X_y=True)
    return torch.from_numpy(pixels), torch.from_numpy(labels).long()
