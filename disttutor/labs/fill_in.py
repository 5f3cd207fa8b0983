"""The concept map with gaps as a widget: choose a word for each gap, check, and see why."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from disttutor.cards import ENGLISH, HINGLISH
from disttutor.cards.progress import Progress, here
from disttutor.labs.concept_gaps import Gap, Gaps, gaps
from disttutor.labs.concept_nodes import draw
from disttutor.labs.widget_parts import script, with_fallback


class FillIn(anywidget.AnyWidget):
    """A map with gaps; as a cell's value it shows itself, and without a kernel as an image with the words to choose
    from and the answers folded away.

    number: which map. svg: the drawing; gaps: what is asked at each; results: by mark what became of it; said: about
    all of them; checked: how often it was checked.
    """

    _esm = script("map_drawing.js", "fill_in.js")
    number = traitlets.Int(1).tag(sync=True)
    svg = traitlets.Unicode("").tag(sync=True)
    gaps = traitlets.List().tag(sync=True)
    results = traitlets.Dict().tag(sync=True)
    said = traitlets.Unicode("").tag(sync=True)
    checked = traitlets.Int(0).tag(sync=True)

    def __init__(self, number: int = 1, *, names: int = 8, lines: int = 4, folder: str | Path = ".",
                 progress: Progress | None = None):
        super().__init__()
        self._names, self._lines, self._folder, self._progress = names, lines, Path(folder), progress
        self._begin(number)
        self.on_msg(self._answer)

    def _begin(self, number: int) -> None:
        self._asked, self._shown = gaps(number, names=self._names, lines=self._lines), False
        with self.hold_sync():
            self.gaps = [{"mark": gap.mark, "ask": gap.ask, "words": list(gap.words)} for gap in self._asked.gaps]
            self.results, self.said = {}, ""
            self.svg = self._draw({}).svg
            self.number = number

    def check(self, given: Mapping[str, str]) -> None:
        """Say of each word whether it is right there, and why; the right ones are written into the drawing."""
        marks = self._asked.check(given)
        with self.hold_sync():
            self.results = {gap.mark: verdict(gap, given.get(gap.mark, ""), marks[gap.mark])
                            for gap in self._asked.gaps}
            self.svg = self._draw({mark: True for mark, right in marks.items() if right}).svg
            self.said = self._about(list(marks.values()))
            self.checked += 1

    def show(self) -> None:
        """Fill in everything. The map then counts as solved only when another one is."""
        self._shown = True
        self.check({gap.mark: gap.answer for gap in self._asked.gaps})

    def _about(self, marks: list[bool | None]) -> str:
        right, count = sum(mark is True for mark in marks), len(marks)
        if right < count:
            empty = marks.count(None)
            still = "" if not empty else " 1 is still empty." if empty == 1 else f" {empty} are still empty."
            return f"{right} of {count} are right.{still}"
        if self._shown:
            return "These are the answers. Try another map to find them yourself."
        progress = self._progress or here()
        progress.solved(self._asked.puzzle)
        return f"All {count} are right: map {self._asked.number} is solved. {progress.notice}".strip()

    def _draw(self, found: Mapping[str, bool]) -> Any:
        return draw_gaps(self._asked, self._folder, found)

    def _answer(self, _: object, message: dict, buffers: object) -> None:
        if message.get("ask") == "check":
            self.check(message.get("given", {}))
        elif message.get("ask") == "show":
            self.show()
        elif message.get("ask") == "another":
            self._begin(self.number + 1)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict] | None:
        return with_fallback(super()._repr_mimebundle_(**kwargs), fallback(self._asked, self._folder), repr(self))

    def __repr__(self) -> str:
        return plain(self._asked)


def fill_in(number: int = 1, *, names: int = 8, lines: int = 4) -> FillIn:
    """The concept map with so many names and lines to be found. The same number always gives the same gaps; when all
    are right, the puzzle "concept-map-<number>" is solved. Raises ValueError for more than there is room for."""
    return FillIn(number, names=names, lines=lines)


def draw_gaps(asked: Gaps, folder: Path, found: Mapping[str, bool]) -> Any:
    """The map as an Svg, with gaps except at the marks that are found."""
    names = {id: k for id, k in asked.names.items() if f"gap {k}" not in found}
    lines = {ends: letter for ends, letter in asked.lines.items() if f"({letter})" not in found}
    return draw(None, folder, gaps=names, asked=lines, title=f"Concept map {asked.number}, with gaps")


def verdict(gap: Gap, given: str, right: bool | None) -> dict[str, Any]:
    """What is said below a gap: its state, what was given, and sentences in English and Hinglish."""
    if right is None:
        return {"state": "empty", "given": "", "words": "Nothing is chosen yet.", "en": [], "hi": []}
    if right:
        return {"state": "right", "given": given, "words": f"Right: {given}.", "en": gap.reasons[ENGLISH],
                "hi": gap.reasons[HINGLISH]}
    return {"state": "wrong", "given": given, "words": f"Not “{given}”. Look for: {gap.hint}", "en": [], "hi": []}


def fallback(asked: Gaps, folder: Path) -> str:
    """The map with gaps as HTML that needs no kernel: image, questions, words, and the answers folded away."""
    asks = "".join(f"<li><b>{gap.mark}</b>: {escape(gap.ask)}</li>" for gap in asked.gaps)
    answers = "".join(f"<li><b>{gap.mark}</b>: {escape(gap.answer)}. {escape(' '.join(gap.reasons[ENGLISH]))} "
                      f"<i lang='{HINGLISH}'>{escape(' '.join(gap.reasons[HINGLISH]))}</i></li>" for gap in asked.gaps)
    return (f"{draw_gaps(asked, folder, {}).html()}<p>Words: {escape(words(asked))}.</p><ul>{asks}</ul>"
            f"<details><summary>Answers</summary><ul>{answers}</ul></details>")


def plain(asked: Gaps) -> str:
    """The questions and the words as text."""
    lines = [f"{gap.mark}: {gap.ask}" for gap in asked.gaps]
    return "\n".join([f"Concept map {asked.number}, with gaps. Words: {words(asked)}.", *lines])


def words(asked: Gaps) -> str:
    """All words to choose from, names first."""
    return ", ".join(dict.fromkeys(word for gap in asked.gaps for word in gap.words))
