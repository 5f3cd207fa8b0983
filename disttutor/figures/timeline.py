"""The timeline: what each rank computed and sent, when, and where it waited.

Each rank has its tracks on one time axis: computing above, in a thin strip below it its collectives, sends and
receives, and if asked a curve of the activations it holds. What is hatched grey in the upper track is time in which the
rank computes nothing, so the bubble is seen as an area.
"""

from collections.abc import Iterable, Sequence

from disttutor.figures.content import Content
from disttutor.figures.lanes import THIN, Box, boxes_of
from disttutor.figures.message_lines import Chosen, choose
from disttutor.figures.svg import Svg, drawing
from disttutor.figures.timeline_panel import EDGE, LEFT, Columns, Panel, Scale
from disttutor.figures.timeline_words import alt, definitions, legend, plain
from disttutor.traces import Trace
from disttutor.traces.arrows import TRACKS

HOVERABLE = 1500                            # with more boxes than this, their tooltips would be most of the file
MOST_BOXES = 16_000                         # in one picture; with more, thin neighbours are drawn as one
MOST_LETTERS = 1_450_000                    # of a drawing: as an image in a notebook it is 2 MB


def timeline(trace: Trace, *, steps: int | Iterable[int] | None = None, title: str | None = None,
             activations: bool = False, messages: bool = True, width: int = 1000) -> Svg:
    """The timeline of `trace`, or of some of its steps, `width` pixels wide.

    activations: draw under each rank how many micro-batches' activations it holds (`traces.activations.in_flight`).
    messages: draw a line from each send to its receive; where they are too many to follow some or all are left away,
    and the picture says so. Operations too narrow to be seen are drawn as one with their neighbours, and it says so.

    Raises ValueError for a trace without spans, for steps that it does not hold, below 500 pixels, and for a trace so
    large that its picture would not fit into a notebook (2 MB).
    """
    return compare([trace], [title or "What each rank does"], steps=steps, activations=activations, messages=messages,
                   width=width)


def compare(traces: Sequence[Trace], titles: Sequence[str], *, steps: int | Iterable[int] | None = None,
            activations: bool = False, messages: bool = True, width: int = 1000) -> Svg:
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
    contents = [Content(trace) for trace in traces]
    columns = Columns(contents)
    scale = Scale(max(c.makespan for c in contents) or 1e-9, LEFT, width - EDGE - columns.width)
    boxes, thin = _boxes(contents, scale)
    lines = [choose(c, scale.width(1.0)) if messages else Chosen([], 0) for c in contents]
    highest = max(1, *(held.peak for c in contents for held in c.held.values())) if activations else 0
    stages = max(c.stages_a_rank for c in contents)
    parts: list[str] = []
    y = float(EDGE)
    for content, name, some, chosen in zip(contents, titles, boxes, lines, strict=True):
        panel = Panel(content, name, scale, columns, width, y, boxes=some, messages=chosen.lines, stages=stages,
                      highest=highest, thin=thin, numbered=numbered)
        parts += panel.parts()
        y = panel.bottom + 14
    drawn = [box for some in boxes for where in some.values() for box in where]
    words, y = legend(contents, drawn, lines, stages, columns.hidden, activations, width, y - 6)
    parts += words
    said = [alt(c, name, columns.hidden, activations) for c, name in zip(contents, titles, strict=True)]
    figure = drawing(parts, width, y + EDGE - 4, alt=" ".join(said),
                     plain="; ".join(map(plain, contents, titles)) + ".", definitions=definitions(drawn, stages))
    _check_size(figure, contents)
    return figure


def _boxes(contents: list[Content], scale: Scale) -> tuple[list[dict[tuple[int, str], list[Box]]], float]:
    """The boxes of each trace, by rank and track, few enough to be drawn; and below what width they were joined."""
    thin = THIN
    while True:
        boxes = [{(rank, track): boxes_of(c, rank, track, scale.width(1.0), thin=thin,
                                          hoverable=len(c.trace.spans) <= HOVERABLE)
                  for rank in c.ranks for track in TRACKS} for c in contents]
        if thin > 20 or sum(len(some) for panel in boxes for some in panel.values()) <= MOST_BOXES:
            return boxes, thin
        thin *= 2


def _check_size(figure: Svg, contents: list[Content]) -> None:
    if len(figure.svg) > MOST_LETTERS:
        ranks = sum(c.trace.world_size for c in contents)
        operations = sum(len(c.trace.spans) for c in contents)
        raise ValueError(f"the timeline of {ranks:,} ranks with {operations:,} operations would be an image of "
                         f"{len(figure.svg) * 4 / 3e6:.1f} MB, more than a notebook should hold (2 MB); draw fewer "
                         "steps (steps=0), or a plan with fewer ranks or micro-batches, or look at all of it in "
                         "Perfetto (traces.save)")
