"""Collectives by our own hand: a plan of messages, carried out on real tensors.

What is split: an array, into chunks. What is sent when: what the plan says, round by round (`disttutor.plans`: rings,
trees, doubling, halving, two levels). How many bytes: the plan's, to the byte; a ring all-reduce sends 2(n-1)/n of the
array from each rank.

The functions do what those of the same names in torch.distributed do. Every sum is made once and handed round, or made
by all who need it from the same two numbers: so all ranks get the same bits, and again in the next run.
"""

from functools import cache, lru_cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from disttutor.plans.collectives import ALL_REDUCES, check_algorithm, collective
from disttutor.strategies.checks import whole_number
from disttutor.strategies.collective_program import Prepared
from disttutor.strategies.groups import Group, two_way, world
from disttutor.strategies.interpreter import OPS, Observer, carry_out
from disttutor.strategies.shares import share_sizes


@torch.no_grad()
def all_reduce(tensor: Tensor, group: Group | None = None, algorithm: str = "ring", op: str = "sum", *,
               ranks_per_node: int = 2, observe: Observer | None = None, **about: Any) -> None:
    """Replace `tensor` (contiguous, of any shape) by its sum, mean or max over the group, on every rank.

    group: default all ranks. algorithm: one of `disttutor.plans.ALL_REDUCES`. observe(moment) is called before and
    after each of the plan's rounds, with the names that its goal has for them. about: what the recorded messages are
    about beside their round, such as bucket=2. Raises ValueError for what is unknown or not contiguous, TypeError for a
    type in which this cannot be computed; both before anything is sent.
    """
    group = _group(group)
    flat = _flat(tensor, op)
    plan = _plan("all_reduce", algorithm, group.size, flat.numel(), flat.element_size(), ranks_per_node=ranks_per_node)
    carry_out(plan, group, _chunks(flat, plan), op, observe=observe, **about)
    if op == "mean":
        tensor.detach().div_(group.size)


@torch.no_grad()
def broadcast(tensor: Tensor, root: int = 0, group: Group | None = None, algorithm: str = "tree", *,
              observe: Observer | None = None) -> None:
    """Replace `tensor` by that of the rank `root`, on every rank of the group. Raises as `all_reduce` does."""
    group = _group(group)
    flat = _flat(tensor)
    plan = _plan("broadcast", algorithm, group.size, flat.numel(), flat.element_size(), _place(root, group))
    carry_out(plan, group, _chunks(flat, plan), observe=observe)


@torch.no_grad()
def reduce(tensor: Tensor, root: int = 0, group: Group | None = None, algorithm: str = "tree", op: str = "sum", *,
           observe: Observer | None = None) -> None:
    """Replace `tensor` by its sum, mean or max over the group on the rank `root`; others keep theirs. Raises as
    `all_reduce` does."""
    group = _group(group)
    flat, place = _flat(tensor, op), _place(root, group)
    plan = _plan("reduce", algorithm, group.size, flat.numel(), flat.element_size(), place)
    is_root = group.index == place
    carry_out(plan, group, _chunks(flat if is_root else flat.clone(), plan), op, observe=observe)
    if op == "mean" and is_root:
        tensor.detach().div_(group.size)


@torch.no_grad()
def all_gather(shard: Tensor, group: Group | None = None, algorithm: str = "ring", *, rows: int | None = None,
               observe: Observer | None = None) -> Tensor:
    """The shards of all ranks, one behind the other along the first dimension.

    rows: their length together. Default: all are as long as this one. Otherwise they must be as torch.tensor_split
    would cut them: lengths that differ by one at most, the longer ones first. Raises ValueError for a shard of another
    length, and as `all_reduce` does.
    """
    group = _group(group)
    flat, shape = _flat(shard), shard.shape or (1,)
    rows = shape[0] * group.size if rows is None else whole_number("rows", rows, 0)
    if shape[0] != (due := share_sizes(rows, group.size)[group.index]):
        raise ValueError(f"the shard of rank {group.ranks[group.index]} has {shape[0]} rows, but {rows} rows on "
                         f"{group.size} ranks are cut so that it has {due}")
    whole = shard.new_empty((rows, *shape[1:]))
    plan = _plan("all_gather", algorithm, group.size, *_rows(whole))
    chunks = _chunks(whole.view(-1), plan)
    chunks[group.index].copy_(flat)
    carry_out(plan, group, chunks, observe=observe)
    return whole


@torch.no_grad()
def reduce_scatter(tensor: Tensor, group: Group | None = None, algorithm: str = "ring", op: str = "sum", *,
                   observe: Observer | None = None) -> Tensor:
    """This rank's shard of the sum, mean or max of `tensor` over the group: its rows cut as torch.tensor_split cuts,
    of which the i-th rank gets the i-th. `tensor` stays as it is. Raises as `all_reduce` does."""
    group = _group(group)
    _flat(tensor, op)
    work = tensor.detach().clone().view(tensor.shape or (1,))
    plan = _plan("reduce_scatter", algorithm, group.size, *_rows(work))
    carry_out(plan, group, _chunks(work.view(-1), plan), op, observe=observe)
    shard = work.tensor_split(group.size)[group.index].clone()
    return shard.div_(group.size) if op == "mean" else shard


