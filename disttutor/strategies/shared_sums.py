"""Sums, means and maxima of several ranks' arrays, and which arrays can be reduced in shared memory."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

OPS = ("sum", "mean", "max")
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8)


def combine(rows: Sequence[Tensor], out: Tensor, op: str) -> None:
    """Write the sum, mean or max of two or more tensors of one shape to `out`, which may be the first of them."""
    first, second, *others = rows
    if op == "max":
        torch.maximum(first, second, out=out)
        for row in others:
            torch.maximum(out, row, out=out)
        return
    if out.itemsize == 2 and out.is_floating_point():
        total = first.float().add_(second)
    else:
        total = torch.add(first, second, out=out)
    for row in others:
        total.add_(row)
    if op == "mean":
        total.div_(len(rows))
    if total is not out:
        out.copy_(total)


def check_reducible(tensor: Any, op: str) -> None:
    """Raises TypeError or ValueError for what cannot be reduced in shared memory."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"what is reduced must be a tensor, not {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise ValueError(f"the tensor lies on {tensor.device}, and shared memory is the CPU's: use "
                         "torch.distributed.all_reduce, or move it with .cpu()")
    if tensor.layout is not torch.strided:
        raise ValueError("the tensor is sparse, and each rank's may have other rows: use "
                         "torch.distributed.all_reduce, or make it dense with .to_dense()")
    if not tensor.is_contiguous():
        raise ValueError(f"the tensor of shape {tuple(tensor.shape)} has strides {tensor.stride()}: its elements do "
                         "not lie in one row. Reduce t = tensor.contiguous(), then tensor.copy_(t)")
    check_type(tensor.dtype)
    if op not in OPS:
        raise ValueError(f"unknown operation {op!r}; operations that work: {', '.join(OPS)}")
    if op == "mean" and not tensor.dtype.is_floating_point:
        raise TypeError(f"the mean of {name(tensor.dtype)} is no whole number: use op='sum' and divide")


def check_type(dtype: Any) -> None:
    """Raises TypeError for elements that cannot be reduced."""
    if dtype not in TYPES:
        raise TypeError(f"{name(dtype)} cannot be reduced in shared memory; types that work: "
                        f"{', '.join(map(name, TYPES))}")


def name(dtype: Any) -> str:
    """float32 for torch.float32."""
    return str(dtype).removeprefix("torch.")
