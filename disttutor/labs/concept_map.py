"""The concept map of the course, with what the learner knows. In lesson 16 it has gaps to be filled in (`fill_in`)."""

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from disttutor.cards.progress import Progress, here
from disttutor.labs.concept_nodes import NOTHING, details, draw, known_by, listed
from disttutor.labs.fill_in import fill_in
from disttutor.labs.widget_parts import script, with_fallback

__all__ = ["ConceptMap", "concept_map", "fill_in"]


class ConceptMap(anywidget.AnyWidget):
    """The map; as a cell's value it shows itself, and without a kernel as an image and a list with links.

    What is stored in a notebook holds nobody's progress: there every concept is new. svg: the drawing; concepts: what
    is said of each; seen: how often the progress was looked at.
    """

    _esm = script("map_drawing.js", "concept_map.js")
    svg = traitlets.Unicode("").tag(sync=True)
    concepts = traitlets.Dict().tag(sync=True)
    seen = traitlets.Int(0).tag(sync=True)

    def __init__(self, folder: str | Path = ".", progress: Progress | None = None):
        super().__init__()
        self._folder, self._progress = Path(folder), progress
        self.look_again()
        self.on_msg(self._answer)

    def look_again(self) -> None:
        """Draw the map anew, with what was learnt since."""
        progress = self._progress or here()
        progress.refresh()
        known = known_by(progress)
        self.svg = draw(known, self._folder).svg
        self.concepts = details(known, self._folder)
        self.seen += 1

    def _answer(self, _: object, message: dict, buffers: object) -> None:
        if message.get("ask") == "look again":
            self.look_again()

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict] | None:
        return with_fallback(super()._repr_mimebundle_(**kwargs), self.fallback(), repr(self))

    def fallback(self) -> str:
        """The map as HTML that needs no kernel: an image, and the list of concepts below it."""
        summary = "<summary>All concepts, with links to their lessons</summary>"
        return f"{draw(NOTHING, self._folder).html()}<details>{summary}{listed(self._folder)}</details>"

    def __repr__(self) -> str:
        return draw(NOTHING, self._folder).plain


def concept_map(folder: str | Path = ".") -> ConceptMap:
    """The concept map of the course, with links to the lessons that lie in `folder` (by default, the notebook's)."""
    return ConceptMap(folder)
