"""The concept map, by geometry: nothing lies over anything else, and every word fits where it stands."""

import re
from itertools import combinations

import pytest
from drawn import SVG, outside, root, texts
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cards.concepts import CONCEPTS, EDGES, GROUPS
from disttutor.figures import style
from disttutor.figures.concept_layout import Area, Line, box, crowded, free_spot, joined, labels, region
from disttutor.figures.concept_map import STATES, Join, Node, concept_map, shown
from disttutor.figures.svg import text_width

INSIDE = {key: name for key, name in GROUPS.items() if key != "neighbours"}
TWO = [Node("a", "Aaa", "g", (0, 0)), Node("b", "Bbb", "g", (1, 0), "known", 0.9)]


def course(state="new", **more):
    return ([Node(c.id, c.en, c.group, c.place, state, **more) for c in CONCEPTS],
            [Join(e.start, e.end, e.label) for e in EDGES])


@pytest.fixture(scope="module")
def drawn():
    return concept_map(*course(), INSIDE)


def areas_of_names(figure):
    """By concept: its box, and the area of each line of its name, read off the drawing."""
    found = {}
    for group in root(figure).iter(f"{SVG}g"):
        shape = group.find(f"{SVG}rect")
        frame = Area(*(float(shape.get(k)) for k in ("x", "y", "width", "height")))
        lines = []
        for node in group.findall(f"{SVG}text"):
            size, width = float(node.get("font-size")), text_width(node.text, float(node.get("font-size")))
            assert node.get("text-anchor") == "middle"
            lines.append(Area(float(node.get("x")) - width / 2, float(node.get("y")) - 0.75 * size, width, size))
        found[group.get("data-concept")] = frame, lines
    return found


def points(figure):
    """By (from, to): 200 points along each line."""
    found = {}
    for path in root(figure).iter(f"{SVG}path"):
        if ends := path.get("data-line"):
            x1, y1, x2, y2 = map(float, re.findall(r"-?[\d.]+", path.get("d")))
            found[tuple(ends.split())] = [(x1 + (x2 - x1) * k / 199, y1 + (y2 - y1) * k / 199) for k in range(200)]
    return found


def within(point, area):
    return area.x < point[0] < area.x + area.width and area.y < point[1] < area.y + area.height


def test_all_concepts_and_lines_are_there(drawn):
    assert set(areas_of_names(drawn)) == {c.id for c in CONCEPTS}
    assert set(points(drawn)) == {(e.start, e.end) for e in EDGES}


def test_no_two_boxes_overlap_and_nothing_reaches_over_the_edge(drawn):
    boxes = [frame for frame, _ in areas_of_names(drawn).values()]
    assert not any(a.grown(8).meets(b) for a, b in combinations(boxes, 2))
    assert outside(drawn) == []


def test_names_are_whole_and_stand_inside_their_boxes(drawn):
    for concept in CONCEPTS:
        frame, lines = areas_of_names(drawn)[concept.id]
        assert " ".join(shown(Node(concept.id, concept.en, "", (0, 0)))) == concept.en     # no word is broken
        assert len(lines) in (1, 2)
        mark = frame.x + 13 + 5.5
        for line in lines:
            assert mark < line.x and line.x + line.width < frame.x + frame.width - 2
            assert frame.y < line.y and line.y + line.height < frame.y + frame.height - 2.5
        if len(lines) == 2:
            assert not lines[0].meets(lines[1])


def test_no_line_goes_through_a_box(drawn):
    boxes = {id: frame for id, (frame, _) in areas_of_names(drawn).items()}
    for ends, line in points(drawn).items():
        for id, frame in boxes.items():
            assert not any(within(point, frame) for point in line), (ends, id)
    assert crowded({c.id: c.place for c in CONCEPTS}, [(e.start, e.end) for e in EDGES]) == []


def test_lines_begin_and_end_at_the_boxes_they_join(drawn):
    boxes = {id: frame for id, (frame, _) in areas_of_names(drawn).items()}
    for (start, end), line in points(drawn).items():
        assert within(line[0], boxes[start].grown(3)) and within(line[-1], boxes[end].grown(3 + 7 + 3))


