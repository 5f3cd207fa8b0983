"""The timeline: what each rank computed and sent, when, and where it waited.

Each rank has two lanes on one time axis: computing above, communication below it. What is hatched grey in the upper
lane is time in which the rank computes nothing, so the bubble is seen as an area.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from disttutor.figures.lanes import Box, boxes_of, many_microbatches, rows_needed
from disttutor.figures.style import GRID, IDLE, IDLE_LINE, INK, LOOKS, MUTED, listing, mix, quantity, text_on, ticks
from disttutor.figures.svg import Svg, drawing, line, number, pattern, rect, text, text_width, wrap
from disttutor.plans import COMM, COMPUTE
from disttutor.traces import Trace, bubble_share, busy, hidden_communication, idle

EDGE = 14                                   # free space along the panel's border
COMPUTE_HEIGHT, COMM_HEIGHT = 24, 11        # of a lane; of one of the rows in the communication lane
RANK_GAP = 10
SIZE, SMALL = 11, 9.5                       # of text
LEFT = 122                                  # where the time axis begins
COLUMNS = (("computes", 62), ("idle", 44), ("hidden", 56))
HOVERABLE = 1500                            # with more boxes than this, their tooltips would be most of the file


def timeline(trace: Trace, *, steps: int | Iterable[int] | None = None, title: str | None = None,
             width: int = 1000) -> Svg:
    """The timeline of `trace`, or of some of its steps, `width` pixels wide.

    Raises ValueError for a trace without spans, for steps that it does not hold, and below 500 pixels.
    """
    return compare([trace], [title or "What each rank does"], steps=steps, width=width)


def compare(traces: Sequence[Trace], titles: Sequence[str], *, steps: int | Iterable[int] | None = None,
            width: int = 1000) -> Svg:
    """Several timelines below one another on one time scale: three ways to do the same, or measured over predicted.

    Raises ValueError as `timeline` does, and if there is not one title for each trace.
    """
    traces = list(traces)
    if len(traces) != len(titles) or not traces:
        raise ValueError(f"compare needs one title for each trace, and at least one; given are {len(traces)} traces "
                         f"and {len(titles)} titles")
    if width < 500:
        raise ValueError(f"a timeline {width} pixels wide has no room for its numbers; use 500 or more")
    if steps is not None:
        wanted = [steps] if isinstance(steps, int) else list(steps)
        traces = [t.only(*wanted) for t in traces]
    for trace, name in zip(traces, titles, strict=True):
        if not trace.spans:
            raise ValueError(f"the trace {name!r} holds no operations to draw; was it recorded (record=True)?")
    numbered = steps is not None or any(len(t.steps) > 1 for t in traces)
    scale = _Scale(max(t.makespan for t in traces) or 1e-9, LEFT, width - EDGE - sum(w for _, w in COLUMNS))
    parts: list[str] = []
    y = float(EDGE)
    for trace, name in zip(traces, titles, strict=True):
        panel = _Panel(trace, name, scale, width, y, numbered)
        parts += panel.parts()
        y = panel.bottom + 14
    legend, y = _legend(traces, width, y - 6)
    parts += legend
    return drawing(parts, width, y + EDGE - 4, alt=" ".join(map(_alt, traces, titles)),
                   plain="; ".join(map(_plain, traces, titles)) + ".", definitions=_definitions(traces))


@dataclass(frozen=True)
class _Scale:
    """Seconds to pixels, shared by all panels."""

    seconds: float
    left: float
    right: float

    def width(self, seconds: float) -> float:
        return seconds / self.seconds * (self.right - self.left)

    def x(self, seconds: float) -> float:
        return self.left + self.width(seconds)


class _Panel:
    """One trace with its headline, its ranks, and its time axis."""

    def __init__(self, trace: Trace, title: str, scale: _Scale, width: int, top: float, numbered: bool):
        self.trace, self.scale, self.width, self.numbered = trace, scale, width, numbered
        self.head, y = _headline(trace, title, width, top)
        # The rows that overlapping operations need, equal for all ranks so that lanes keep a rhythm.
        self.compute_rows = max(rows_needed(trace.of(r, COMPUTE)) for r in range(trace.world_size))
        self.comm_rows = max(rows_needed(trace.of(r, COMM)) for r in range(trace.world_size))
        self.comm_row = COMM_HEIGHT if self.comm_rows <= 3 else max(4.0, 3 * COMM_HEIGHT / self.comm_rows)
        self.lanes_top = y + 37
        self.rank_height = COMPUTE_HEIGHT + (2 + self.comm_rows * self.comm_row if self.comm_rows else 0)
        self.lanes_bottom = self.lanes_top + trace.world_size * (self.rank_height + RANK_GAP) - RANK_GAP
        self.bottom = self.lanes_bottom + 34

    def parts(self) -> Iterable[str]:
        yield from self.head
        yield from self._axis()
        yield from self._column_heads()
        for rank in range(self.trace.world_size):
            yield from self._rank(rank, self.lanes_top + rank * (self.rank_height + RANK_GAP))
        yield from self._steps()

    def _rank(self, rank: int, y: float) -> Iterable[str]:
        trace, scale = self.trace, self.scale
        comm_y, comm_height = y + COMPUTE_HEIGHT + 2, self.comm_rows * self.comm_row
        yield text(EDGE, y + 16, f"rank {rank}", size=12, bold=True)
        yield text(LEFT - 6, y + 15.5, "compute", size=SMALL, fill=MUTED, anchor="end")
        yield rect(LEFT, y, scale.width(trace.makespan), COMPUTE_HEIGHT, fill="url(#idle)",
                   title=f"rank {rank} computes nothing here")
        if self.comm_rows:
            yield text(LEFT - 6, comm_y + comm_height / 2 + 3.5, "communication", size=SMALL, fill=MUTED, anchor="end")
            yield rect(LEFT, comm_y, scale.width(trace.makespan), comm_height, fill="#f3f4f6")
        yield from self._boxes(rank, COMPUTE, y, COMPUTE_HEIGHT / max(1, self.compute_rows))
        yield from self._boxes(rank, COMM, comm_y, self.comm_row)
        yield from self._numbers(rank, y + 16)

    def _boxes(self, rank: int, lane: str, y: float, height: float) -> Iterable[str]:
        """All boxes of a lane, those of a kind in one group so that the fill is written once."""
        boxes = boxes_of(self.trace, rank, lane, self.scale.width(1.0), len(self.trace.spans) <= HOVERABLE)
        for kind in dict.fromkeys(box.kind for box in boxes):
            yield f'<g fill="url(#{kind})" stroke="{_outline(kind)}" stroke-width="0.6">'
            for box in boxes:
                if box.kind == kind:
                    yield rect(LEFT + box.x, y + box.row * height + 0.5, box.width, height - 1, title=box.title)
            yield "</g>"
        for box in boxes:
            yield from self._words(box, y + box.row * height, height)

    def _words(self, box: Box, y: float, height: float) -> Iterable[str]:
        size = SIZE if height >= 15 else 8.5
        words = next((w for w in box.words if text_width(w, size) + 3 <= box.width), "") if height >= 9.5 else ""
        if words:
            look = LOOKS[box.kind]
            middle = LEFT + box.x + box.width / 2
            if look.pattern != "plain":       # a quiet ground, so that the pattern does not run through the letters
                w = text_width(words, size) + 2
                yield rect(middle - w / 2, y + height / 2 - size / 2 - 0.5, w, size + 1, fill=look.colour, rx=2)
            yield text(middle, y + height / 2 + size * 0.36, words, size=size, fill=text_on(look.colour),
                       anchor="middle")

    def _numbers(self, rank: int, y: float) -> Iterable[str]:
        trace = self.trace
        share = idle(trace, rank) / trace.makespan if trace.makespan else 0.0
        hidden = f"{hidden_communication(trace, rank):.0%}" if any(trace.of(rank, COMM)) else "–"
        right = self.scale.right
        for (_, width), words in zip(COLUMNS, (quantity(busy(trace, rank), "s"), f"{share:.0%}", hidden), strict=True):
            right += width
            yield text(right, y, words, size=SIZE, anchor="end")

    def _column_heads(self) -> Iterable[str]:
        right = self.scale.right
        for name, width in COLUMNS:
            right += width
            yield text(right, self.lanes_top - 8, name, size=SMALL, fill=MUTED, anchor="end")
        yield text(right, self.lanes_top - 19, "communication", size=SMALL, fill=MUTED, anchor="end")

    def _axis(self) -> Iterable[str]:
        seconds, unit = _unit(self.scale.seconds)
        y = self.lanes_bottom + 6
        yield line(LEFT, y, self.scale.right, y, stroke=MUTED)
        values = ticks(self.scale.seconds / seconds, about=max(3, int((self.scale.right - LEFT) / 90)))
        for value in values:
            x = self.scale.x(value * seconds)
            yield line(x, self.lanes_top - 4, x, y + 4, stroke=GRID)
            words = f"{value:g}" + (f" {unit}" if value == values[-1] else "")
            yield text(x, y + 16, words, size=SIZE, fill=MUTED, anchor="middle")

    def _steps(self) -> Iterable[str]:
        """A thin line where the first rank begins each step, with the step's number as far as there is room."""
        if not self.numbered:
            return
        starts = {n: min(s.start for s in self.trace.spans if s.step == n) for n in self.trace.steps}
        zero = self.trace.start
        edges = [self.scale.x(start - zero) for start in starts.values()]
        room = min((b - a for a, b in zip(edges, edges[1:], strict=False)), default=self.scale.right - LEFT)
        words = "step {}" if room >= text_width(f"step {max(starts)}", SIZE) + 10 else "{}"
        free = 0.0
        for step, x in zip(starts, edges, strict=True):
            name = words.format(step)
            named = x >= free
            yield line(x, self.lanes_top - (18 if named else 4), x, self.lanes_bottom + 6, stroke=INK, width=0.8)
            if named:
                yield text(x + 4, self.lanes_top - 9, name, size=SIZE)
                free = x + 8 + text_width(name, SIZE)


