"""One operation of one rank: the word in which plans, recordings and predictions are all written.

An `Op` says what is done, by whom, about what, and how much. The same object is executed, priced and drawn, so a
recorded run can be held against its plan operation by operation, to the byte.
"""

from dataclasses import dataclass, field
from math import inf
from operator import index

COMPUTE, COMM = "compute", "comm"

# What each kind of operation is, and on which of a rank's two lanes it is drawn. `recv` puts what arrives in the place
# of what was there, `recv_reduce` combines the two. In a plan with `backward_weight`, `backward` is the gradient of a
# stage's input alone.
COMPUTE_KINDS = ("forward", "backward", "backward_weight", "update", "compute")
RECEIVES = ("recv", "recv_reduce")
POINT_TO_POINT = ("send", *RECEIVES)
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "gather", "scatter",
               "barrier")
LANE_OF = {**dict.fromkeys(COMPUTE_KINDS, COMPUTE), **dict.fromkeys(POINT_TO_POINT + COLLECTIVES, COMM)}

# What an operation can be about; a name and a number each. Boundary b lies between the stages b and b+1 of a pipeline;
# a round is a step of a collective's algorithm.
SUBJECTS = ("stage", "boundary", "microbatch", "bucket", "chunk", "layer", "round")


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation of one rank.

    kind: one of `LANE_OF`. rank: who does it. nbytes: size of the tensor sent or reduced (the whole array, before any
    algorithm cuts it up). flops: work of a compute operation, in floating-point operations. group: the ranks of a
    collective. peer: the other end of a send or receive. stage, boundary, microbatch, bucket, chunk, layer, round: what
    it is about. chunks: which chunks of an array a message carries, in the order in which they lie in it. after: keys
    of operations that must have ended first, beside what the order of the rank's list says already (see `Plan`).

    Raises TypeError for a rank or peer that is no whole number and for sizes that are no numbers; ValueError for an
    unknown kind, a negative rank or peer, a negative or undefined size, a collective without a group or whose group
    lacks its own rank, and a message without a peer.
    """

    kind: str
    rank: int
    nbytes: int = 0
    flops: float = 0.0
    group: tuple[int, ...] = ()
    peer: int | None = None
    stage: int | None = None
    boundary: int | None = None
    microbatch: int | None = None
    bucket: int | None = None
    chunk: int | None = None
    layer: int | None = None
    round: int | None = None
    chunks: tuple[int, ...] = ()
    after: tuple["Key", ...] = ()
    # Worked out once, since a simulation asks for them at every turn. subject: what it is about, as (name, number)
    # pairs. key: what tells this operation from all others of a plan: its rank, kind, peer and subject.
    subject: tuple[tuple[str, int], ...] = field(init=False, repr=False, compare=False)
    key: "Key" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.rank) is not int or (self.peer is not None and type(self.peer) is not int):
            self._whole_numbers()
        pairs = tuple((name, number) for name in SUBJECTS if (number := getattr(self, name)) is not None)
        object.__setattr__(self, "subject", pairs)
        object.__setattr__(self, "key", (self.rank, self.kind, self.peer, pairs))
        if self.kind not in LANE_OF:
            raise ValueError(f"unknown kind of operation {self.kind!r}; kinds that work: {', '.join(LANE_OF)}")
        if self.rank < 0 or (self.peer is not None and self.peer < 0):
            raise ValueError(f"{self.label} on rank {self.rank} names a negative rank; ranks are counted from 0")
        try:
            sound = 0 <= self.nbytes < inf and 0 <= self.flops < inf  # not so for NaN either
        except TypeError:
            raise TypeError(f"{self.label} on rank {self.rank} has a size that is no number "
                            f"({self.nbytes!r} bytes, {self.flops!r} flops)") from None
        if not sound:
            negative = self.nbytes < 0 or self.flops < 0
            raise ValueError(f"{self.label} on rank {self.rank} has {'a negative' if negative else 'an undefined'} "
                             f"size ({self.nbytes} bytes, {self.flops} flops)")
        if self.kind in COLLECTIVES and not self.group:
            raise ValueError(f"{self.label} on rank {self.rank} names no group")
        if self.group and self.rank not in self.group:
            raise ValueError(f"{self.label} is put on rank {self.rank}, which is not in its group {self.group}")
        if self.kind in POINT_TO_POINT and self.peer is None:
            raise ValueError(f"{self.label} on rank {self.rank} names no peer")

    def _whole_numbers(self) -> None:
        """Make numpy's whole numbers plain ones; raise TypeError for what is none."""
        for name in ("rank", "peer"):
            value = getattr(self, name)
            if value is None and name == "peer":
                continue
            try:
                if isinstance(value, bool):
                    raise TypeError
                object.__setattr__(self, name, index(value))
            except TypeError:
                raise TypeError(f"the {name} of {self.kind} is {value!r}, of type {type(value).__name__}; "
                                "it must be a whole number") from None

    @property
    def lane(self) -> str:
        """The lane of its rank on which it runs: "compute" or "comm"."""
        return LANE_OF[self.kind]

    @property
    def label(self) -> str:
        """A line for people: `all_reduce bucket 2`."""
        words = [self.kind, *(f"{name} {number}" for name, number in self.subject)]
        if self.kind == "send":
            words.append(f"to rank {self.peer}")
        if self.kind in RECEIVES:
            words.append(f"from rank {self.peer}")
        return " ".join(words)


Key = tuple[int, str, int | None, tuple[tuple[str, int], ...]]
