"""The concept map: ideas as boxes in groups, how one bears on another as lines, and how well each is known.

What is known is told by a colour and by a mark: an empty ring, a half ring, a full one with a tick. A dashed border
says that the lesson is still to come, a round box that the topic lies beside the course.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from disttutor.figures.concept_layout import (
    ARROW,
    BOX_HEIGHT,
    BOX_WIDTH,
    EDGE,
    LEADING,
    SMALL,
    Area,
    Line,
    Place,
    Words,
    box,
    free_spot,
    joined,
    labels,
    region,
    size,
)
from disttutor.figures.style import COOL, INK, LOOKS, MUTED, PANEL, listing, mix, outline
from disttutor.figures.svg import Svg, drawing, escape, number, rect, text, text_width, wrap

# How a box looks: the words for it, and its ground.
STATES = {
    "new": ("new", "#ffffff"),
    "learning": ("being learnt", mix("#ffffff", LOOKS["broadcast"].colour, 0.32)),
    "known": ("known", mix("#ffffff", LOOKS["all_reduce"].colour, 0.38)),
}
BLANK = "#ffffff"
GROUND = "#eef1f5"
NAME, NAME_LEADING = 12.0, 14.0
MOST_LINES = 2
MARK, MARK_AT = 5.5, 13.0                   # radius of the mark, and how far from the box's left border its centre is
GROUP = 11.0


@dataclass(frozen=True, slots=True)
class Node:
    """A box.

    place: column and row. state: one of `STATES`, or "" where it is not asked how well it is known. share: how much of
    it is known, from 0 to 1. to_come: its lesson is not there yet. gap: not 0 where the name is to be found; the box
    then shows this number.
    """

    id: str
    name: str
    group: str
    place: Place
    state: str = "new"
    share: float = 0.0
    to_come: bool = False
    gap: int = 0


@dataclass(frozen=True, slots=True)
class Join:
    """A line from box to box with a word or two on it. gap: a letter where the words are to be found."""

    start: str
    end: str
    label: str
    gap: str = ""


def concept_map(nodes: Sequence[Node], joins: Sequence[Join], groups: Mapping[str, str], *,
                title: str = "Concept map") -> Svg:
    """The map. groups: names by key; a node whose group has none is drawn round, outside all groups.

    Every box is a <g data-concept="id"> of the drawing, every line has data-line="from to". Raises ValueError for no
    nodes, two at one place, an unknown state, and lines that begin or end nowhere.
    """
    _check(nodes, joins)
    boxes = {node.id: box(node.place) for node in nodes}
    lines = [joined(boxes[join.start], boxes[join.end]) for join in joins]
    words = labels(lines, [f"({join.gap})" if join.gap else join.label for join in joins], boxes.values())
    grounds = {key: region(node.place for node in nodes if node.group == key)
               for key in groups if any(node.group == key for node in nodes)}
    taken = [*boxes.values(), *(label.area for label in words)]
    width, height = size(node.place for node in nodes)
    legend, legend_end = _legend(nodes, groups)
    parts = [
        text(EDGE - 12, 27, title, size=15, bold=True),
        *legend,
        *(rect(a.x, a.y, a.width, a.height, fill=GROUND, rx=9) for ground in grounds.values() for a in ground),
        *(_group_name(groups[key], ground, taken, lines) for key, ground in grounds.items()),
        *(_arrow(line, join) for line, join in zip(lines, joins, strict=True)),
        *map(_words, words),
        *(_node(node, boxes[node.id], node.group in groups) for node in nodes),
    ]
    width = max(width, legend_end, text_width(title, 15, bold=True) + 2 * EDGE)
    return drawing(parts, int(width), height, alt=_alt(title, nodes, joins, groups),
                   plain=f"{title}: {_counts(nodes)}.")


def _check(nodes: Sequence[Node], joins: Sequence[Join]) -> None:
    if not nodes:
        raise ValueError("a concept map needs at least one concept")
    for what, values in (("id", [node.id for node in nodes]), ("place", [node.place for node in nodes])):
        if double := [value for value, times in Counter(values).items() if times > 1]:
            raise ValueError(f"two concepts have the {what} {double[0]!r}; each needs its own")
    for node in nodes:
        if node.state and node.state not in STATES:
            raise ValueError(f"{node.id}: unknown state {node.state!r}; there are {', '.join(STATES)}")
        if not 0 <= node.share <= 1:
            raise ValueError(f"{node.id}: its share is {node.share}, but a share lies between 0 and 1")
        if len(shown(node)) > MOST_LINES:
            raise ValueError(f"{node.id}: its name {node.name!r} is too long for its box; a shorter one works")
    ids = {node.id for node in nodes}
    for join in joins:
        if lost := {join.start, join.end} - ids:
            raise ValueError(f"the line {join.start} - {join.end} needs {listing(sorted(lost))}: not in the map")


def shown(node: Node) -> list[str]:
    """The lines of a box: its name, or the number of its gap."""
    # A round box is narrow at its corners, so names keep away from them in every box.
    return [f"gap {node.gap}"] if node.gap else wrap(node.name, BOX_WIDTH - MARK_AT - MARK - 12, NAME)


def _node(node: Node, area: Area, inside: bool) -> str:
    fill = STATES[node.state][1] if node.state else BLANK
    dash = ' stroke-dasharray="5 3"' if node.to_come else ""
    rx = 7 if inside else BOX_HEIGHT / 2
    x, (_, y) = area.x + MARK_AT, area.middle
    inset = 0 if inside else 3                              # a round box is narrow at its corners
    marked = bool(node.state) and not node.gap
    lines, centre = shown(node), area.x + ((MARK_AT + MARK if marked else 0) + area.width) / 2
    first = y + 4 - NAME_LEADING * (len(lines) - 1) / 2
    return "".join([
        f'<g data-concept="{escape(node.id)}">',
        f'<rect x="{number(area.x)}" y="{number(area.y)}" width="{number(area.width)}" height="{number(area.height)}" '
        f'rx="{number(rx)}" fill="{PANEL if node.gap else fill}" stroke="{COOL if node.gap else outline(fill)}" '
        f'stroke-width="{1.8 if node.gap else 1.2}"{dash}/>',
        _mark(node.state, x + inset, y) if marked else "",
        _bar(node, area),
        *(text(centre, first + NAME_LEADING * k, line, size=NAME, anchor="middle", bold=bool(node.gap),
               fill=COOL if node.gap else INK) for k, line in enumerate(lines)),
        "</g>"])


def _mark(state: str, x: float, y: float) -> str:
    """Ring, half ring, or full ring with a tick."""
    at, r = f'cx="{number(x)}" cy="{number(y)}"', number(MARK)
    if state == "known":
        tick = f"M{number(x - 2.8)} {number(y)}l2 2.3 3.6 -4.3"
        return f'<circle {at} r="{r}" fill="{INK}"/><path d="{tick}" fill="none" stroke="#ffffff" stroke-width="1.6"/>'
    ring = f'<circle {at} r="{r}" fill="#ffffff" stroke="{INK}" stroke-width="1.1"/>'
    half = f"M{number(x)} {number(y - MARK)}a{r} {r} 0 0 0 0 {number(2 * MARK)}z"
    return f'{ring}<path d="{half}" fill="{INK}"/>' if state == "learning" else ring


def _bar(node: Node, area: Area) -> str:
    """What is known of it, as a bar along the box's foot."""
    if node.gap or node.state in ("", "new"):
        return ""
    length = area.width - BOX_HEIGHT                        # between the ends of a round box
    left, y = area.x + BOX_HEIGHT / 2, area.y + area.height - 5
    return (rect(left, y, length, 2.5, fill=mix(STATES[node.state][1], INK, 0.15), rx=1)
            + rect(left, y, length * node.share, 2.5, fill=INK, rx=1))


