"""The lines of a timeline from each send to its receive, thinned out where there are too many to follow."""

from collections import defaultdict
from dataclasses import dataclass
from math import hypot

from disttutor.figures.content import Content
from disttutor.figures.style import INK
from disttutor.figures.svg import number
from disttutor.traces import Span
from disttutor.traces.arrows import pairs

APART = 16.0                # pixels between the lines of one pair of ranks; closer ones cannot be followed
MOST = 1500                 # lines in one picture
HEAD = 4.5                  # length of an arrow head


@dataclass(frozen=True, slots=True)
class Chosen:
    """The messages that get a line, of `all` that there are."""

    lines: list[tuple[Span, Span]]
    all: int

    @property
    def note(self) -> str:
        """What a reader must know of lines that are left away; nothing if none are."""
        if len(self.lines) == self.all:
            return ""
        if not self.lines:
            return f"The {self.all:,} messages are too many to be followed: their lines are left away."
        return f"Lines are drawn for {len(self.lines):,} of the {self.all:,} messages; more could not be told apart."


def choose(content: Content, pixels_per_second: float) -> Chosen:
    """For each pair of ranks its first message, its last, and those between that are far enough apart."""
    channels: dict[tuple[int, int], list[tuple[Span, Span]]] = defaultdict(list)
    for send, receive in pairs(content.trace):
        channels[send.rank, receive.rank].append((send, receive))
    kept, count = [], 0
    for messages in channels.values():
        messages.sort(key=lambda pair: (pair[1].end, pair[0].start))
        count += len(messages)
        last = messages[-1]
        free = -1.0
        for pair in messages:
            x = pair[1].end * pixels_per_second
            if pair is last or (free < 0 or x >= free) and (last[1].end * pixels_per_second - x >= APART):
                kept.append(pair)
                free = max(x + APART, 0.0)
    return Chosen(kept if len(kept) <= MOST else [], count)


def drawn(ends: list[tuple[float, float, float, float]]) -> list[str]:
    """Lines (x1, y1, x2, y2) with a small head at their second end, all in one path."""
    if not ends:
        return []
    shafts, heads = [], []
    for x1, y1, x2, y2 in ends:
        length = hypot(x2 - x1, y2 - y1) or 1.0
        ux, uy = (x2 - x1) / length * HEAD, (y2 - y1) / length * HEAD
        shafts.append(f"M{number(x1)} {number(y1)}L{number(x2 - ux)} {number(y2 - uy)}")
        heads.append(f"M{number(x2)} {number(y2)}l{number(-ux - uy * 0.4)} {number(-uy + ux * 0.4)}"
                     f"l{number(uy * 0.8)} {number(-ux * 0.8)}z")
    return [f'<path class="messages" d="{"".join(shafts)}" fill="none" stroke="{INK}" stroke-width="0.8" '
            f'stroke-opacity="0.6"/>', f'<path d="{"".join(heads)}" fill="{INK}" fill-opacity="0.75"/>']
