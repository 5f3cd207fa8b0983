"""Which boxes a track of the timeline holds: where they lie, what stands in them, what a reader is told on hovering."""

from dataclasses import dataclass

from disttutor.figures.content import Content
from disttutor.figures.moments import numbers
from disttutor.figures.style import LOOKS, SEVERAL, Look, mix, quantity
from disttutor.plans import COMM, Op
from disttutor.traces import Span

THIN = 0.7                  # boxes narrower than this (pixels) cannot be told apart
_SEVERAL = "several"


@dataclass(slots=True)
class Box:
    """`x` and `width` in pixels from the track's beginning; `words`: what could stand in it, longest first.

    fill: the name of its look, see `look_of`. operations: how many are drawn as this one.
    """

    fill: str
    row: int
    x: float
    width: float
    words: tuple[str, ...] = ()
    title: str = ""
    operations: int = 1


def boxes_of(content: Content, rank: int, track: str, pixels_per_second: float, *, thin: float = THIN,
             hoverable: bool = True) -> list[Box]:
    """The boxes of one track of one rank, in order of time within each row.

    What is narrower than `thin` pixels is drawn as one with its neighbours, of whatever kind they are.
    """
    boxes: list[Box] = []
    for number, row in enumerate(content.rows.get((rank, track), ())):
        last: Box | None = None
        for span in row:
            x = (span.start - content.start) * pixels_per_second
            width = span.duration * pixels_per_second
            fill = fill_of(span.kind, content.place(span))
            if last and width < thin and last.x + last.width + thin > x and (
                    last.operations > 1 and last.fill in (fill, _SEVERAL) or last.width <= thin):
                if last.fill != fill:
                    last.fill = _SEVERAL
                last.words = ()
                last.title = hoverable * (f"several times {span.kind}" if last.fill == fill else "several operations")
                last.width = max(last.width, x + width - last.x)
                last.operations += 1
                continue
            words = labels(span.op, content.many_microbatches) if width > 6 else ()     # nothing fits in less
            last = Box(fill, number, x, max(width, THIN), words, tooltip(span) if hoverable else "")
            boxes.append(last)
    return boxes


def fill_of(kind: str, place: int) -> str:
    """The name under which the look of a kind is defined, for the how-manieth of its rank's stages."""
    return f"{kind}-{place}" if place else kind


def look_of(fill: str, stages: int) -> Look:
    """How boxes of that fill look, where a rank has up to `stages` stages: the later the stage, the lighter."""
    if fill == _SEVERAL:
        return SEVERAL
    kind, _, place = fill.partition("-")
    look = LOOKS[kind]
    if not place:
        return look
    return Look(look.word, look.letters, mix(look.colour, "#ffffff", 0.15 + 0.6 * int(place) / (stages - 1)),
                look.pattern)


def labels(op: Op, many_microbatches: bool) -> tuple[str, ...]:
    """What could stand in the box of `op`, longest first: `B3·1` is backward of micro-batch 3, bucket 1, and `S 4–7`
    a send of four chunks."""
    letters = LOOKS[op.kind].letters
    bucket = "" if op.bucket is None else f"·{op.bucket}"
    microbatch = str(op.microbatch) if op.microbatch is not None and many_microbatches else ""
    if op.chunks:
        return (f"{letters} {numbers(op.chunks)}", letters)
    if op.lane == COMM:
        return tuple(dict.fromkeys(w for w in (letters + microbatch + bucket, microbatch + bucket) if w))
    # A letter alone would be read as a box without a number, beside others that have one.
    return tuple(dict.fromkeys(w for w in (letters + microbatch + bucket, letters + microbatch, microbatch or letters)))


def tooltip(span: Span) -> str:
    """Everything about one operation in a line."""
    words = [f"rank {span.rank}: {span.label}", quantity(span.duration, "s"), f"step {span.step}"]
    if span.nbytes:
        words.append(quantity(span.nbytes, "B"))
    return ", ".join(words)