@torch.no_grad()
def all_to_all(tensor: Tensor, group: Group | None = None, algorithm: str = "pairwise", *,
               observe: Observer | None = None) -> Tensor:
    """The rows of `tensor` are cut as torch.tensor_split cuts them; the i-th rank gets the i-th piece from everybody,
    one behind the other in the order of who sent it. Raises as `all_reduce` does."""
    group = _group(group)
    n, me, shape = group.size, group.index, tensor.shape or (1,)
    pieces = _flat(tensor).view(shape).tensor_split(n)
    plan = _plan("all_to_all", algorithm, n, *_rows(tensor.view(shape)))
    result = tensor.new_empty((n * len(pieces[me]), *shape[1:]))
    store = {me * n + dst: piece.reshape(-1) for dst, piece in enumerate(pieces)}
    store |= {src * n + me: place.view(-1) for src, place in enumerate(result.tensor_split(n))}
    store[me * n + me].copy_(pieces[me].view(-1))
    carry_out(plan, group, store, observe=observe)
    return result


def rounding_differences(tensor: Tensor, group: Group | None = None) -> dict[str, Tensor]:
    """The sum of `tensor` over the group by each all-reduce there is: the same numbers, added up in other orders.

    Addition of floating-point numbers is not associative, so the results differ in their last bits; each of them is
    the same on all ranks.
    """
    results = {name: tensor.detach().clone() for name in ALL_REDUCES}
    for name, result in results.items():
        all_reduce(result, group, name)
    return results


def _group(group: Group | None) -> Group:
    """That group, or all ranks. Raises TypeError for what is no group of ours."""
    if group is not None and not isinstance(group, Group):
        raise TypeError(f"group is {group!r} of type {type(group).__name__}; give a Group, such as that of "
                        "group_along(mesh, 'data'), or None for all ranks")
    rank, size = world()
    return group or two_way(Group(tuple(range(size)), rank, dist.group.WORLD if size > 1 else None))


@lru_cache(maxsize=256)
def _plan(kind: str, algorithm: str, ranks: int, elements: int, itemsize: int, root: int = 0,
          ranks_per_node: int = 2) -> Prepared:
    """The plan, checked; kept, since making one takes longer than carrying it out."""
    check_algorithm(kind, algorithm)
    return Prepared(collective(kind, algorithm, ranks, elements, itemsize, root=root, ranks_per_node=ranks_per_node))


def _flat(tensor: Tensor, op: str | None = None) -> Tensor:
    """The tensor as a row, if it can be sent and `op` be computed in its type."""
    if not isinstance(tensor, Tensor) or tensor.layout != torch.strided:
        what = tensor.layout if isinstance(tensor, Tensor) else type(tensor).__name__
        raise TypeError(f"a collective takes a dense tensor, not {what}")
    if not tensor.is_contiguous():
        raise ValueError(f"the tensor of shape {tuple(tensor.shape)} and strides {tensor.stride()} is not contiguous, "
                         "so it cannot be sent as it lies; give tensor.contiguous()")
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError(f"the tensor of shape {tuple(tensor.shape)} is a view that stands for other numbers than lie "
                         "in memory (conjugated or with the other sign), so it cannot be sent as it lies; give "
                         "tensor.resolve_conj().resolve_neg()")
    if tensor.is_meta:
        raise ValueError(f"the tensor of shape {tuple(tensor.shape)} is on torch's meta device and holds no numbers; "
                         "give one on a real device")
    if op is not None:
        if not isinstance(op, str):
            raise TypeError(f"op is {op!r} of type {type(op).__name__}; those that work: {', '.join(OPS)}")
        _check_op(op, tensor.dtype)
    return tensor.detach().view(-1)


@cache
def _check_op(op: str, dtype: torch.dtype) -> None:
    if op not in OPS:
        raise ValueError(f"unknown op {op!r}; those that work: {', '.join(OPS)}")
    if op == "mean" and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"the mean of {dtype} is not of that type; take op='sum' and divide, or give tensor.double()")
    try:
        OPS[op](torch.zeros(1, dtype=dtype), torch.zeros(1, dtype=dtype))
    except RuntimeError:                    # NotImplementedError is one
        raise TypeError(f"torch has no {op} of two tensors of {dtype}; give another type") from None


def _chunks(flat: Tensor, prepared: Prepared) -> dict[int, Tensor]:
    """The plan's chunks of a row, by number. An element of the plan may be a row of several of the tensor's."""
    sizes = prepared.plan.goal.sizes
    each = flat.numel() // max(1, sum(sizes))
    return dict(enumerate(flat.split([size * each for size in sizes])))


def _rows(tensor: Tensor) -> tuple[int, int]:
    """How many rows there are, and bytes of each."""
    return (len(tensor), tensor.nbytes // len(tensor)) if tensor.numel() else (0, 1)


def _place(root: int, group: Group) -> int:
    if root not in group.ranks:
        raise ValueError(f"root is {root!r}, which is not among the ranks of the group, {list(group.ranks)}")
    return group.ranks.index(root)
