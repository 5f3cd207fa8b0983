"""Buckets: gradients gathered in flat buffers, each summed over the ranks by one all-reduce.

Buckets are sent strictly in order, so that all ranks meet in the same one, and each carries beside its gradients a flag
for each parameter. So ranks that did not use a parameter contribute zeros without anybody having to search the graph,
and a parameter that no rank used keeps no gradient at all, as in one process.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from disttutor.plans import Gradient, header_bucket, make_buckets
from disttutor.plans.training import HEADER_ELEMENTS
from disttutor.strategies.groups import Group
from disttutor.strategies.shared_memory import SharedMemory
from disttutor.strategies.strategy import Header
from disttutor.traces import recorder


def gradients_of(parameters: Sequence[tuple[str, Tensor]], sparse: set[int], work: float = 0.0) -> list[Gradient]:
    """What a plan must know of each trainable parameter. sparse: ids of those whose gradients are sparse; work: flops
    of backward for each weight."""
    return [Gradient(name, p.numel(), p.element_size(), str(p.dtype).removeprefix("torch."), work * p.numel(),
                     id(p) in sparse) for name, p in parameters]


def sparse_parameters(model: nn.Module) -> set[int]:
    """Ids of the weights of embeddings that yield sparse gradients. One that another layer uses too (tied) is not among
    them: the sum of a sparse and a dense gradient is dense."""
    sparse, dense = set(), set()
    for module in model.modules():
        yields_rows = isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.sparse
        (sparse if yields_rows else dense).update(map(id, module.parameters(recurse=False)))
    return sparse - dense


def _nothing(b: int) -> None:
    """For callers who do not want to know."""


class Bucket:
    """A flat buffer: the gradients of its parameters, a flag for each, and in the header bucket the loss, the count and
    the flags of the sparse parameters."""

    def __init__(self, parameters: list[Tensor], header: int):
        self.parameters, self._header_size = parameters, header
        self.like = parameters[0] if parameters else torch.zeros((), dtype=torch.float64)
        self.elements = sum(p.numel() for p in parameters) + len(parameters) + header
        self.there = [False] * len(parameters)
        self.missing = len(parameters)

    def lie_in(self, shared: SharedMemory | None) -> None:
        """Get the buffer, in the memory that the ranks share or in this rank's own."""
        self.buffer = (torch.zeros(self.elements, dtype=self.like.dtype, device=self.like.device) if shared is None
                       else shared.empty(self.elements, self.like.dtype))
        sizes = [p.numel() for p in self.parameters]
        *pieces, self.flags, self.header = self.buffer.split([*sizes, len(sizes), self._header_size])
        self.views = [piece.view(p.shape) for piece, p in zip(pieces, self.parameters, strict=True)]

    def arrived(self, slot: int) -> None:
        """Backward has yielded the gradient of this parameter."""
        self.missing -= not self.there[slot]
        self.there[slot] = True

    def complete(self, header: Sequence[float | Tensor]) -> None:
        """Copy the gradients in (zeros where this rank has none), and write flags and header."""
        gradients = [p.grad for p in self.parameters]
        if all(g is not None for g in gradients):
            self.flags.fill_(1.0)
        else:
            self.flags.copy_(torch.tensor([float(g is not None) for g in gradients]))
            gradients = [torch.zeros_like(v) if g is None else g for g, v in zip(gradients, self.views, strict=True)]
        if gradients:
            torch._foreach_copy_(self.views, [g.to_dense() if g.is_sparse else g for g in gradients])
        for place, value in enumerate(header):
            self.header[place] = value
        self.there = [False] * len(self.parameters)
        self.missing = len(self.parameters)

    def hand_out(self) -> None:
        """Give each parameter the sum of all ranks' gradients, or none where no rank used it."""
        for p, view, used in zip(self.parameters, self.views, self.flags.tolist(), strict=True):
            p.grad = view if used else None


class SparseBucket:
    """A sparse gradient, which travels as it is: an all-reduce of its rows."""

    def __init__(self, parameter: Tensor):
        self.parameter = parameter
        self.buffer: Tensor | None = None
        self.missing = 1

    def arrived(self, slot: int) -> None:
        self.missing = 0

    def complete(self, header: Sequence[float | Tensor]) -> None:
        p = self.parameter
        if p.grad is None:
            nowhere = torch.zeros(1, 0, dtype=torch.int64, device=p.device)
            self.buffer = torch.sparse_coo_tensor(nowhere, p.new_zeros(0, *p.shape[1:]), p.shape, is_coalesced=True,
                                                  check_invariants=False)
        else:
            self.buffer = p.grad.coalesce()
        self.missing = 1