def _headline(trace: Trace, title: str, width: int, y: float) -> tuple[list[str], float]:
    """The title, what the whole costs, and where the picture comes from; and the height at which they end."""
    source = trace.source + (f": {trace.note}" if trace.note else "")
    sums = f"{quantity(trace.makespan, 's')} in all; idle {bubble_share(trace):.0%} of the ranks' time"
    room = width - 2 * EDGE
    parts = []
    for words in wrap(title, room, 14, bold=True):
        y += 18
        parts.append(text(EDGE, y - 4, words, size=14, bold=True))
    # The source stands in the corner, beside the title or else beside the sums, if there is room; else on its own.
    corner = text_width(source, SIZE) + 24
    if text_width(title, 14, bold=True) + corner <= room:
        parts.append(text(width - EDGE, y - 4, source, size=SIZE, fill=MUTED, anchor="end"))
    elif text_width(sums, SIZE) + corner <= room:
        parts.append(text(width - EDGE, y + 14, source, size=SIZE, fill=MUTED, anchor="end"))
    else:
        for words in wrap(source, room, SIZE):
            y += 14
            parts.append(text(EDGE, y, words, size=SIZE, fill=MUTED))
    y += 14
    parts.append(text(EDGE, y, sums, size=SIZE, fill=MUTED))
    return parts, y


