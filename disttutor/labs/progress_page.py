"""The learner's progress on one page: days, cards, lessons, puzzles, and how well they know what they know."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from disttutor.cards.progress import here
from disttutor.cards.shelf import every_card
from disttutor.labs.course import LESSONS
from disttutor.labs.overview import LessonDone, Overview, overview

ENOUGH = 10             # answers with a confidence, from which on the curve says something
MARKS = {"done": "✓", "started": "◐", "new": "○"}
KEPT = ("All of this lies in your data directory, in files that only you can read; nothing leaves this machine. "
        "To keep a copy, or to take it to another computer: `disttutor cards export --progress FILE`, and there "
        "`disttutor cards import FILE`.")
CELL = "text-align:left;padding:2px 14px 2px 0;vertical-align:top"


@dataclass(frozen=True)
class ProgressPage:
    """The page; as a cell's value it shows itself. It holds no path of the machine."""

    view: Overview
    folder: Path
    in_memory: bool = False

    def html(self) -> str:
        """The page as HTML."""
        view = self.view
        parts = [f"<p><b>{escape(view.greeting())}</b></p>"]
        if view.studied:
            from disttutor.figures.study_days import study_days

            parts.append(study_days(view.studied, view.today).html())
        parts += [f"<p>{escape(words)}</p>" for words in self._cards()]
        parts.append(self._lessons())
        parts.append(f"<p>{escape(self._puzzles())}</p>")
        parts.append(self._calibration())
        parts += [f"<p>{_marked(words)}</p>" for words in self._kept()]
        return "".join(parts)

    def __repr__(self) -> str:
        lines = [self.view.greeting(), *self._cards(), *(self._line(lesson) for lesson in self.view.lessons),
                 self._puzzles(), self._sureness(), *self._kept()]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def _cards(self) -> Iterator[str]:
        view = self.view
        if view.learning or view.known:
            yield f"Cards to review: {view.waiting} today, {view.tomorrow} tomorrow, {view.week} within seven days."
        yield f"Cards: {view.known} known, {view.learning} being learnt, {view.new} new."

    def _there(self, lesson: LessonDone) -> str:
        file = LESSONS[lesson.number].file(self.folder)
        return file.name if file else ""

    def _line(self, lesson: LessonDone) -> str:
        to_come = "" if self._there(lesson) else " (to come)"
        return f"{MARKS[lesson.state]} {lesson.number:02d} {lesson.title}{to_come}: {_answered(lesson)}"

    def _lessons(self) -> str:
        there = [lesson for lesson in self.view.lessons if self._there(lesson)] or list(self.view.lessons)
        done = sum(lesson.state == "done" for lesson in there)
        to_come = f" ({len(self.view.lessons) - len(there)} more are to come)" * (len(there) < len(self.view.lessons))
        head = "".join(f"<th style='{CELL}'>{words}</th>" for words in ("", "lesson", "", "its cards answered"))
        rows = []
        for lesson in self.view.lessons:
            file, title = self._there(lesson), escape(lesson.title)
            name = f"<a href='{escape(file)}'>{title}</a>" if file else f"{title} <i>(to come)</i>"
            cells = (f"{lesson.number:02d}", name, f"{MARKS[lesson.state]} {lesson.state}", _answered(lesson))
            rows.append("<tr>" + "".join(f"<td style='{CELL}'>{cell}</td>" for cell in cells) + "</tr>")
        return (f"<p>Lessons done: {done} of {len(there)}{to_come}. One is done when each of its cards was answered "
                "once.</p>"
                f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>")

    def _puzzles(self) -> str:
        solved = [puzzle.replace("-", " ") for puzzle in self.view.puzzles]
        return f"Puzzles solved: {len(solved)} ({', '.join(solved)})." if solved else "Puzzles solved: none yet."

    def _calibration(self) -> str:
        if self.view.calibration.count < ENOUGH:
            return f"<p>{escape(self._sureness())}</p>"
        from disttutor.figures.calibration import calibration_curve

        return calibration_curve(self.view.calibration.levels).html()

    def _sureness(self) -> str:
        count = self.view.calibration.count
        if count < ENOUGH:
            return (f"How well do you know what you know? After {ENOUGH} answers with a confidence a curve shows it; "
                    f"until now there are {count}.")
        levels = (f"{level.confidence} % sure: {level.right} of {level.count} right"
                  for level in self.view.calibration.levels)
        return f"{'; '.join(levels)}."

    def _kept(self) -> Iterator[str]:
        if self.in_memory:
            yield "Your data directory cannot be written now, so progress is kept in memory until it can."
        yield KEPT


def _marked(words: str) -> str:
    """As HTML, with what stands between backticks as code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(words))


def _answered(lesson: LessonDone) -> str:
    return f"{lesson.answered} of {lesson.cards}" if lesson.cards else "no cards yet"


def progress_page(folder: str | Path = ".") -> ProgressPage:
    """Your progress on the course's cards and those of your notes, with links to the lessons that lie in `folder` (by
    default where the notebook is)."""
    progress = here()
    cards, _ = every_card(progress)
    return ProgressPage(overview(progress, cards), Path(folder), bool(progress.notice))
