"""The message stepper: what every rank of a collective holds at one moment, and the messages that led there."""

from collections.abc import Sequence
from math import cos, hypot, pi, sin

from disttutor.figures.moments import Message, Moment, Story, numbers
from disttutor.figures.style import BORDER, INK, MUTED, PANEL, WARM, outline, plain_number, quantity
from disttutor.figures.svg import Svg, drawing, number, rect, text, text_width, wrap
from disttutor.plans import Plan

EDGE, SIZE, SMALL = 14, 11, 9.5
CELLS, HIGH = 176, 22                       # width of all cells of a rank; height of a cell
MOST_RANKS, MOST_CHUNKS = 10, 16
# A colour for each rank's contribution; its place in the cell tells it apart as well.
RANKS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#a3447f", "#f0e442", "#3b3b3b", "#8a6a00", "#9f8fd0")
ARRIVED = "#0072b2"
EMPTY = "#dfe3e8"

Point = tuple[float, float]


def message_step(moments: Sequence[Moment] | Plan, at: int, *, title: str = "What every rank holds",
                 chunk_nbytes: int | Sequence[int] | None = None,
                 complete_with: Sequence[Sequence[int]] | None = None, width: int = 1000) -> Svg:
    """Moment `at` of `moments`: each rank with its chunks, and the messages of the round that led to this moment.

    moments: a list, or a collective's plan (of `disttutor.plans.collectives`), whose moments are worked out; it says
    itself what the next two say. chunk_nbytes: size of every chunk, or one for each; without it what was sent is
    counted in chunks. complete_with: for each chunk the ranks whose contributions a complete one has; all ranks unless
    told (for a broadcast from rank 0 it is [(0,)] * chunks). All moments of one list make pictures of one size.

    Raises ValueError as `moments.Story` does, for a moment that is not there, for more than 10 ranks or 16 chunks
    (`message_grid` draws more), and below 600 pixels.
    """
    story = Story.of(moments, chunk_nbytes, complete_with)
    if not 0 <= at <= story.rounds:
        raise ValueError(f"there is no moment {at}; the moments are 0 (before anything is sent) to {story.rounds}")
    if story.ranks > MOST_RANKS or story.chunks > MOST_CHUNKS:
        raise ValueError(f"{story.ranks} ranks with {story.chunks} chunks each cannot be read in one picture; up to "
                         f"{MOST_RANKS} ranks and {MOST_CHUNKS} chunks work, and message_grid draws more")
    if width < 600:
        raise ValueError(f"a picture {width} pixels wide has no room for the ranks; use 600 or more")
    parts, y = [], float(EDGE)
    for words in wrap(title, width - 2 * EDGE, 14, bold=True):
        y += 18
        parts.append(text(EDGE, y - 4, words, size=14, bold=True))
    lines = max(len(wrap(_when(story, n), width - 2 * EDGE, SIZE)) for n in range(len(story.moments)))
    for n, words in enumerate(wrap(_when(story, at), width - 2 * EDGE, SIZE)):
        parts.append(text(EDGE, y + 14 * (n + 1), words, size=SIZE, fill=MUTED))
    y += 14 * lines + 12
    ring = _Ring(story, at, width, y)
    parts += [*ring.boxes(), *ring.arrows()]
    y = ring.bottom + 8
    drawn, y = _key(story, width, y)
    parts += drawn
    for words in wrap(_caption(story), width - 2 * EDGE, SMALL):
        y += 14
        parts.append(text(EDGE, y, words, size=SMALL, fill=MUTED))
    about = f"{title}: {_count(story.ranks, 'rank')}, {_count(story.chunks, 'chunk')}"
    return drawing(parts, width, y + EDGE, alt=f"{about}. {_alt(story, at)}",
                   plain=f"{about}, moment {at} of {story.rounds}.")


