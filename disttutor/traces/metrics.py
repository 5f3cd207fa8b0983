"""What a trace says in numbers, computed here once. Times in seconds, sizes in bytes; shares between 0 and 1."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from disttutor.plans import COMM, COMPUTE, RECEIVES
from disttutor.traces.trace import Span, Trace

# What a ring really sends for each byte of the array, over n ranks (nccl-tests, doc/PERFORMANCE.md).
BUS_FACTOR = {"all_reduce": lambda n: 2 * (n - 1) / n, "reduce_scatter": lambda n: (n - 1) / n,
              "all_gather": lambda n: (n - 1) / n, "all_to_all": lambda n: (n - 1) / n,
              "broadcast": lambda n: 1.0, "reduce": lambda n: 1.0}


def merged(spans: Iterable[Span]) -> list[tuple[float, float]]:
    """The times that the spans cover, as disjoint intervals in order; what overlaps or nests counts once."""
    out: list[tuple[float, float]] = []
    for start, end in sorted((s.start, s.end) for s in spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Total length of disjoint intervals."""
    return sum(end - start for start, end in intervals)


def common(some: list[tuple[float, float]], others: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The times that two lists of disjoint intervals in order have in common."""
    out, i, j = [], 0, 0
    while i < len(some) and j < len(others):
        start, end = max(some[i][0], others[j][0]), min(some[i][1], others[j][1])
        if start < end:
            out.append((start, end))
        if some[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return out


def busy(trace: Trace, rank: int, lane: str | None = COMPUTE) -> float:
    """Seconds in which the rank did something on `lane` (None: on any)."""
    return covered(merged(trace.of(rank, lane)))


def idle(trace: Trace, rank: int) -> float:
    """Seconds of the whole trace in which the rank computed nothing."""
    return trace.makespan - busy(trace, rank)


def bubble_share(trace: Trace) -> float:
    """Idle compute time of all ranks as a share of the total: idle / (busy + idle). 0 for an empty trace."""
    total = trace.makespan * trace.world_size
    return sum(idle(trace, r) for r in range(trace.world_size)) / total if total else 0.0


def bubble_ratio(trace: Trace) -> float:
    """Idle compute time of all ranks as a ratio to the ideal: idle / busy. 0 for an empty trace."""
    work = sum(busy(trace, r) for r in range(trace.world_size))
    return sum(idle(trace, r) for r in range(trace.world_size)) / work if work else 0.0


def hidden_communication(trace: Trace, rank: int) -> float:
    """Share of the rank's communication time during which it also computed; 0 if that took no time."""
    comm = merged(trace.of(rank, COMM))
    total = covered(comm)
    return covered(common(comm, merged(trace.of(rank, COMPUTE)))) / total if total else 0.0


def bytes_entered(trace: Trace, rank: int) -> int:
    """Bytes that the rank put into collectives and sends (a collective counts its whole array once)."""
    return sum(s.nbytes for s in trace.of(rank, COMM) if s.kind not in RECEIVES)


def ring_bytes_sent(trace: Trace, rank: int) -> float:
    """Bytes that the rank sends if each of its collectives goes over a ring, and each send as it is."""
    return sum(s.nbytes * (BUS_FACTOR[s.kind](len(s.group)) if s.kind in BUS_FACTOR else 1.0)
               for s in trace.of(rank, COMM) if s.kind not in RECEIVES)


def operations(trace: Trace, rank: int, kind: str) -> int:
    """How many operations of this kind the rank did."""
    return sum(s.kind == kind for s in trace.of(rank))


def peak(trace: Trace, rank: int, name: str) -> float:
    """Largest value of a counter of the rank; 0 if it was never set."""
    return max((c.value for c in trace.counters if c.rank == rank and c.name == name), default=0.0)


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Of one collective: `algorithm` = array bytes / time; `bus` = that times what a ring sends per byte. Bytes/s."""

    seconds: float
    algorithm: float
    bus: float


def bandwidth(spans: Iterable[Span]) -> Bandwidth:
    """Bandwidth of one collective from its spans on all ranks, timed from its last entry to its last end.

    Raises ValueError if the spans are not of one collective.
    """
    spans = list(spans)
    if len({(s.kind, s.group, s.op.subject, s.step) for s in spans}) != 1 or spans[0].kind not in BUS_FACTOR:
        raise ValueError("bandwidth needs the spans of one collective, one for each rank, not "
                         f"{sorted({s.label for s in spans})}")
    seconds = max(s.end for s in spans) - max(s.start for s in spans)
    algorithm = spans[0].nbytes / seconds if seconds > 0 else inf
    return Bandwidth(seconds, algorithm, algorithm * BUS_FACTOR[spans[0].kind](len(spans[0].group)))
