"""One trace of a timeline: its headline, its ranks with their tracks, and its time axis."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from disttutor.figures.content import Content
from disttutor.figures.held import curve
from disttutor.figures.lanes import Box, look_of
from disttutor.figures.message_lines import drawn
from disttutor.figures.style import GRID, INK, MUTED, outline, quantity, text_on, ticks
from disttutor.figures.svg import escape, line, number, rect, text, text_width
from disttutor.figures.timeline_words import headline
from disttutor.traces import Span
from disttutor.traces.arrows import TRACKS

EDGE = 14                                   # free space along the panel's border
COMPUTE_HEIGHT, COMM_HEIGHT = 24, 11        # of the compute track; of one of the rows in the strip below it
HELD_HEIGHT = 18                            # of the curve of activations
RANK_GAP = 10
SIZE, SMALL = 11, 9.5                       # of text
OUTLINED = 3                                # narrower boxes would be little but their outline
LEFT = 122                                  # where the time axis begins


@dataclass(frozen=True)
class Scale:
    """Seconds to pixels, shared by all panels."""

    seconds: float
    left: float
    right: float

    def width(self, seconds: float) -> float:
        return seconds / self.seconds * (self.right - self.left)

    def x(self, seconds: float) -> float:
        return self.left + self.width(seconds)


class Columns:
    """The numbers at the right, the same in all panels. names: of the columns, to their widths in pixels."""

    def __init__(self, contents: list[Content]):
        self.names: dict[str, int] = {}
        if any(c.computes for c in contents):
            self.names |= {"computes": 62, "idle": 44}
        else:
            self.names |= {"sent": 66}
        # A receive's time is waiting as well as communication, so beside one no share would mean much.
        self.hidden = any(c.collectives for c in contents) and not any(c.depth["receives"] for c in contents)
        if self.hidden and "computes" in self.names:
            self.names |= {"hidden": 56}
        self.width = sum(self.names.values())

    def numbers(self, content: Content, rank: int) -> list[str]:
        """What stands in the columns beside a rank."""
        hidden = content.hidden[rank]
        words = {"computes": quantity(content.busy[rank], "s"), "idle": f"{content.idle_share(rank):.0%}",
                 "hidden": "–" if hidden is None else f"{hidden:.0%}"}
        if "sent" in self.names:
            words["sent"] = quantity(content.sent[rank], "B")
        return [words[name] for name in self.names]


class Panel:
    """One trace, drawn from `top` on; `bottom` is where it ends.

    stages: the most that a rank of any trace has. highest: the top of the curves of activations, 0 for none. thin: what
    is closer than this is drawn as one.
    """

    def __init__(self, content: Content, title: str, scale: Scale, columns: Columns, width: int, top: float, *,
                 boxes: dict[tuple[int, str], list[Box]], messages: list[tuple[Span, Span]], stages: int, highest: int,
                 thin: float, numbered: bool):
        self.content, self.scale, self.columns, self.boxes = content, scale, columns, boxes
        self.messages, self.stages, self.highest = messages, stages, highest
        self.thin, self.numbered = thin, numbered
        self.head, y = headline(content, title, width, top)
        self.lanes_top = y + (37 if numbered or columns.hidden else 28)
        self._heights()
        self.lanes_bottom = (self.lanes_top + len(content.ranks) * (self.rank_height + RANK_GAP) - RANK_GAP)
        self.bottom = self.lanes_bottom + 34

    def _heights(self) -> None:
        """Where a rank's tracks lie, counted from its top, and how high a row of each is."""
        depth = self.content.depth
        self.strip_rows = sum(depth[track] for track in TRACKS[1:])
        row = COMM_HEIGHT if self.strip_rows <= 3 else max(4.0, 3 * COMM_HEIGHT / self.strip_rows)
        self.row = {"compute": COMPUTE_HEIGHT / max(1, depth["compute"]), **dict.fromkeys(TRACKS[1:], row)}
        self.at = {"compute": 0.0}
        y = self.strip_top = COMPUTE_HEIGHT + 2.0 if self.content.computes else 0.0
        for track in TRACKS[1:]:
            self.at[track] = y
            y += depth[track] * row
        self.strip_height = y - self.strip_top
        self.held_bottom = y + 3 + HELD_HEIGHT
        self.rank_height = self.held_bottom if self.highest else y if self.strip_rows else float(COMPUTE_HEIGHT)

    def parts(self) -> Iterable[str]:
        """The drawing, from the ground to what lies on top: lines cross boxes, and nothing crosses words."""
        yield from self.head
        yield from self._axis()
        yield from self._column_heads()
        tops = [self.lanes_top + rank * (self.rank_height + RANK_GAP) for rank in self.content.ranks]
        for rank, y in zip(self.content.ranks, tops, strict=True):
            yield from self._ground(rank, y)
        yield from self._fills(tops)
        yield from self._lines(tops)
        yield from self._words(tops)
        yield from self._steps()

    def _ground(self, rank: int, y: float) -> Iterable[str]:
        content, depth, long = self.content, self.content.depth, self.scale.width(self.content.makespan)
        yield text(EDGE, y + 16 if content.computes else y + 10, f"rank {rank}", size=12, bold=True)
        if content.computes:
            yield self._name(y + 12, "compute")
            yield rect(LEFT, y, long, COMPUTE_HEIGHT, fill="url(#idle)", title=f"rank {rank} computes nothing here")
        if self.strip_rows:
            top = y + self.strip_top
            yield rect(LEFT, top, long, self.strip_height, fill="#f3f4f6")
            shown = [track for track in TRACKS[1:] if depth[track]]
            if self.row["sends"] < 9 and len(shown) > 1:
                yield self._name(top + self.strip_height / 2, "communication")
            else:
                for track in shown:
                    yield self._name(y + self.at[track] + depth[track] * self.row[track] / 2, track)
        if self.highest:
            yield from self._held(rank, y + self.held_bottom)
        right = self.scale.right
        for width, words in zip(self.columns.names.values(), self.columns.numbers(content, rank), strict=True):
            right += width
            yield text(right, y + 16 if content.computes else y + 10, words, size=SIZE, anchor="end")

    def _name(self, middle: float, words: str) -> str:
        return text(LEFT - 6, middle + 3.5, words, size=SMALL, fill=MUTED, anchor="end")

    def _held(self, rank: int, bottom: float) -> Iterable[str]:
        held, zero = self.content.held[rank], self.content.start
        yield self._name(bottom - HELD_HEIGHT / 2, "activations")
        long = self.scale.width(self.content.makespan)
        yield line(LEFT, bottom, LEFT + long, bottom, stroke=GRID)
        if held.points:
            yield curve([(self.scale.width(time - zero), count) for time, count in held.points], long, LEFT, bottom,
                        HELD_HEIGHT - 1, self.highest, max(0.5, self.thin / 2))
        yield text(self.scale.right + 6, bottom - HELD_HEIGHT / 2 + 4, f"peak {held.peak}", size=SIZE)

    def _places(self, tops: list[float]) -> Iterable[tuple[Box, float, float]]:
        """Every box with its top and its height."""
        for (rank, track), boxes in self.boxes.items():
            height = self.row[track]
            for box in boxes:
                yield box, tops[rank] + self.at[track] + box.row * height, height

    def _fills(self, tops: list[float]) -> Iterable[str]:
        """Boxes of one fill in one group, so that it is written once; those without a tooltip in one path."""
        hoverable: dict[str, list[str]] = defaultdict(list)
        plain: dict[str, list[str]] = defaultdict(list)
        narrow: dict[str, list[str]] = defaultdict(list)
        for box, y, height in self._places(tops):
            if box.title:
                own = "" if box.width >= OUTLINED else look_of(box.fill, self.stages).colour
                hoverable[box.fill].append(rect(LEFT + box.x, y + 0.5, box.width, height - 1, stroke=own,
                                                title=box.title))
            else:
                x, wide = number(LEFT + box.x), number(box.width)
                (plain if box.width >= OUTLINED else narrow)[box.fill].append(
                    f"M{x} {number(y + 0.5)}h{wide}v{number(height - 1)}h-{wide}z")
        for fill in dict.fromkeys([*hoverable, *plain, *narrow]):
            paths = (f'<path d="{"".join(narrow[fill])}" stroke="none"/>' if narrow[fill] else "",
                     f'<path d="{"".join(plain[fill])}"/>' if plain[fill] else "")
            yield (f'<g fill="url(#{fill})" stroke="{outline(look_of(fill, self.stages).colour)}" stroke-width="0.6">'
                   f'{"".join(hoverable[fill])}{"".join(paths)}</g>')

    def _lines(self, tops: list[float]) -> Iterable[str]:
        row = {id(span): n for (_, track), rows in self.content.rows.items() if track in ("sends", "receives")
               for n, some in enumerate(rows) for span in some}

        def middle(span: Span, track: str) -> float:
            return tops[span.rank] + self.at[track] + (row[id(span)] + 0.5) * self.row[track]

        zero = self.content.start
        yield from drawn([(self.scale.x(send.start - zero), middle(send, "sends"),
                           self.scale.x(receive.end - zero), middle(receive, "receives"))
                          for send, receive in self.messages])

    def _words(self, tops: list[float]) -> Iterable[str]:
        """What stands in the boxes, as far as there is room; under it a quiet ground where they have a pattern."""
        grounds: dict[str, list[str]] = defaultdict(list)
        letters: dict[tuple[float, str], list[str]] = defaultdict(list)
        for box, y, height in self._places(tops):
            size = SIZE if height >= 15 else 8.5
            words = next((w for w in box.words if text_width(w, size) + 3 <= box.width), "") if height >= 9.5 else ""
            if not words:
                continue
            look, middle = look_of(box.fill, self.stages), LEFT + box.x + box.width / 2
            if look.pattern != "plain":
                w = text_width(words, size) + 2
                grounds[look.colour].append(rect(middle - w / 2, y + height / 2 - size / 2 - 0.5, w, size + 1, rx=2))
            letters[size, text_on(look.colour)].append(
                f'<text x="{number(middle)}" y="{number(y + height / 2 + size * 0.36)}">{escape(words)}</text>')
        for colour, rects in grounds.items():
            yield f'<g fill="{colour}">{"".join(rects)}</g>'
        for (size, ink), some in letters.items():
            yield f'<g font-size="{number(size)}" fill="{ink}" text-anchor="middle">{"".join(some)}</g>'

    def _column_heads(self) -> Iterable[str]:
        right = self.scale.right
        for name, width in self.columns.names.items():
            right += width
            yield text(right, self.lanes_top - 8, name, size=SMALL, fill=MUTED, anchor="end")
        if "hidden" in self.columns.names:
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
        starts: dict[int, float] = {}
        for span in self.content.trace.spans:
            starts[span.step] = min(starts.get(span.step, span.start), span.start)
        starts = dict(sorted(starts.items()))
        edges = [self.scale.x(start - self.content.start) for start in starts.values()]
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


def _unit(seconds: float) -> tuple[float, str]:
    """The unit of the axis, in seconds and as a word."""
    return (1.0, "s") if seconds >= 10 else (1e-3, "ms") if seconds >= 1e-3 else (1e-6, "µs")
