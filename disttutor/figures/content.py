"""What a trace holds, sorted once for drawing: operations by rank and track, their stages, the numbers beside them."""

from collections import defaultdict
from dataclasses import dataclass, replace

from disttutor.figures.style import LOOKS
from disttutor.traces import Span, Trace, bubble_ratio, bubble_share, busy, bytes_entered, hidden_communication
from disttutor.traces.activations import in_flight
from disttutor.traces.arrows import TRACKS, track
from disttutor.traces.metrics import merged

PIPELINE_KINDS = ("forward", "backward", "backward_weight")


@dataclass(frozen=True, slots=True)
class Held:
    """The activations that a rank holds: pairs (seconds, count), and the largest count."""

    points: list[tuple[float, int]]

    @property
    def peak(self) -> int:
        return max((count for _, count in self.points), default=0)


class Content:
    """One trace, sorted. rows[rank, track]: its operations in rows in which none overlap. depth[track]: the most rows
    that any rank needs, so that all ranks can be drawn alike."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.start, self.makespan = trace.start, trace.makespan
        self.ranks = range(trace.world_size)
        spans: dict[tuple[int, str], list[Span]] = defaultdict(list)
        for span in trace.spans:
            spans[span.rank, track(span.op)].append(span)
        self.rows = {where: rows_of(some) for where, some in spans.items()}
        self.depth = {name: max(len(self.rows.get((rank, name), ())) for rank in self.ranks) for name in TRACKS}
        present = {span.kind for span in trace.spans}
        self.kinds = [kind for kind in LOOKS if kind in present]
        numbers = {span.op.microbatch for span in trace.spans} - {None}
        self.many_microbatches = len(numbers) > 1
        self._stages(trace)
        self._numbers(trace, spans)

    def _stages(self, trace: Trace) -> None:
        """Which stages each rank computes; the first of a rank is its nearest to the input."""
        stages: dict[int, set[int]] = defaultdict(set)
        for span in trace.spans:
            if span.op.stage is not None and span.kind in PIPELINE_KINDS:
                stages[span.rank].add(span.op.stage)
        self.pipeline = len(set().union(*stages.values())) > 1
        self._place = {(rank, stage): n for rank, some in stages.items() for n, stage in enumerate(sorted(some))}
        self.stages_a_rank = max(map(len, stages.values()), default=0)

    def _numbers(self, trace: Trace, spans: dict[tuple[int, str], list[Span]]) -> None:
        self.sent = {rank: bytes_entered(trace, rank) for rank in self.ranks}
        self.busy = {rank: busy(trace, rank) for rank in self.ranks}
        self.hidden = {rank: hidden_communication(trace, rank) if self._communicates(rank) else None
                       for rank in self.ranks}
        self.held = {rank: Held(in_flight(trace, rank)) for rank in self.ranks}
        self.computes = self.depth["compute"] > 0
        self.collectives = self.depth["communication"] > 0
        self.bubble_share, self.bubble_ratio = (measure(self._lean(spans)) for measure in (bubble_share, bubble_ratio))

    def _communicates(self, rank: int) -> bool:
        return any((rank, name) in self.rows for name in TRACKS[1:])

    def _lean(self, spans: dict[tuple[int, str], list[Span]]) -> Trace:
        """The trace with as few operations as have the same idle time."""
        few = [replace(spans[rank, "compute"][0], start=start, end=end) for rank in self.ranks
               for start, end in merged(spans[rank, "compute"])]
        ends = (self.trace.spans[0], max(self.trace.spans, key=lambda s: s.end))
        return replace(self.trace, spans=(*few, *(s for s in ends if s.lane != "compute")), counters=())

    def place(self, span: Span) -> int:
        """The how-manieth of its rank's stages the operation works on; 0 for the first, and where there are none."""
        return self._place.get((span.rank, span.op.stage), 0)

    def idle_share(self, rank: int) -> float:
        """Share of the whole time in which the rank computes nothing."""
        return 1 - self.busy[rank] / self.makespan if self.makespan else 0.0


def rows_of(spans: list[Span]) -> list[list[Span]]:
    """The spans in as few rows as it takes for none of a row to overlap; earlier and longer ones further up."""
    rows: list[list[Span]] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        # A nanosecond of overlap is rounding, not two things at once.
        row = next((r for r in rows if r[-1].end <= span.start + 1e-9), None)
        if row is None:
            rows.append([span])
        else:
            row.append(span)
    return rows
