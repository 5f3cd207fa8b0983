"""The gradient sync: what every rank holds of one bucket before, during and after the exchange, from the real tensors.

Before, each rank has the gradient of its own share of the batch, and the rows differ; after, all rows are the same.
"""

from collections.abc import Sequence
from typing import Any

from disttutor.figures.style import BORDER, INK, MUTED, diverging, listing, plain_number, text_on
from disttutor.figures.svg import Svg, drawing, line, rect, text, text_width, wrap

EDGE, LEFT = 14, 74
MOST_COLUMNS = 48
ROW, SIZE, SMALL = 20, 11, 9.5
REDUCTIONS = {"sum": "sums", "mean": "averages"}


def gradient_sync(stages: Sequence[tuple[str, Any]], *, title: str = "One bucket of gradients, on every rank",
                  reduction: str = "mean", chunks: int | Sequence[int] | None = None, width: int = 1000) -> Svg:
    """One grid for each stage: a row for each rank, a column for each element of the bucket, a colour for its value.

    stages: pairs (name, values) in order of time, the first before the exchange and the last after it; values[rank] is
    that rank's gradient: an array, a tensor or a list, all of one length. reduction: "sum" or "mean", what the exchange
    makes of the ranks' gradients. chunks: into how many pieces the bucket is cut (as a ring does), or the length of
    each; their borders are drawn, and elements that changed since the stage before are framed. More than 48 elements
    are drawn as the means of up to 48 blocks, and the picture says so.

    Raises ValueError if there is nothing to draw, if lengths differ, for another reduction, for chunks that do not
    make up the bucket, and below 400 pixels.
    """
    import numpy as np

    values = _values(stages)
    names = [name for name, _ in stages]
    ranks, elements = values[0].shape
    if reduction not in REDUCTIONS:
        raise ValueError(f"unknown reduction {reduction!r}; reductions that work: {', '.join(REDUCTIONS)}")
    if width < 400:
        raise ValueError(f"a picture {width} pixels wide has no room for its numbers; use 400 or more")
    borders = _borders(chunks, elements)
    edges = _columns(elements, borders)
    grids = [_block_means(v, edges) for v in values]
    finite = np.concatenate([np.abs(g[np.isfinite(g)]) for g in grids] or [np.zeros(1)])
    grid = _Grid(edges, borders, width, float(finite.max()) if finite.size and finite.max() > 0 else 1.0,
                 printed=elements == len(edges) - 1)
    first, last = _difference(values[0]), _difference(values[-1])
    sums = f"Largest difference between ranks: {first} ({names[0]}), {last} ({names[-1]})."
    parts, y = [], float(EDGE)
    for words in wrap(title, width - 2 * EDGE, 14, bold=True):
        y += 18
        parts.append(text(EDGE, y - 4, words, size=14, bold=True))
    for words in wrap(sums, width - 2 * EDGE, SIZE):
        y += 15
        parts.append(text(EDGE, y, words, size=SIZE, fill=MUTED))
    y += 10
    before = None
    for (name, _), values_here, cells in zip(stages, values, grids, strict=True):
        changed = None if before is None else _changed(before, values_here, edges)
        drawn, y = grid.draw(name, cells, changed, y)
        parts += drawn
        before = values_here
    caption = _caption(elements, edges, reduction, ranks, borders, len(stages), values)
    drawn, y = grid.colour_bar(y + 4)
    parts += drawn
    for words in wrap(caption, width - 2 * EDGE, SMALL):
        y += 14
        parts.append(text(EDGE, y, words, size=SMALL, fill=MUTED))
    about = (f"{title}: {ranks} rank{'s' * (ranks != 1)}, {elements:,} element{'s' * (elements != 1)}, "
             f"{len(stages)} stage{'s' * (len(stages) != 1)} ({listing(names)})")
    return drawing(parts, width, y + EDGE, alt=f"{about}. {sums} The exchange {REDUCTIONS[reduction]}.",
                   plain=f"{about}.")