def _kinds(traces: Sequence[Trace]) -> list[str]:
    """The kinds that are there, in the order in which they are explained."""
    present = {s.kind for t in traces for s in t.spans}
    return [kind for kind in LOOKS if kind in present]


def _legend(traces: Sequence[Trace], width: int, y: float) -> tuple[list[str], float]:
    """What colours and numbers mean, in as many lines as it takes; and the height at which it ends."""
    items = [(kind, f"{LOOKS[kind].word} ({LOOKS[kind].letters})") for kind in _kinds(traces)]
    parts, x = [], float(EDGE)
    y += 12
    for name, words in [*items, ("idle", "computes nothing")]:
        needs = 18 + text_width(words, SIZE)
        if x > EDGE and x + needs > width - EDGE:
            x, y = float(EDGE), y + 18
        parts.append(rect(x, y - 10, 13, 12, fill=f"url(#{name})", stroke=_outline(name)))
        parts.append(text(x + 18, y, words, size=SIZE))
        x += needs + 16
    for words in wrap(" ".join(_notes(traces)), width - 2 * EDGE, SMALL):
        y += 14
        parts.append(text(EDGE, y, words, size=SMALL, fill=MUTED))
    return parts, y


def _notes(traces: Sequence[Trace]) -> list[str]:
    notes = ["Number in a box: micro-batch."] if any(map(many_microbatches, traces)) else []
    if any(s.op.bucket is not None for t in traces for s in t.spans):
        notes.append("Number after a dot: bucket.")
    if any(s.lane == COMM for t in traces for s in t.spans):
        notes.append("Hidden: share of the communication time in which the rank also computes.")
    return notes


def _definitions(traces: Sequence[Trace]) -> str:
    fills = [pattern("idle", IDLE, IDLE_LINE, "rising")]
    for kind in _kinds(traces):
        look = LOOKS[kind]
        fills.append(pattern(kind, look.colour, mix(look.colour, text_on(look.colour), 0.28), look.pattern))
    return "".join(fills)


def _outline(kind: str) -> str:
    return mix(LOOKS[kind].colour, INK, 0.45) if kind in LOOKS else IDLE_LINE


def _unit(seconds: float) -> tuple[float, str]:
    """The unit of the axis, in seconds and as a word."""
    return (1.0, "s") if seconds >= 10 else (1e-3, "ms") if seconds >= 1e-3 else (1e-6, "µs")


def _alt(trace: Trace, title: str) -> str:
    source = trace.source + (f" ({trace.note})" if trace.note else "")
    ranks = []
    for rank in range(trace.world_size):
        share = idle(trace, rank) / trace.makespan if trace.makespan else 0.0
        words = f"rank {rank} computes {quantity(busy(trace, rank), 's')} and is idle {share:.0%}"
        if any(trace.of(rank, COMM)):
            words += f", with {hidden_communication(trace, rank):.0%} of its communication hidden"
        ranks.append(words)
    return (f"Timeline, {title}: {_count(trace.world_size, 'rank')}, {_count(len(trace.steps), 'step')}, "
            f"{quantity(trace.makespan, 's')} in all, {source}; {'; '.join(ranks)}.")


def _plain(trace: Trace, title: str) -> str:
    kinds = listing([LOOKS[kind].word for kind in _kinds([trace])])
    return (f"Timeline, {title}: {_count(trace.world_size, 'rank')}, {_count(len(trace.steps), 'step')}, {kinds}, "
            f"{trace.source}")


def _count(n: int, what: str) -> str:
    return f"{number(n)} {what}{'s' if n != 1 else ''}"