def _arrow(line: Line, join: Join) -> str:
    """A line with its head: a triangle, so that it needs no definition that another drawing could have too."""
    ends = escape(f"{join.start} {join.end}")
    length = ((line.x2 - line.x1) ** 2 + (line.y2 - line.y1) ** 2) ** 0.5
    ux, uy = (line.x2 - line.x1) / length, (line.y2 - line.y1) / length
    bx, by = line.x2 - ARROW * ux, line.y2 - ARROW * uy
    head = " ".join(f"{number(x)},{number(y)}" for x, y in
                    ((line.x2, line.y2), (bx - 3.2 * uy, by + 3.2 * ux), (bx + 3.2 * uy, by - 3.2 * ux)))
    return (f'<path data-line="{ends}" d="M{number(line.x1)} {number(line.y1)}L{number(bx)} {number(by)}" '
            f'stroke="{MUTED}" stroke-width="1.2"/><polygon points="{head}" fill="{MUTED}"/>')


def _words(words: Words) -> str:
    area = words.area
    ground = rect(area.x, area.y, area.width, area.height, fill=PANEL, rx=3)
    lines = (text(area.middle[0], area.y + SMALL - 0.5 + LEADING * k, line, size=SMALL, anchor="middle")
             for k, line in enumerate(words.lines))
    return ground + "".join(lines)