class Exchange:
    """All buckets of one model on one rank, and their order of departure.

    on_full(b): called when bucket b is full, before it leaves; on_departed(b): when it has left. watched: index of a
    bucket that is held back for the caller to exchange (see `DataParallel.watch`). in_shared_memory: dense buckets lie
    in memory that the ranks share, and are summed there; this is over when they have left.
    """

    def __init__(self, model: nn.Module, group: Group, bucket_bytes: int | None, *, in_shared_memory: bool = False):
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        sparse = sparse_parameters(model)
        self.group = group
        self.gradients = gradients_of(named, sparse)
        self.members = make_buckets(self.gradients, bucket_bytes)
        self.header_at = header_bucket(self.gradients, self.members)
        self.buckets: list[Bucket | SparseBucket] = []
        self.places: list[tuple[Tensor, tuple[int, int]]] = []       # parameter -> its bucket and number in it
        for b, indices in enumerate(self.members):
            parameters = [named[i][1] for i in indices]
            if parameters and id(parameters[0]) in sparse:
                self.buckets.append(SparseBucket(parameters[0]))
            else:
                extra = HEADER_ELEMENTS + sum(g.sparse for g in self.gradients) if b == self.header_at else 0
                self.buckets.append(Bucket(parameters, extra))
            self.places += [(p, (b, slot)) for slot, p in enumerate(parameters)]
        self.sparse = [bucket for bucket in self.buckets if isinstance(bucket, SparseBucket)]
        dense = [bucket for bucket in self.buckets if isinstance(bucket, Bucket)]
        room = sum(SharedMemory.room(bucket.elements, bucket.like.dtype) for bucket in dense)
        self.shared = SharedMemory(group, room) if in_shared_memory else None
        for bucket in dense:
            bucket.lie_in(self.shared)
        self.names = {id(p): name for name, p in named}
        self.header: Header | None = None
        self.on_full: Callable[[int], None] = _nothing
        self.on_departed: Callable[[int], None] = _nothing
        self.watched: int | None = None
        self._flights: dict[int, Any] = {}
        self._departed = len(self.buckets)

    def start(self, header: Header) -> None:
        """A new exchange begins."""
        self.header = header
        self._flights, self._departed = {}, 0

    def ready(self, b: int, slot: int, parameter: Tensor) -> None:
        """Backward has yielded the gradient of this parameter, number `slot` of bucket b. The bucket leaves once all of
        its gradients are there and those before it have left.

        Raises RuntimeError if the bucket has left already: the gradient came in two parts.
        """
        if b < self._departed:
            raise RuntimeError(
                f"the gradient of {self.names[id(parameter)]!r} arrived again after its bucket had been sent: backward "
                "reaches it more than once (reentrant checkpointing does that). Use form='bucketed', or "
                "checkpoint(..., use_reentrant=False)")
        self.buckets[b].arrived(slot)
        while self._departed < len(self.buckets) and not self.buckets[self._departed].missing:
            self._depart()

    def flush(self, *, one_by_one: bool = False) -> None:
        """Send what has not left yet. one_by_one: wait for each before the next."""
        while self._departed < len(self.buckets):
            self._depart()
            if one_by_one:
                self._land(self._departed - 1)

    def finish(self) -> tuple[float, float]:
        """Wait for all buckets, hand out the summed gradients; return loss sum and count over all ranks."""
        for b in sorted(self._flights):
            self._land(b)
        for bucket in self.buckets:
            if isinstance(bucket, Bucket):
                bucket.hand_out()
        total, count, divisors, updates, *sparse_flags = self.buckets[self.header_at].header.tolist()
        self._check_in_step(divisors, updates)
        for bucket, used in zip(self.sparse, sparse_flags, strict=True):
            bucket.parameter.grad = bucket.buffer if used else None
        return total, count

    def weights_in(self, b: int) -> int:
        """How many weights bucket b holds the gradients of."""
        return sum(self.gradients[i].numel for i in self.members[b])

    def _check_in_step(self, divisors: float, updates: float) -> None:
        """Raises ValueError if the ranks' sums show that this one was given, or is, something else than the others."""
        ranks, me = self.group.size, self.group.ranks[self.group.index]
        _, _, divisor, update = self.header
        if divisors != ranks * divisor:
            raise ValueError(f"rank {me} was given a batch of {divisor} samples, and all {ranks} ranks together "
                             f"{divisors:g}: step(batch) takes the same global batch on every rank. Ranks that bring "
                             "samples of their own call step_local([batch])")
        if updates != ranks * update:
            raise ValueError(f"rank {me} has made {update} updates, and all {ranks} ranks together {updates:g}: they "
                             "must be at the same one. Call step and load_state on every rank")

    def _depart(self) -> None:
        b = self._departed
        flags = (float(bucket.parameter.grad is not None) for bucket in self.sparse)
        self.buckets[b].complete([*self.header, *flags] if b == self.header_at else ())
        self._departed += 1
        self.on_full(b)
        if b != self.watched:
            self._send(b)
        self.on_departed(b)

    def _send(self, b: int) -> None:
        bucket, log = self.buckets[b], recorder()
        about = {"nbytes": self._size(b), "group": self.group.ranks, "process_group": self.group.handle, "bucket": b}
        if self.shared is not None and isinstance(bucket, Bucket):
            begun = log.begin()
            self.shared.all_reduce(bucket.buffer)
            log.end(begun, "all_reduce", **about)
        else:
            work = dist.all_reduce(bucket.buffer, group=self.group.handle, async_op=True)
            self._flights[b] = log.launch(work, "all_reduce", **about)

    def _land(self, b: int) -> None:
        if b in self._flights:                           # not one that is watched, or was summed in shared memory
            recorder().wait(self._flights.pop(b))

    def _size(self, b: int) -> int:
        """Bytes really handed over (a sparse gradient's: its values)."""
        buffer = self.buckets[b].buffer
        return buffer.values().nbytes if buffer.is_sparse else buffer.nbytes