class _Ring:
    """Where the ranks lie: two side by side, more of them around a ring, clockwise from the top."""

    def __init__(self, story: Story, at: int, width: int, top: float):
        self.story, self.at, self.moment = story, at, story.moments[at]
        valued = any(moment.values is not None for moment in story.moments)
        self.cell = CELLS / story.chunks
        self.wide = CELLS + 12.0
        self.high = 16 + 11 + HIGH + (13 if valued else 0) + 11
        n = story.ranks
        rx = (width - 2 * EDGE - self.wide) / 2
        ry = 0.0 if n <= 2 else min(250.0, 62.0 + 22.0 * n) if n > 4 else 112.0
        self.middle = (width / 2, top + self.high / 2 + ry)
        turn = -pi if n <= 2 else -pi / 2
        if n == 2:
            rx = min(rx, 0.9 * self.wide)
        self.centres = [(self.middle[0] + (rx * cos(turn + 2 * pi * r / n) if n > 1 else 0.0),
                         self.middle[1] + ry * sin(turn + 2 * pi * r / n)) for r in range(n)]
        self.bottom = max(y for _, y in self.centres) + self.high / 2
        self.digits, self.size = self._value_size()

    def _value_size(self) -> tuple[int, float]:
        """Digits and size of text with which every value of every moment fits below its cell."""
        values = [float(v) for moment in self.story.moments for row in moment.values or () for v in row]
        for digits in (3, 2):
            widest = max((text_width(plain_number(v, digits), SMALL) for v in values), default=1.0)
            size = min(SMALL, SMALL * (self.cell - 2) / widest)
            if size >= 7:
                break
        return digits, size

    def boxes(self) -> list[str]:
        return [part for rank in range(self.story.ranks) for part in self._box(rank)]

    def _box(self, rank: int) -> list[str]:
        story, (cx, cy) = self.story, self.centres[rank]
        left, top = cx - self.wide / 2, cy - self.high / 2
        parts = [rect(left, top, self.wide, self.high, fill="#ffffff", stroke=BORDER, rx=5),
                 rect(left + 6, top + 5, 10, 10, fill=RANKS[rank], stroke=outline(RANKS[rank])),
                 text(left + 20, top + 14, f"rank {rank}", size=SIZE, bold=True),
                 text(left + self.wide - 6, top + 14, f"sent {_amount(story, self.at, rank)}", size=SMALL, fill=MUTED,
                      anchor="end")]
        begin = cx - self.cell * story.chunks / 2
        arrived = story.arrived(self.at, rank)
        for chunk in range(story.chunks):
            parts += self._cell(rank, chunk, begin + chunk * self.cell, top + 28, chunk in arrived)
        return parts

    def _cell(self, rank: int, chunk: int, x: float, y: float, arrived: bool) -> list[str]:
        story, held = self.story, self.moment.holds[rank][chunk]
        wide = self.cell - 2.4
        names = ", ".join(map(str, sorted(held))) or "nothing"
        if story.empty(chunk):
            return [text(x + self.cell / 2, y - 3, str(chunk), size=8, fill=MUTED, anchor="middle"),
                    rect(x + 1.2, y, wide, HIGH, fill=EMPTY, stroke=BORDER, title=f"chunk {chunk} has no elements")]
        parts = [text(x + self.cell / 2, y - 3, str(chunk), size=8, fill=MUTED, anchor="middle"),
                 rect(x + 1.2, y, wide, HIGH, fill="#ffffff", stroke=BORDER,
                      title=f"rank {rank}, chunk {chunk}: contributions of {names}")]
        stripe = wide / story.ranks
        parts += [rect(x + 1.2 + k * stripe, y, stripe, HIGH, fill=RANKS[k]) for k in sorted(set(held))]
        if story.twice(self.at, rank, chunk):
            parts.append(_frame(x + 1.2, y, wide, WARM, "3 2"))
        elif story.finished(self.at, rank, chunk):
            parts.append(_frame(x + 1.2, y, wide, INK))
        if arrived:
            parts.append(rect(x + 1.2, y + HIGH + 2.5, wide, 3, fill=ARRIVED))
        if self.moment.values is not None and held:
            words = plain_number(float(self.moment.values[rank][chunk]), self.digits)
            parts.append(text(x + self.cell / 2, y + HIGH + 15, words, size=self.size, anchor="middle"))
        return parts

    def arrows(self) -> list[str]:
        """The messages as arrows, then what they carry, so that no line crosses the words."""
        both = {(src, dst) for src, dst, _ in self.moment.messages}
        shafts, labels, taken = [], [], [(cx - self.wide / 2, cy - self.high / 2, self.wide, self.high)
                                         for cx, cy in self.centres]
        for message in self.moment.messages:
            points = self._path(message, (message[1], message[0]) in both)
            shafts += _arrow(points)
            if self.story.chunks > 1:
                labels += self._label(numbers(message[2]), points, taken)
        return shafts + labels

    def _path(self, message: Message, both: bool) -> list[Point]:
        """Points of the arrow, from the border of one box to that of the other; bent inwards between ranks that are not
        neighbours, and moved aside where another arrow comes the opposite way."""
        src, dst, _ = message
        (x1, y1), (x2, y2) = self.centres[src], self.centres[dst]
        long = hypot(x2 - x1, y2 - y1)
        aside = 9.0 if both else 0.0
        ax, ay = (y2 - y1) / long * aside, -(x2 - x1) / long * aside
        near = (src - dst) % self.story.ranks in (1, self.story.ranks - 1)
        pull = 0.0 if near else 0.3
        qx = (x1 + x2) / 2 + (self.middle[0] - (x1 + x2) / 2) * pull
        qy = (y1 + y2) / 2 + (self.middle[1] - (y1 + y2) / 2) * pull
        points = [((1 - t) ** 2 * x1 + 2 * t * (1 - t) * qx + t * t * x2 + ax,
                   (1 - t) ** 2 * y1 + 2 * t * (1 - t) * qy + t * t * y2 + ay) for t in (i / 60 for i in range(61))]
        return [p for p in points if not (self._inside(p, src) or self._inside(p, dst))] or points

    def _inside(self, point: Point, rank: int) -> bool:
        cx, cy = self.centres[rank]
        return abs(point[0] - cx) <= self.wide / 2 + 3 and abs(point[1] - cy) <= self.high / 2 + 3


    def _label(self, words: str, points: list[Point], taken: list[tuple[float, float, float, float]]) -> list[str]:
        """What a message carries, on its arrow where nothing else stands yet; beside an arrow that it would hide.

        On arrows that cross the ring it stands near the sender, since they all meet in the middle.
        """
        wide, high = text_width(words, SIZE) + 8, 15.0
        (x0, y0), (x1, y1) = points[0], points[-1]
        long = hypot(x1 - x0, y1 - y0)
        where = (0.22, 0.3, 0.14, 0.4, 0.55) if long > 260 else (0.45, 0.35, 0.55, 0.25, 0.7)
        places = [points[int(t * (len(points) - 1))] for t in where]
        if long < wide + 40:
            mx, my = (x0 + x1) / 2, (y0 + y1) / 2
            out = hypot(mx - self.middle[0], my - self.middle[1]) or 1.0
            off = high / 2 + 6 + wide / 2 * abs(y1 - y0) / max(long, 1.0)
            places.insert(0, (mx + (mx - self.middle[0]) / out * off, my + (my - self.middle[1]) / out * off))
        x, y = next((p for p in places if not any(abs(p[0] - (a + w / 2)) < (wide + w) / 2 and
                                                  abs(p[1] - (b + h / 2)) < (high + h) / 2 for a, b, w, h in taken)),
                    places[0])
        taken.append((x - wide / 2, y - high / 2, wide, high))
        return [rect(x - wide / 2, y - high / 2, wide, high, fill=PANEL, stroke=BORDER, rx=4),
                text(x, y + 4, words, size=SIZE, anchor="middle")]


