"""The course: all its lessons, what each asks and runs, what it builds on, and a map of them.

Lessons that are there are links; of the others the map says what they will be about.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Lesson:
    """number, title, the question it answers, what runs for real in it, and the numbers of those it builds on."""

    number: int
    title: str
    question: str
    runs: str
    after: tuple[int, ...] = ()

    def file(self, folder: Path) -> Path | None:
        """The lesson's notebook in `folder`, if it is there."""
        found = sorted(folder.glob(f"{self.number:02d}_*.ipynb"))
        own = [path for path in found if re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", path.name)]
        return own[0] if own else None


LESSONS = (
    Lesson(0, "Start here", "What are ranks, and what can this machine show?", "4 ranks start and meet"),
    Lesson(1, "Why distribute", "What does not fit, and what takes too long?",
           "the memory of a training, measured and worked out", (0,)),
    Lesson(2, "How ranks talk", "How does a sum get to everybody?", "six ways to all-reduce, message by message", (0,)),
    Lesson(3, "Data parallelism", "Does half a batch each give the same model?",
           "gradients exchanged while backward goes on", (0,)),
    Lesson(4, "Gradient accumulation", "Are four small batches one large batch?",
           "one update from many micro-batches", (3,)),
    Lesson(5, "Together or each at its own pace", "What if nobody waits for the slowest?",
           "a parameter server, a slow rank, rare meetings", (3,)),
    Lesson(6, "ZeRO: sharded states", "Why does every rank keep a copy of everything?",
           "stages 1, 2 and 3, their bytes counted", (3,)),
    Lesson(7, "Tensor parallelism", "Can one layer be cut in two?", "a transformer's layers in columns and rows", (2,)),
    Lesson(8, "Pipeline parallelism", "Can layers lie on different ranks, and who waits?",
           "six schedules, measured and predicted", (2, 3)),
    Lesson(9, "Activation checkpointing", "Is it cheaper to compute twice than to remember?",
           "memory and time of recomputation", (1,)),
    Lesson(10, "Hybrid: the mesh", "How do these ways of cutting go together?", "8 ranks as 2 x 2 x 2", (3, 7, 8)),
    Lesson(11, "Long texts and experts", "What if the text itself is too long?",
           "ring attention, and tokens that travel to experts", (7,)),
    Lesson(12, "The scaling wall", "When do more devices stop helping?", "strong and weak scaling", (3, 4)),
    Lesson(13, "Choosing a strategy", "Which way of cutting for which model?", "a planner that gives its reasons",
           (6, 10, 12)),
    Lesson(14, "Many machines, and failures", "What if a machine dies at night?",
           "a crash, and going on with fewer ranks", (10,)),
    Lesson(15, "Every framework", "How do others write the same step?", "each framework that runs here", (3, 6)),
    Lesson(16, "Review", "What has stayed with you?", "a plan of your own, on real ranks", (13,)),
)

BANDS = (
    ("The ground", (0, 1, 2)),
    ("Many copies of one model", (3, 4, 5, 6)),
    ("One model in pieces", (7, 8, 9, 11)),
    ("Put together", (10, 12, 13)),
    ("Out in the world", (14, 15, 16)),
)


@dataclass(frozen=True)
class CourseMap:
    """The map of the course for the lessons in `folder`. As a cell's value it shows itself: a drawing, and a table with
    links."""

    folder: Path

    def html(self) -> str:
        """Drawing and table."""
        head = "".join(f"<th style='text-align:left'>{words}</th>" for words in
                       ("", "lesson", "its question", "what runs for real", "builds on"))
        rows = "".join(self._row(lesson) for lesson in LESSONS)
        return f"{self.drawing().html()}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def drawing(self) -> Any:
        """The lessons in five bands from the ground up; those that are there in colour."""
        return draw(frozenset(lesson.number for lesson in LESSONS if lesson.file(self.folder)))

    def _row(self, lesson: Lesson) -> str:
        file = lesson.file(self.folder)
        title = escape(lesson.title)
        name = f"<a href='{escape(file.name)}'>{title}</a>" if file else f"{title} <i>(to come)</i>"
        after = ", ".join(f"{n:02d}" for n in lesson.after)
        cells = (f"{lesson.number:02d}", name, escape(lesson.question), escape(lesson.runs), after)
        return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return "\n".join(f"{lesson.number:02d} {lesson.title}{'' if lesson.file(self.folder) else ' (to come)'}: "
                         f"{lesson.question}" for lesson in LESSONS)


def course_map(folder: str | Path = ".") -> CourseMap:
    """The map of the course, with links to the lessons that lie in `folder` (by default where the notebook is)."""
    return CourseMap(Path(folder))


HERE, TO_COME = "#cfe6f5", "#f1f2f4"
EDGE, NAMES, BOX, HEIGHT, GAP = 16, 150, 186, 62, 14       # pixels; NAMES: width of the bands' names


def draw(there: frozenset[int] | Sequence[int]) -> Any:
    """The map as an Svg; `there`: numbers of the lessons that can be opened."""
    from disttutor.figures.style import COOL, INK, MUTED
    from disttutor.figures.svg import drawing, rect, text, wrap

    titles = {lesson.number: lesson.title for lesson in LESSONS}
    parts, y = [text(EDGE, 30, "The course, from the ground up", size=15, bold=True)], 46.0
    for name, numbers in BANDS:
        words = wrap(name, NAMES - 20, 12.5, bold=True)
        for k, line in enumerate(words):
            parts.append(text(EDGE, y + HEIGHT / 2 + 4 + 16 * (k - (len(words) - 1) / 2), line, size=12.5, bold=True))
        for place, number in enumerate(numbers):
            x, open_ = EDGE + NAMES + place * (BOX + GAP), number in there
            parts.append(rect(x, y, BOX, HEIGHT, fill=HERE if open_ else TO_COME, stroke=COOL if open_ else "#b9bec6",
                              rx=7))
            parts.append(text(x + 10, y + 20, f"{number:02d}", size=12, fill=INK if open_ else MUTED, bold=True))
            if not open_:
                parts.append(text(x + BOX - 10, y + 20, "to come", size=10, fill=MUTED, anchor="end"))
            for k, line in enumerate(wrap(titles[number], BOX - 20, 12)[:2]):
                parts.append(text(x + 10, y + 38 + 15 * k, line, size=12, fill=INK if open_ else MUTED))
        y += HEIGHT + GAP
    said = "; ".join(f"{name}: " + ", ".join(
        f"{n:02d} {titles[n]}{'' if n in there else ' (to come)'}" for n in numbers) for name, numbers in BANDS)
    width = 2 * EDGE + NAMES + 4 * BOX + 3 * GAP
    return drawing(parts, width, y + 4, alt=f"Map of the course. {said}.", plain="Map of the course.")
