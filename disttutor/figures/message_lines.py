"""The lines of a timeline from each send to its receive, thinned out where there are too many to follow."""

from collections import defaultdict
from dataclasses import dataclass
from math import hypot

from disttutor.figures.content import Content
from disttutor.figures.style import INK
from disttutor.figures.svg import number
from disttutor.traces import Span
from disttutor.traces.arrows import pairs

FEW = 130                   # lines that are drawn however near they are
APART = 16.0                # pixels between the lines of one pair of ranks; closer ones cannot be followed
MOST = 1500                 # lines in one picture
HEAD = 4.5                  # length of an arrow head


@dataclass(frozen=True, slots=True)
class Chosen:
    """The messages that get a line, of `all` that there are."""

    lines: list[tuple[Span, Span]]
    all: int


def note(chosen: list[Chosen]) -> str:
    """What a reader must know of lines that are left away; nothing if none are."""
    drawn, there = sum(len(some.lines) for some in chosen), sum(some.all for some in chosen)
    if drawn == there:
        return ""
    if not drawn:
        return f"The {there:,} messages are too many to be followed: their lines are left away."
    return f"Lines are drawn for {drawn:,} of the {there:,} messages; more could not be told apart."


def choose(content: Content, pixels_per_second: float) -> Chosen:
    """All messages if they are few; else for each pair of ranks its first, its last, and those between that are far
    enough apart."""
    every = pairs(content.trace)
    if len(every) <= FEW:
        return Chosen(every, len(every))
    channels: dict[tuple[int, int], list[tuple[Span, Span]]] = defaultdict(list)
    for send, receive in every:
        channels[send.rank, receive.rank].append((send, receive))
    kept = []
    for messages in channels.values():
        messages.sort(key=lambda pair: (pair[1].end, pair[0].start))
        last = messages[-1]
        end = last[1].end * pixels_per_second
        free = float("-inf")                                # from where on the next line may land
        for pair in messages:
            x = pair[1].end * pixels_per_second
            if pair is last or x >= free and (end - x >= APART or pair is messages[0]):
                kept.append(pair)
                free = x + APART
    return Chosen(kept if len(kept) <= MOST else [], len(every))


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
