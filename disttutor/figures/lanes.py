"""Which boxes a lane of the timeline holds: where they lie, what stands in them, what a reader is told on hovering."""

from collections.abc import Iterable
from dataclasses import dataclass

from disttutor.figures.style import LOOKS, quantity
from disttutor.plans import COMM, Op
from disttutor.traces import Span, Trace

# Boxes narrower than this (pixels) cannot be told apart: neighbours of one kind are drawn as one.
_THIN = 0.7


@dataclass(slots=True)
class Box:
    """`x` and `width` in pixels from the lane's beginning; `words`: what could stand in it, longest first."""

    kind: str
    row: int
    x: float
    width: float
    words: tuple[str, ...] = ()
    title: str = ""


def rows_of(spans: Iterable[Span]) -> list[list[Span]]:
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


def rows_needed(spans: Iterable[Span]) -> int:
    """How many of the spans overlap at the busiest moment."""
    return len(rows_of(spans))


def boxes_of(trace: Trace, rank: int, lane: str, pixels_per_second: float, hoverable: bool) -> list[Box]:
    """The boxes of one lane of one rank, in order of time within each row."""
    boxes: list[Box] = []
    zero = trace.start
    many = many_microbatches(trace)
    for number, row in enumerate(rows_of(trace.of(rank, lane))):
        last: Box | None = None
        for span in row:
            x = (span.start - zero) * pixels_per_second
            width = span.duration * pixels_per_second
            if last and last.kind == span.kind and width < _THIN and last.x + last.width + _THIN > x:
                if last.width < 2:
                    last.title = hoverable * f"several times {span.kind}"
                last.width = max(last.width, x + width - last.x)
                continue
            words = labels(span.op, many) if width > 6 else ()      # nothing fits in less
            last = Box(span.kind, number, x, max(width, _THIN), words, tooltip(span) if hoverable else "")
            boxes.append(last)
    return boxes


def many_microbatches(trace: Trace) -> bool:
    """Whether the number of an operation's micro-batch says anything."""
    return len({s.op.microbatch for s in trace.spans if s.op.microbatch is not None}) > 1


def labels(op: Op, many_microbatches: bool) -> tuple[str, ...]:
    """What could stand in the box of `op`, longest first: `B3·1` is backward of micro-batch 3, bucket 1."""
    letters = LOOKS[op.kind].letters
    bucket = "" if op.bucket is None else f"·{op.bucket}"
    microbatch = str(op.microbatch) if op.microbatch is not None and many_microbatches else ""
    if op.lane == COMM:
        return tuple(dict.fromkeys(w for w in (letters + microbatch + bucket, microbatch + bucket) if w))
    return tuple(dict.fromkeys(w for w in (letters + microbatch + bucket, letters + microbatch, microbatch, letters)
                               if w))


def tooltip(span: Span) -> str:
    """Everything about one operation in a line."""
    words = [f"rank {span.rank}: {span.label}", quantity(span.duration, "s"), f"step {span.step}"]
    if span.nbytes:
        words.append(quantity(span.nbytes, "B"))
    return ", ".join(words)