def _frame(x: float, y: float, wide: float, colour: str, dash: str = "") -> str:
    more = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<rect x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="{HIGH}" fill="none" '
            f'stroke="{colour}" stroke-width="2"{more}/>')


def _arrow(points: list[Point]) -> list[str]:
    (x0, y0), (x, y) = points[max(0, len(points) - 4)], points[-1]
    long = hypot(x - x0, y - y0) or 1.0
    ux, uy = (x - x0) / long * 8, (y - y0) / long * 8
    shaft = "L".join(f"{number(a)} {number(b)}" for a, b in [*points[:-1], (x - ux / 2, y - uy / 2)])
    return [f'<path class="message" d="M{shaft}" fill="none" stroke="{INK}" stroke-width="1.5" stroke-opacity="0.75"/>',
            f'<path d="M{number(x)} {number(y)}l{number(-ux - uy * 0.45)} {number(-uy + ux * 0.45)}'
            f'l{number(uy * 0.9)} {number(-ux * 0.9)}z" fill="{INK}"/>']


def _key(story: Story, width: int, y: float) -> tuple[list[str], float]:
    """Whose contribution has which colour."""
    parts, x, y = [text(EDGE, y + 14, "Contribution of rank", size=SIZE)], EDGE + 124.0, y + 14
    for rank in range(story.ranks):
        if x + 40 > width - EDGE:
            x, y = float(EDGE), y + 18
        parts += [rect(x, y - 10, 12, 12, fill=RANKS[rank], stroke=outline(RANKS[rank])),
                  text(x + 16, y, str(rank), size=SIZE)]
        x += 40
    return parts, y + 2


