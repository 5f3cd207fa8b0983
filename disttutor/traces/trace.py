"""What ranks did, and when: spans and counters of all ranks on one time axis."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter

from disttutor.plans import Mesh, Op, Plan

SOURCES = ("measured", "replayed", "slow motion", "predicted")


@dataclass(frozen=True, slots=True)
class Span:
    """One operation, done: `op` from `start` to `end` (seconds on the trace's axis), in training step `step`.

    cpu: seconds of processor time that the rank's own thread spent in it; less than the duration where the rank waited
    for the processor, for a peer, or slept out slow motion. place: its number in the order in which the rank came to
    its operations, which is not always that of their starts (a message may have to wait for its port).
    """

    op: Op
    start: float
    end: float
    cpu: float = 0.0
    step: int = 0
    place: int = 0

    @property
    def rank(self) -> int:
        return self.op.rank

    @property
    def lane(self) -> str:
        return self.op.lane

    @property
    def kind(self) -> str:
        return self.op.kind

    @property
    def label(self) -> str:
        return self.op.label

    @property
    def nbytes(self) -> int:
        return self.op.nbytes

    @property
    def group(self) -> tuple[int, ...]:
        return self.op.group

    @property
    def duration(self) -> float:
        """Seconds from start to end."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Counter:
    """The value of a named quantity of one rank (bytes held, micro-batches in flight, …) from `time` on (seconds)."""

    rank: int
    name: str
    time: float
    value: float


@dataclass(frozen=True, slots=True)
class Trace:
    """Spans of `world_size` ranks, sorted by start, the outer of two that start together first.

    source: "measured" (as it ran), "replayed" (a core for each rank), "slow motion" or "predicted". note: the model
    behind a slow-motion or predicted trace, or what else a reader of the picture must know.
    Raises ValueError for another source, for a world without ranks and for a span of a rank outside it.
    """

    spans: tuple[Span, ...]
    world_size: int
    source: str = "measured"
    counters: tuple[Counter, ...] = ()
    note: str = ""
    _of: dict[int, tuple[Span, ...]] = field(init=False, repr=False, compare=False)     # each rank's spans

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"unknown source {self.source!r}; sources that work: {', '.join(SOURCES)}")
        if not self.world_size >= 1:
            raise ValueError(f"world_size={self.world_size}: a trace is of at least one rank")
        # By start, then the longer first, then by rank: three sorts, as they need no key of our own for each span.
        spans = sorted(self.spans, key=attrgetter("op.rank"))
        if spans and (last := spans[-1].rank) >= self.world_size:
            raise ValueError(f"a span is of rank {last}, but world_size={self.world_size}: "
                             f"the ranks are 0 to {self.world_size - 1}")
        spans.sort(key=attrgetter("end"), reverse=True)
        spans.sort(key=attrgetter("start"))
        object.__setattr__(self, "spans", tuple(spans))
        of: dict[int, list[Span]] = {rank: [] for rank in range(self.world_size)}
        for span in self.spans:
            of[span.op.rank].append(span)
        object.__setattr__(self, "_of", {rank: tuple(spans) for rank, spans in of.items()})

    def __repr__(self) -> str:
        # No times: the text of a trace in a notebook must be the same in every run.
        return f"Trace({self.source}, {self.world_size} ranks, {len(self.spans)} spans, {len(self.steps)} steps)"

    def of(self, rank: int, lane: str | None = None) -> Iterator[Span]:
        """The spans of one rank, and if `lane` is given of that lane only."""
        return (s for s in self._of.get(rank, ()) if lane is None or s.lane == lane)

    @property
    def steps(self) -> list[int]:
        """Numbers of the training steps that the trace holds."""
        return sorted({s.step for s in self.spans})

    @property
    def start(self) -> float:
        """First moment, in seconds."""
        return min((s.start for s in self.spans), default=0.0)

    @property
    def end(self) -> float:
        """Last moment, in seconds."""
        return max((s.end for s in self.spans), default=0.0)

    @property
    def makespan(self) -> float:
        """Seconds from the first moment to the last."""
        return self.end - self.start

    def only(self, *steps: int) -> "Trace":
        """The trace of these steps alone, its time axis starting at 0. Raises ValueError if it holds none of them."""
        spans = [s for s in self.spans if s.step in steps]
        if not spans:
            raise ValueError(f"the trace holds none of the steps {list(steps)}; it has {self.steps}")
        zero, last = min(s.start for s in spans), max(s.end for s in spans)
        return replace(
            self,
            spans=tuple(replace(s, start=s.start - zero, end=s.end - zero) for s in spans),
            counters=tuple(replace(c, time=c.time - zero) for c in self.counters if zero <= c.time <= last),
        )

    def plan(self, step: int) -> Plan:
        """What was done in one step, as a plan: each rank's operations in the order in which it issued them."""
        ops = [tuple(s.op for s in sorted(self.of(rank), key=lambda s: (s.place, s.start, s.end)) if s.step == step)
               for rank in range(self.world_size)]
        return Plan(name=f"recorded step {step}", ops=tuple(ops), mesh=Mesh(data=self.world_size))