def test_words_on_lines_meet_no_box_no_other_words_and_no_other_line():
    boxes = {c.id: box(c.place) for c in CONCEPTS}
    lines = [joined(boxes[e.start], boxes[e.end]) for e in EDGES]
    words = labels(lines, [e.label for e in EDGES], boxes.values())
    for (k, label), edge in zip(enumerate(words), EDGES, strict=True):
        assert " ".join(label.lines) == edge.label
        assert not any(label.area.meets(frame) for frame in boxes.values()), edge
        assert not any(label.area.meets(other.area) for other in words[:k]), edge
        assert not any(within(line.at(i / 199), label.area) for line in lines[:k] + lines[k + 1:] for i in range(200))
        middle = (label.area.x + label.area.width / 2, label.area.y + label.area.height / 2)
        assert any(abs(lines[k].at(i / 199)[0] - middle[0]) < 40 and abs(lines[k].at(i / 199)[1] - middle[1]) < 20
                   for i in range(200))                         # it stands at its own line


def test_few_lines_cross():
    """Lines that cross are harder to follow; the grid was laid out to have few of them."""
    boxes = {c.id: box(c.place) for c in CONCEPTS}
    lines = [(e, joined(boxes[e.start], boxes[e.end])) for e in EDGES]
    crossings = [(a, b) for (a, one), (b, other) in combinations(lines, 2) if cross(one, other)]
    assert len(crossings) <= 3


def cross(one, other):
    def side(line, x, y):
        return (line.x2 - line.x1) * (y - line.y1) - (line.y2 - line.y1) * (x - line.x1)

    return (side(one, other.x1, other.y1) * side(one, other.x2, other.y2) < 0
            and side(other, one.x1, one.y1) * side(other, one.x2, one.y2) < 0)


def test_names_of_groups_meet_nothing(drawn):
    boxes = [frame for frame, _ in areas_of_names(drawn).values()]
    for name in INSIDE.values():
        (node,) = [node for node in root(drawn).findall(f"{SVG}text") if node.text == name]
        x, y, size = (float(node.get(k)) for k in ("x", "y", "font-size"))
        area = Area(x, y - 0.75 * size, text_width(name, size, bold=True), size)
        assert not any(area.meets(frame) for frame in boxes), name
        assert not any(within(point, area) for line in points(drawn).values() for point in line), name


def test_a_state_is_told_by_a_mark_and_a_readable_ground():
    def marks(state):
        (group, _) = root(concept_map([Node("a", "A", "g", (0, 0), state), TWO[1]], [], {"g": "G"})).iter(f"{SVG}g")
        return [child.tag.removeprefix(SVG) + (child.get("fill") or "") for child in group[1:3]]

    seen = {state: marks(state) for state in STATES}
    assert seen["new"][0] == "circle#ffffff" and seen["new"][1].startswith("text")          # an empty ring
    assert [m[:4] for m in seen["learning"]] == ["circ", "path"] and seen["learning"][0] == "circle#ffffff"
    assert seen["known"] == [f"circle{style.INK}", "pathnone"]                              # full, with a tick
    for _, ground in STATES.values():
        assert style.contrast(style.INK, ground) >= 4.5


def test_the_bar_says_how_much_is_known():
    figure = concept_map([Node("a", "A", "g", (0, 0), "learning", 0.25), TWO[1]], [], {"g": "G"})
    (group, _) = root(figure).iter(f"{SVG}g")
    whole, known = [float(r.get("width")) for r in group.findall(f"{SVG}rect")[1:]]
    assert known == pytest.approx(whole / 4, abs=0.01)


def test_what_is_to_come_is_dashed_and_what_lies_beside_the_course_is_round():
    nodes = [Node("a", "A", "g", (0, 0), to_come=True), Node("b", "B", "outside", (1, 0))]
    figure = concept_map(nodes, [], {"g": "G"})
    first, second = (group.find(f"{SVG}rect") for group in root(figure).iter(f"{SVG}g"))
    assert first.get("stroke-dasharray") and not second.get("stroke-dasharray")
    assert float(first.get("rx")) < 10 < float(second.get("rx"))
    assert {"its lesson is to come", "neighbouring topic"} <= set(texts(figure))
    assert "neighbouring topic" not in texts(concept_map(TWO, [], {"g": "G"}))


