"""The plan of one data-parallel training step, in three forms that a learner can compare.

Li et al. 2020, "PyTorch Distributed" (arXiv 2006.15704), section 3.2: exchange each gradient when all are there
(`end`), gather gradients in buckets and exchange those when all are there (`bucketed`), or exchange each bucket as soon
as backward has filled it, while backward goes on (`overlapped`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from disttutor.plans.mesh import Mesh
from disttutor.plans.op import Op
from disttutor.plans.plan import Plan

FORMS = ("end", "bucketed", "overlapped")
WIDE = ("float32", "float64")      # types in which a count of samples is exact (up to 2^24)
# The loss, the number of samples it is the sum of, and two by which ranks that have lost step with one another are
# found out: the batch size that this rank believes in, and how many updates it has made.
HEADER_ELEMENTS = 4


@dataclass(frozen=True, slots=True)
class Gradient:
    """One parameter's gradient as a plan sees it: numel elements of `itemsize` bytes, in a tensor type `dtype`.

    flops: work of backward that yields it, for one sample. sparse: exchanged alone, at its own size.
    """

    name: str
    numel: int
    itemsize: int = 4
    dtype: str = "float32"
    flops: float = 0.0
    sparse: bool = False

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.numel * self.itemsize


def make_buckets(gradients: Sequence[Gradient], bucket_bytes: int | None) -> list[list[int]]:
    """Indices into `gradients`, bucket by bucket, in the order in which backward yields them (last layer first).

    A bucket closes before the gradient that would lift it over `bucket_bytes`; one larger than that gets a bucket of
    its own. Types do not mix; a sparse gradient is always alone. `None` makes a bucket of each gradient. The loss and
    the sample count travel with the first bucket of float32 or float64; where there is none, and where sparse gradients
    need flags that are known only after backward, an empty bucket is added at the end for them.
    Raises ValueError for a size that is not positive.
    """
    check_bucket_bytes(bucket_bytes)
    buckets: list[list[int]] = []
    room, holds = 0, None
    for i in reversed(range(len(gradients))):
        g = gradients[i]
        if bucket_bytes is None or g.sparse or g.dtype != holds or g.nbytes > room:
            buckets.append([])
            room = bucket_bytes or 0
        buckets[-1].append(i)
        room -= g.nbytes
        holds = None if g.sparse else g.dtype
    if any(g.sparse for g in gradients) or not any(_can_carry_header(gradients, b) for b in buckets):
        buckets.append([])
    return buckets


def check_bucket_bytes(bucket_bytes: int | None) -> None:
    """Raises ValueError for a size that is not positive."""
    if bucket_bytes is None:
        return
    if isinstance(bucket_bytes, bool) or not isinstance(bucket_bytes, int):
        raise TypeError(f"bucket_bytes is {bucket_bytes!r}; it must be a whole number of bytes, or None")
    if bucket_bytes <= 0:
        raise ValueError(f"bucket_bytes is {bucket_bytes}; it must be greater than 0, "
                         "or None for a bucket of each gradient")


def header_bucket(gradients: Sequence[Gradient], buckets: Sequence[Sequence[int]]) -> int:
    """Index of the bucket that also carries the header: loss, sample count, and the sparse gradients' flags."""
    if not buckets[-1]:
        return len(buckets) - 1
    return next(b for b, members in enumerate(buckets) if _can_carry_header(gradients, members))


def bucket_nbytes(gradients: Sequence[Gradient], buckets: Sequence[Sequence[int]]) -> list[int]:
    """Bytes that each bucket's all-reduce carries; for a sparse gradient 0, as its size is known only when it is there.

    Beside each gradient travels one element that says whether this rank used it (a parameter that no rank used keeps
    no gradient, as in one process).
    """
    header = header_bucket(gradients, buckets)
    sizes = []
    for b, members in enumerate(buckets):
        sparse = bool(members) and gradients[members[0]].sparse
        elements = 0 if sparse else sum(gradients[i].numel + 1 for i in members)
        if b == header:
            elements += HEADER_ELEMENTS + sum(g.sparse for g in gradients)
        sizes.append(elements * (gradients[members[0]].itemsize if members else 8))
    return sizes


def _can_carry_header(gradients: Sequence[Gradient], members: Sequence[int]) -> bool:
    return bool(members) and not gradients[members[0]].sparse and gradients[members[0]].dtype in WIDE


def data_parallel_step(gradients: Sequence[Gradient], mesh: Mesh, *, bucket_bytes: int | None = 25 * 2**20,
                       form: str = "overlapped", accumulate: int = 1, forward_flops: float = 0.0,
                       shares: Sequence[Sequence[int]] | None = None) -> Plan:
    """One step on every rank of `mesh.data`: forward and backward of `accumulate` micro-batches, exchange, update.

    gradients: those of the trainable parameters, in the model's order. forward_flops: work of forward for one sample.
    shares: samples in each micro-batch, rank by rank (default: `accumulate` micro-batches of one sample each). Only the
    last micro-batch's backward is followed by an exchange. In the forms other than "overlapped" the exchange waits for
    the whole backward. Raises ValueError for an unknown form, a count below 1, or shares for another number of ranks.
    """
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}; forms that work: {', '.join(FORMS)}")
    if accumulate < 1:
        raise ValueError(f"accumulate is {accumulate}; it must be 1 or more micro-batches")
    if mesh.world_size != mesh.data:
        raise ValueError(f"data parallelism alone needs a mesh with only a data axis, not {mesh.sizes}")
    shares = shares or [[1] * accumulate] * mesh.data
    if len(shares) != mesh.data or not all(shares):
        raise ValueError(f"shares {list(shares)} do not fit {mesh.data} ranks: it takes a list of one or more "
                         "micro-batches for each")
    buckets = make_buckets(gradients, None if form == "end" else bucket_bytes)
    sizes = bucket_nbytes(gradients, buckets)
    everybody = mesh.group(0, "data")           # asked for once: a thousand ranks would name a thousand each
    return Plan(
        name=f"data parallel, {form}",
        ops=tuple(tuple(_rank_ops(rank, gradients, buckets, sizes, everybody, form, shares[rank], forward_flops))
                  for rank in range(mesh.world_size)),
        mesh=mesh,
    )


def _rank_ops(rank: int, gradients: Sequence[Gradient], buckets: list[list[int]], sizes: list[int],
              group: tuple[int, ...], form: str, samples: Sequence[int], forward_flops: float):
    whole_backward = sum(g.flops for g in gradients)
    reduces, backwards = [], []
    for m, n in enumerate(samples):
        last = m == len(samples) - 1
        yield Op(kind="forward", rank=rank, microbatch=m, flops=n * forward_flops)
        if last and form == "overlapped" and len(group) > 1:
            for b, members in enumerate(buckets):
                part = Op(kind="backward", rank=rank, microbatch=m, bucket=b,
                          flops=n * sum(gradients[i].flops for i in members))
                backwards.append(part)
                yield part
                reduces.append(Op(kind="all_reduce", rank=rank, bucket=b, nbytes=sizes[b], group=group,
                                  after=(part.key,)))
                yield reduces[-1]
        else:
            backwards.append(Op(kind="backward", rank=rank, microbatch=m, flops=n * whole_backward))
            yield backwards[-1]
    if form != "overlapped" and len(group) > 1:
        for b, nbytes in enumerate(sizes):
            reduces.append(Op(kind="all_reduce", rank=rank, bucket=b, nbytes=nbytes, group=group,
                              after=(backwards[-1].key,)))
            yield reduces[-1]
    yield Op(kind="update", rank=rank, after=tuple(op.key for op in reduces))