def _group_name(name: str, ground: Sequence[Area], taken: Sequence[Area], lines: Sequence[Line]) -> str:
    spot = free_spot(text_width(name, GROUP, bold=True), GROUP + 2, ground, taken, lines)
    return text(spot.x, spot.y + GROUP - 1, name, size=GROUP, fill=MUTED, bold=True)


def _legend(nodes: Sequence[Node], groups: Mapping[str, str]) -> tuple[list[str], float]:
    """What colours, marks and borders mean, as far as they occur; and where it ends."""
    looks = [(words, fill, "none", 4, state) for state, (words, fill) in STATES.items()] * any(n.state for n in nodes)
    if any(node.to_come for node in nodes):
        looks.append(("its lesson is to come", BLANK, "5 3", 4, ""))
    if any(node.group not in groups for node in nodes):
        looks.append(("neighbouring topic", BLANK, "none", 8, ""))
    parts, x, y = [], EDGE - 12, 45.0
    for words, fill, dash, rx, state in looks:
        parts += [f'<rect x="{number(x)}" y="{number(y - 8)}" width="34" height="16" rx="{rx}" fill="{fill}" '
                  f'stroke="{outline(fill)}" stroke-dasharray="{dash}"/>',
                  _mark(state, x + 17, y) if state else "", text(x + 40, y + 4, words, size=11)]
        x += 40 + text_width(words, 11) + 16
    return parts, x


def _counts(nodes: Sequence[Node]) -> str:
    states = Counter(node.state for node in nodes)
    counts = [f"{states[state]} {words}" for state, (words, _) in STATES.items() if states[state]]
    gaps = sum(bool(node.gap) for node in nodes)
    return listing([f"{len(nodes)} concepts", *counts, *([f"{gaps} gaps"] if gaps else [])])


def _alt(title: str, nodes: Sequence[Node], joins: Sequence[Join], groups: Mapping[str, str]) -> str:
    def told(members: Sequence[Node]) -> str:
        return ", ".join(f"{' '.join(shown(node))}{f' ({STATES[node.state][0]})' if node.state else ''}"
                         for node in members)

    sorts = [(name, [node for node in nodes if node.group == key]) for key, name in groups.items()]
    sorts.append(("Neighbouring topics", [node for node in nodes if node.group not in groups]))
    grouped = ". ".join(f"{name}: {told(members)}" for name, members in sorts if members)
    lines = f"{len(joins)} line{'' if len(joins) == 1 else 's'}"
    return f"{title}: {_counts(nodes)}; {lines} between them. {grouped}."
