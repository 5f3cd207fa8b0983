"""Data parallelism: each rank a whole replica, a share of the batch, and the sum of all gradients.

What is split: the batch. What is kept whole: parameters, gradients and optimizer state, on every rank. What is sent
when: every gradient once a step, after the last micro-batch, by all-reduce: all at the end, in buckets at the end, or
each bucket as soon as backward has filled it. How many bytes: a ring sends 2(n-1)/n times the gradients' size from each
rank.

Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training" (arXiv 2006.15704), section 3.
The gradient of a sum is the sum of gradients: that is all the mathematics. It takes a loss that is a sum over samples,
and no layer that looks across the batch.

Ranks of one machine may sum their buckets in memory that they share instead (see `shared_memory`). It is many times
faster; but the rank does the sums itself, so it does not go on with backward meanwhile.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from disttutor.plans import FORMS, Mesh, Plan, data_parallel_step
from disttutor.plans.training import check_bucket_bytes
from disttutor.strategies.batch_norm import SynchronizedBatchNorm, synchronize_batch_norm
from disttutor.strategies.broadcast import broadcast_state, check_alike, describe, sum_over
from disttutor.strategies.buckets import Bucket, Exchange, gradients_of, sparse_parameters
from disttutor.strategies.checks import whole_number
from disttutor.strategies.collectives import all_reduce
from disttutor.strategies.groups import group_along
from disttutor.strategies.shares import Batch, share_sizes
from disttutor.strategies.strategy import BACKWARD_WORK, Header, Objective, OptimizerFactory, Strategy
from disttutor.traces import recorder

TRANSPORTS = ("messages", "shared memory")


class DataParallel(Strategy):
    """Data-parallel training of `model` on every rank of the mesh's data axis; ranks start from rank 0's weights.

    form: "overlapped" (buckets leave during backward), "bucketed" (buckets, after backward), "end" (every gradient by
    itself, after backward). bucket_bytes: a bucket's largest size. sync_batch_norm: BatchNorm over the whole batch
    instead of each rank's share. Otherwise, buffers are each rank's own during training, and rank 0's before an
    evaluation and in the full state. transport: how dense buckets are summed, by torch.distributed's "messages" (gloo,
    nccl) or in "shared memory" (ranks of one machine, models on the CPU). The other arguments are those of `Strategy`.

    Raises ValueError for an unknown form or transport, a mesh that does not fit the running ranks, or ranks or a model
    that have no memory to share; TypeError for a type of weights that cannot be summed there.
    """

    def __init__(self, model: nn.Module, objective: Objective, optimizer: OptimizerFactory, *,
                 mesh: Mesh | None = None, form: str = "overlapped", bucket_bytes: int | None = 25 * 2**20,
                 sync_batch_norm: bool = False, transport: str = "messages", **common: Any):
        for what, given, known in (("form", form, FORMS), ("transport", transport, TRANSPORTS)):
            if given not in known:
                raise ValueError(f"unknown {what} {given!r}; {what}s that work: {', '.join(known)}")
        if transport == "shared memory" and (elsewhere := {str(p.device) for p in model.parameters()} - {"cpu"}):
            raise ValueError(f"the model lies on {', '.join(sorted(elsewhere))}, and the memory that ranks share is "
                             "the CPU's: use transport='messages', or model.cpu()")
        check_bucket_bytes(bucket_bytes)
        self.group = group_along(mesh, "data")
        self.ranks, self.index = self.group.size, self.group.index
        if sync_batch_norm:
            synchronize_batch_norm(model, self.group)
        super().__init__(model, objective, optimizer, **common)
        self.form, self.bucket_bytes, self.transport = form, None if form == "end" else bucket_bytes, transport
        self.snapshots: list[tuple[str, Tensor]] = []
        self._watched: int | None = None
        self._armed = False
        self._hooks: list[Any] = []
        self._synchronises = any(isinstance(m, SynchronizedBatchNorm) for m in model.modules())
        if self.ranks > 1:
            settings = {"form": form, "bucket_bytes": bucket_bytes, "accumulate": self.accumulate,
                        "sync_batch_norm": self._synchronises, "transport": transport}
            check_alike(self.group, settings | describe(model))
            broadcast_state(model, self.group)
            self._attach()

    def step_local(self, microbatches: Sequence[Batch], samples: int | None = None) -> float:
        if self._synchronises and self.ranks > 1:
            # Ranks meet inside the model in every micro-batch: one that has fewer would leave the others waiting.
            check_alike(self.group, {"the number of micro-batches in this step": len(microbatches)})
        return super().step_local(microbatches, samples)

    # ------------------------------------------------------------------------------------------------- the exchange

    def _attach(self) -> None:
        """Make the buckets, and in the overlapped form listen to every gradient."""
        for hook in self._hooks:
            hook.remove()
        self._trainable = self._trainable_now()
        self._exchanger = Exchange(self.model, self.group, self.bucket_bytes,
                                   in_shared_memory=self.transport == "shared memory")
        if self.form == "overlapped":
            self._exchanger.on_full, self._exchanger.on_departed = self._end_part, self._begin_part
            self._hooks = [p.register_post_accumulate_grad_hook(partial(self._gradient_ready, *place))
                           for p, place in self._exchanger.places]

    def _trainable_now(self) -> list[bool]:
        return [p.requires_grad for p in self.parameters]

    def _gradient_ready(self, b: int, slot: int, parameter: Tensor) -> None:
        if self._armed:
            self._exchanger.ready(b, slot, parameter)

    def _backward(self, loss: Tensor, samples: int, m: int, last: bool, header: Header) -> None:
        if self.ranks == 1 or not last:
            super()._backward(loss, samples, m, last, header)
            return
        if self._trainable != self._trainable_now():
            self._attach()                               # something was frozen or thawed since the last step
        self._exchanger.start(header)
        self._exchanger.watched, self._watched = self._watched, None
        if self.form == "overlapped":
            self._microbatch, self._samples = m, samples
            self._begin_part()
            self._armed = True
            try:
                if loss.requires_grad:
                    loss.backward()
                self._exchanger.flush()
            finally:
                self._armed = False
        else:
            super()._backward(loss, samples, m, last, header)
            self._exchanger.flush(one_by_one=self.form == "end")

    def _begin_part(self, b: int = -1) -> None:
        """The part of backward that fills the next bucket begins."""
        self._part = recorder().begin()

    def _end_part(self, b: int) -> None:
        """The part of backward that filled bucket b is over."""
        recorder().end(self._part, "backward", microbatch=self._microbatch, bucket=b,
                       flops=BACKWARD_WORK * self._samples * self._exchanger.weights_in(b))

    def _exchange(self, total: Tensor, count: Any) -> tuple[float, float]:
        if self.ranks == 1:
            return super()._exchange(total, count)
        if self._exchanger.watched is not None:
            self._exchange_watched(self._exchanger.watched)
        return self._exchanger.finish()

    # ------------------------------------------------------------------------------------------------- looking on

    @property
    def buckets(self) -> list[list[str]]:
        """Names of the parameters in each bucket, in order of departure. Empty on one rank."""
        if self.ranks == 1:
            return []
        names = [g.name for g in self._exchanger.gradients]
        return [[names[i] for i in members] for members in self._exchanger.members]

    def watch(self, bucket: int) -> None:
        """In the next step, send this bucket round a ring by our own hand, and keep in `snapshots` what this rank holds
        of it before, after each message and after. Every rank must ask for the same.

        Raises ValueError for a bucket that is not there or is sparse.
        """
        whole_number("bucket", bucket)
        known = [b for b, k in enumerate(self._exchanger.buckets) if isinstance(k, Bucket)] if self.ranks > 1 else []
        if bucket not in known:
            raise ValueError(f"there is no bucket {bucket} to watch; buckets that work: "
                             f"{', '.join(map(str, known)) or 'none on one rank'}")
        self._watched = bucket

    def _exchange_watched(self, b: int) -> None:
        bucket = self._exchanger.buckets[b]
        elements = sum(view.numel() for view in bucket.views)
        self.snapshots = []

        def keep(moment: str) -> None:
            self.snapshots.append((moment, bucket.buffer[:elements].detach().cpu().clone()))

        all_reduce(bucket.buffer, self.group, "ring", observe=keep, bucket=b)

    def plan(self, samples: int) -> Plan:
        """What every rank does in one step on a global batch of `samples`, before it is done."""
        sizes = share_sizes(samples, self.ranks * self.accumulate)
        shares = [sizes[at:at + self.accumulate] for at in range(0, len(sizes), self.accumulate)]
        named = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        gradients = gradients_of(named, sparse_parameters(self.model), work=BACKWARD_WORK)
        return data_parallel_step(gradients, Mesh(data=self.ranks), bucket_bytes=self.bucket_bytes, form=self.form,
                                  shares=shares, forward_flops=self.forward_work(1))

    # ------------------------------------------------------------------------------------------------- the state

    def _joins_empty(self) -> bool:
        return self._synchronises

    def sync_buffers(self) -> None:
        """Give every rank the buffers (running statistics, counters) of rank 0."""
        if self.ranks > 1:
            broadcast_state(self.model, self.group, parameters=False)

    def full_state(self) -> dict[str, Any]:
        self.sync_buffers()
        return super().full_state()

    @torch.no_grad()
    def evaluate(self, measure: Objective, data: Batch, batch_size: int = 1024) -> float:
        self.sync_buffers()
        return super().evaluate(measure, data, batch_size)

    def _sum_over_ranks(self, total: Tensor, count: Any) -> tuple[float, float]:
        sums: Sequence[float] = sum_over(self.group, total, count)
        return sums[0], sums[1]