def test_a_gap_shows_its_number_and_hides_name_and_words():
    nodes = [Node("a", "Secret", "g", (0, 0), "", gap=3), Node("b", "Open", "g", (1, 0), "")]
    figure = concept_map(nodes, [Join("a", "b", "hides", "B")], {"g": "G"})
    said = texts(figure)
    assert "gap 3" in said and "(B)" in said and "Open" in said
    assert "Secret" not in figure.svg + figure.alt and "hides" not in figure.svg and "being learnt" not in said


def test_who_cannot_see_it_is_told():
    figure = concept_map(TWO, [Join("a", "b", "before")], {"g": "Letters"}, title="Map")
    assert repr(figure) == "Map: 2 concepts, 1 new and 1 known."
    assert figure.alt == "Map: 2 concepts, 1 new and 1 known; 1 line between them. Letters: Aaa (new), Bbb (known)."


def test_a_small_map_is_as_wide_as_its_legend():
    nodes = [Node("a", "A", "g", (0, 0), to_come=True), Node("b", "B", "outside", (1, 0))]
    assert outside(concept_map(nodes, [], {"g": "G"}, title="A title that says what the map is about")) == []


def test_the_same_map_has_the_same_bytes(drawn):
    assert concept_map(*course(), INSIDE).svg == drawn.svg


@pytest.mark.parametrize("nodes, joins, why", [
    ([], [], "at least one"),
    ([TWO[0], Node("a", "C", "g", (2, 0))], [], "two concepts have the id 'a'"),
    ([TWO[0], Node("c", "C", "g", (0, 0))], [], r"two concepts have the place \(0, 0\)"),
    ([Node("a", "A", "g", (0, 0), "half")], [], "a: unknown state 'half'; there are new, learning, known"),
    ([Node("a", "A", "g", (0, 0), share=1.5)], [], "its share is 1.5"),
    ([Node("a", "A name that is longer than its box", "g", (0, 0))], [], "a: its name .* is too long for its box"),
    (TWO, [Join("a", "x", "")], "the line a - x needs x: not in the map"),
])
def test_what_cannot_be_drawn_is_said(nodes, joins, why):
    with pytest.raises(ValueError, match=why):
        concept_map(nodes, joins, {"g": "G"})


coordinates = st.integers(-20, 20).map(float)


@given(coordinates, coordinates, coordinates, coordinates, st.integers(1, 15), st.integers(1, 15))
def test_a_line_crosses_an_area_where_one_of_its_points_lies_in_it(x1, y1, x2, y2, width, height):
    line, area = Line(x1, y1, x2, y2), Area(0, 0, width, height)
    points = [line.at(k / 500) for k in range(501)]
    if any(within(point, area) for point in points):
        assert line.crosses(area)
    if line.crosses(area):                                      # at most a corner lies between two of the points
        assert any(within(point, area.grown(0.1)) for point in points)


def test_words_go_where_they_are_free():
    ground = [Area(0, 0, 200, 80)]
    assert free_spot(50, 12, ground, [], []) == Area(5, 2, 50, 12)
    assert free_spot(50, 12, ground, [Area(0, 0, 60, 20)], []) == Area(145, 2, 50, 12)
    assert free_spot(50, 12, ground, [Area(0, 0, 200, 30)], [Line(20, 30, 20, 80)]) == Area(145, 66, 50, 12)


def test_the_ground_of_a_group_holds_its_boxes_and_no_other():
    ground = region([(0, 0), (1, 0), (1, 1)])
    for place in ((0, 0), (1, 0), (1, 1)):
        assert any(area.meets(box(place)) for area in ground)
    assert not any(area.meets(box(place)) for area in ground for place in ((0, 1), (2, 0), (2, 1), (1, 2)))
    assert not any(area.meets(other) for area in ground for other in region([(0, 1)]))