class _Grid:
    """Where cells lie and how they are coloured, the same for all stages."""

    def __init__(self, edges: list[int], borders: list[int], width: int, largest: float, printed: bool):
        self.edges, self.borders, self.width, self.largest = edges, borders, width, largest
        self.cell = (width - LEFT - EDGE) / (len(edges) - 1)
        self.printed = printed and self.cell >= 40

    def x(self, element: int) -> float:
        """Left edge of the column that begins with `element`."""
        return LEFT + self.edges.index(element) * self.cell

    def draw(self, name: str, cells: Any, changed: Any, y: float) -> tuple[list[str], float]:
        ranks, columns = cells.shape
        parts = []
        for words in wrap(name, self.width - 2 * EDGE, 12, bold=True):
            y += 17
            parts.append(text(EDGE, y - 4, words, size=12, bold=True))
        if len(self.borders) > 2:
            parts += self._chunk_names(y + 9)
            y += 13
        for rank in range(ranks):
            top = y + rank * ROW
            parts.append(text(EDGE, top + 14, f"rank {rank}", size=SIZE))
            parts += [self._cell(float(cells[rank, c]), LEFT + c * self.cell, top, f"rank {rank}, {name}")
                      for c in range(columns)]
        bottom = y + ranks * ROW
        for border in self.borders:
            parts.append(line(self.x(border), y - 3, self.x(border), bottom + 1, width=1.4))
        if changed is not None and not changed.all():
            parts += self._frames(changed, y)
        return parts, bottom + 10

    def _cell(self, value: float, x: float, y: float, where: str) -> str:
        known = value == value and abs(value) != float("inf")
        colour = diverging(value, self.largest) if known else "#ffffff"
        words = plain_number(value, 2) if known else ("nan" if value != value else "inf")
        shape = rect(x, y, self.cell - 0.6, ROW - 1, fill=colour, title=f"{where}: {value:.4g}")
        if known and not self.printed:
            return shape
        size = min(SMALL, SMALL * (self.cell - 2) / max(1.0, text_width(words, SMALL)))
        return shape + text(x + self.cell / 2, y + 13, words, size=size, fill=text_on(colour), anchor="middle")

    def _chunk_names(self, y: float) -> list[str]:
        parts = []
        for number, (a, b) in enumerate(zip(self.borders, self.borders[1:], strict=False)):
            room = self.x(b) - self.x(a)
            words = next((w for w in (f"chunk {number}", str(number)) if text_width(w, SMALL) + 4 <= room), "")
            parts.append(text((self.x(a) + self.x(b)) / 2, y, words, size=SMALL, fill=MUTED, anchor="middle"))
        return parts

    def _frames(self, changed: Any, y: float) -> list[str]:
        """A frame around each run of changed columns, row by row."""
        parts = []
        for rank, row in enumerate(changed):
            begin = None
            for column, here in enumerate([*row, False]):
                if here and begin is None:
                    begin = column
                if begin is not None and (not here or LEFT + column * self.cell in map(self.x, self.borders)):
                    width = (column - begin) * self.cell
                    if width:
                        parts.append(rect(LEFT + begin * self.cell + 0.7, y + rank * ROW, width - 1.6, ROW - 1.4,
                                          fill="none", stroke=INK, rx=2))
                    begin = column if here else None
        return parts

    def colour_bar(self, y: float) -> tuple[list[str], float]:
        wide, pieces = 220, 44
        parts = [rect(LEFT + i * wide / pieces, y, wide / pieces + 0.5, 10,
                      fill=diverging((i + 0.5) / pieces * 2 - 1, 1.0)) for i in range(pieces)]
        parts.append(rect(LEFT, y, wide, 10, fill="none", stroke=BORDER))
        for at, value in ((0, -self.largest), (wide / 2, 0.0), (wide, self.largest)):
            parts.append(line(LEFT + at, y + 10, LEFT + at, y + 13, stroke=MUTED))
            parts.append(text(LEFT + at, y + 24, plain_number(value), size=SMALL, fill=MUTED, anchor="middle"))
        parts.append(text(LEFT + wide + 40, y + 9, "value of the gradient", size=SMALL, fill=MUTED))
        return parts, y + 26