def _caption(story: Story) -> str:
    """What the marks mean; the same for all moments, so that pictures of one list are of one height."""
    words = ["A cell is a chunk. A stripe in it means: the contribution of that rank is in the sum.",
             "Dark frame: complete."]
    if any(map(story.empty, range(story.chunks))):
        words.append("Grey: a chunk without elements.")
    if story.rounds:
        words.append("Blue bar below: arrived in this round.")
    if story.rounds and story.chunks > 1:
        words.append("Number on an arrow: the chunks it carries.")
    if any(moment.values is not None for moment in story.moments):
        words.append("Number below a cell: its value.")
    if any(story.twice(at, r, c) for at in range(len(story.moments)) for r in range(story.ranks)
           for c in range(story.chunks)):
        words.append("Broken frame in orange: a contribution was added twice.")
    return " ".join(words)


def _when(story: Story, at: int) -> str:
    full = [c for c in range(story.chunks) if not story.empty(c)]
    done = sum(story.finished(at, r, c) for r in range(story.ranks) for c in full)
    when = f"After round {at} of {story.rounds}" if at else "Before anything is sent"
    name = story.moments[at].title
    return f"{when}{': ' + name if name else ''}. " + (
        f"Complete: {done} of {story.ranks * len(full)} cells." if full else "No chunk has any elements.")


def _amount(story: Story, at: int, rank: int) -> str:
    sent = story.sent(at, rank)
    return _count(sent, "chunk") if story.nbytes is None else quantity(sent, "B")


def _alt(story: Story, at: int) -> str:
    said = [_when(story, at)]
    said += [f"Rank {src} sends {'chunks' if len(chunks) != 1 else 'chunk'} {numbers(chunks)} to rank {dst}."
             for src, dst, chunks in story.moments[at].messages]
    for rank in range(story.ranks):
        done = [c for c in range(story.chunks) if story.finished(at, rank, c)]
        said.append(f"Rank {rank} has {'complete ' + numbers(done) if done else 'no complete chunk'} and has sent "
                    f"{_amount(story, at, rank)}.")
    return " ".join(said)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
