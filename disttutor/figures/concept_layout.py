"""Where everything in a concept map lies: boxes on a grid, straight lines between them, and words where they are free.

A drawing can only be as readable as its grid: `crowded` says which lines go through a box, so that whoever places the
concepts can move them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from disttutor.figures.svg import text_width, wrap

BOX_WIDTH, BOX_HEIGHT = 128.0, 46.0
ACROSS, DOWN = 60.0, 46.0                   # free space between two boxes side by side, and one above the other
EDGE, TOP = 38.0, 86.0                      # around the grid; above it, for the title and the legend
GAP, ARROW = 2.0, 7.0                       # between a box and its line; length of the line's head
SMALL, LEADING = 10.5, 12.5                 # size of the words on lines, and from one line of them to the next
_ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73, 0.2, 0.8)      # where on its line a word may stand; the middle first

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle: its corner nearest to the origin, and its size in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        """Its centre."""
        return self.x + self.width / 2, self.y + self.height / 2

    def meets(self, other: "Area") -> bool:
        """Whether the two have a part in common."""
        return (self.x < other.x + other.width and other.x < self.x + self.width
                and self.y < other.y + other.height and other.y < self.y + self.height)

    def grown(self, by: float) -> "Area":
        """The same with a margin of `by` on every side."""
        return Area(self.x - by, self.y - by, self.width + 2 * by, self.height + 2 * by)


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line, from (x1, y1) to its head at (x2, y2)."""

    x1: float
    y1: float
    x2: float
    y2: float

    def at(self, share: float) -> tuple[float, float]:
        """The point that lies `share` of the way along."""
        return self.x1 + (self.x2 - self.x1) * share, self.y1 + (self.y2 - self.y1) * share

    def crosses(self, area: Area) -> bool:
        """Whether a part of the line lies in the area (as Liang and Barsky 1984 clip a line: border by border)."""
        first, last = 0.0, 1.0
        for step, low, high in ((self.x2 - self.x1, area.x - self.x1, area.x + area.width - self.x1),
                                (self.y2 - self.y1, area.y - self.y1, area.y + area.height - self.y1)):
            if step == 0:
                if not low < 0 < high:
                    return False
                continue
            enters, leaves = sorted((low / step, high / step))
            first, last = max(first, enters), min(last, leaves)
        return first < last


@dataclass(frozen=True, slots=True)
class Words:
    """Words in lines, centred, and the area they take."""

    lines: tuple[str, ...]
    area: Area


def box(place: Place) -> Area:
    """The box at a column and row of the grid."""
    column, row = place
    return Area(EDGE + column * (BOX_WIDTH + ACROSS), TOP + row * (BOX_HEIGHT + DOWN), BOX_WIDTH, BOX_HEIGHT)


def size(places: Iterable[Place]) -> tuple[float, float]:
    """Width and height of a grid that holds these places, with its margins."""
    columns, rows = zip(*places, strict=True)
    last = box((max(columns), max(rows)))
    return last.x + BOX_WIDTH + EDGE, last.y + BOX_HEIGHT + EDGE


def joined(one: Area, other: Area) -> Line:
    """The line from border to border of two boxes, along the line of their centres."""
    (x1, y1), (x2, y2) = one.middle, other.middle
    dx, dy = x2 - x1, y2 - y1
    length = (dx * dx + dy * dy) ** 0.5
    # How far from a centre the border lies, as a share of the way between the centres.
    leave = min(one.grown(GAP).width / 2 / abs(dx) if dx else 1.0, one.grown(GAP).height / 2 / abs(dy) if dy else 1.0)
    arrive = leave + 1 / length
    return Line(x1 + dx * leave, y1 + dy * leave, x2 - dx * arrive, y2 - dy * arrive)


def crowded(places: Mapping[str, Place], joins: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Which lines go through a box that is not theirs: (from, to, through)."""
    boxes = {name: box(place) for name, place in places.items()}
    return [(start, end, name) for start, end in joins for name, area in boxes.items()
            if name not in (start, end) and joined(boxes[start], boxes[end]).crosses(area.grown(GAP))]


def labels(lines: Sequence[Line], words: Sequence[str], boxes: Iterable[Area]) -> list[Words]:
    """A place on its line for each line's words: where they meet no box, no other words and no other line, if there is
    such a place, else where they meet the fewest."""
    boxes, found = [area.grown(GAP) for area in boxes], []
    for line, text in zip(lines, words, strict=True):
        taken = boxes + [other.area for other in found]
        others = [other for other in lines if other != line]
        spots = [(_meetings(spot.area, taken, []), _meetings(spot.area, [], others), order, spot)
                 for order, spot in enumerate(_on(line, text))]
        found.append(min(spots)[-1])
    return found


def _meetings(spot: Area, taken: Iterable[Area], lines: Iterable[Line]) -> int:
    return sum(spot.meets(area) for area in taken) + sum(line.crosses(spot) for line in lines)


def _on(line: Line, text: str) -> Iterator[Words]:
    level = line.y1 == line.y2
    room = abs(line.x2 - line.x1) - 2 if level else 100.0
    lines = tuple(wrap(text, room, SMALL)) or ("",)
    width, height = max(text_width(words, SMALL) for words in lines) + 2, LEADING * len(lines)
    for share in _ALONG if not level else (0.5,):
        x, y = line.at(share)
        top = y - height - 3 if level else y - height / 2   # on a level line there is room for the words above it only
        yield Words(lines, Area(x - width / 2, top, width, height))


def region(places: Iterable[Place], apart: float = 5.0) -> list[Area]:
    """The ground under a group of boxes, in overlapping rectangles: each box with the space around it, and all of the
    space between two of the group that lie side by side or one above the other. apart: from the middle of it."""
    places, ground = set(places), []
    for columns, rows in ((1, 1), (2, 1), (1, 2), (2, 2)):
        for column, row in sorted(places):
            block = {(column + k, row + i) for k in range(columns) for i in range(rows)}
            if block <= places:
                first, last = box((column, row)), box((column + columns - 1, row + rows - 1))
                x, y = first.x - ACROSS / 2 + apart, first.y - DOWN / 2 + apart
                ground.append(Area(x, y, last.x + BOX_WIDTH + ACROSS / 2 - apart - x,
                                   last.y + BOX_HEIGHT + DOWN / 2 - apart - y))
    return ground


def free_spot(width: float, height: float, ground: Sequence[Area], taken: Sequence[Area],
              lines: Sequence[Line]) -> Area:
    """Where words of this size fit into a group's ground without meeting anything; its corners are tried first."""
    spots = [Area(x, y, width, height) for area in ground
             for y in (area.y + 2, area.y + area.height - height - 2)
             for x in (area.x + 5, area.x + area.width - width - 5, area.x + (area.width - width) / 2)]
    return min(spots, key=lambda spot: _meetings(spot, taken, lines))