def _values(stages: Sequence[tuple[str, Any]]) -> list[Any]:
    """Each stage's values as an array [rank, element] of float64. Raises ValueError where lengths differ."""
    import numpy as np

    if not stages:
        raise ValueError("there is no stage to draw; give at least [('before', values), ('after', values)]")
    arrays = []
    for name, ranks in stages:
        rows = [np.asarray(row.tolist() if hasattr(row, "tolist") else row, dtype=np.float64).ravel() for row in ranks]
        lengths = [row.size for row in rows]
        if not rows or not lengths[0] or len(set(lengths)) > 1:
            raise ValueError(f"stage {name!r} needs a gradient of one length, 1 or more, from each rank; the lengths "
                             f"are {lengths}")
        arrays.append(np.stack(rows))
        if arrays[-1].shape != arrays[0].shape:
            raise ValueError(f"stage {name!r} has (ranks, elements) {arrays[-1].shape}, but stage {stages[0][0]!r} "
                             f"has {arrays[0].shape}; all stages show the same bucket")
    return arrays


def _borders(chunks: int | Sequence[int] | None, elements: int) -> list[int]:
    """Where chunks begin, and where the last one ends. Sizes differ by at most one, the larger first."""
    if chunks is None:
        return [0, elements]
    if isinstance(chunks, int):
        if chunks < 1:
            raise ValueError(f"chunks is {chunks}; it must be 1 or more")
        chunks = [elements // chunks + (i < elements % chunks) for i in range(chunks)]
    if sum(chunks) != elements or min(chunks) < 0:
        raise ValueError(f"chunks of {list(chunks)} elements do not make up a bucket of {elements}")
    borders = [0]
    for size in chunks:
        if size:
            borders.append(borders[-1] + size)
    return borders


def _columns(elements: int, borders: list[int]) -> list[int]:
    """Where each column's block of elements begins, and where the last one ends; no block crosses a chunk's border."""
    if elements <= MOST_COLUMNS:
        return list(range(elements + 1))
    pieces = max(1, MOST_COLUMNS // (len(borders) - 1))
    edges = [0]
    for a, b in zip(borders, borders[1:], strict=False):
        n = min(pieces, b - a)
        edges += [a + (b - a) * (i + 1) // n for i in range(n)]
    return edges


def _block_means(values: Any, edges: list[int]) -> Any:
    import numpy as np

    return np.add.reduceat(values, edges[:-1], axis=1) / np.diff(edges)


def _changed(before: Any, after: Any, edges: list[int]) -> Any:
    import numpy as np

    differs = (before != after) & ~(np.isnan(before) & np.isnan(after))
    return np.logical_or.reduceat(differs, edges[:-1], axis=1)


def _difference(values: Any) -> str:
    """Largest difference between two ranks at one element."""
    import numpy as np

    if not np.isfinite(values).all():
        return "not finite"
    largest = float((values.max(axis=0) - values.min(axis=0)).max())
    return plain_number(largest) if largest else "none"


def _caption(elements: int, edges: list[int], reduction: str, ranks: int, borders: list[int], stages: int,
             values: list[Any]) -> str:
    import numpy as np

    columns = len(edges) - 1
    words = ["A row is a rank, a column " + ("an element." if columns == elements else
             f"the mean of a block of elements ({elements:,} elements in {columns} columns)."),
             f"The exchange {REDUCTIONS[reduction]} over {ranks} rank{'s' * (ranks != 1)}."]
    if len(borders) > 2:
        words.append(f"Upright lines: borders of the {len(borders) - 1} chunks.")
    if stages > 1 and len(borders) > 2:
        words.append("Framed: changed since the stage above.")
    lost = sum(int((~np.isfinite(v)).sum()) for v in values)
    if lost:
        words.append(f"{lost:,} values are not finite (inf or nan).")
    return " ".join(words)
