"""One card: a question that is asked again and again, in one or more languages, on one schedule.

Five kinds. A *basic* card shows its answer and the learner says whether they knew it. A *choice* is made among options,
each wrong one with its reason. A *cloze* is a sentence with a gap. In an *order* card, steps are brought into order. A
*number* card draws a new question each time, and the library computes its answer.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# Languages by their BCP 47 tags. Hinglish is Hindi in Latin letters, with English technical words as they are.
ENGLISH, HINGLISH = "en", "hi-Latn"
KINDS = ("basic", "choice", "cloze", "order", "number")
GAP = "[...]"


@dataclass(frozen=True, slots=True)
class Option:
    """One answer to choose, as Markdown. why: for a wrong one, the reason why it is wrong."""

    text: str
    right: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Face:
    """A card in one language. All texts are Markdown, with mathematics between dollar signs.

    question: what is asked; for a cloze the sentence with `[...]` in its gap. answer: what is shown afterwards; for a
    cloze the whole sentence, for a choice why the right option is right, for a number the worked solution. options: of
    a choice, in the order of the deck; exactly one is right. steps: of an order card, in the right order. missing: of a
    cloze, the words in its gap.
    """

    question: str
    answer: str
    options: tuple[Option, ...] = ()
    steps: tuple[str, ...] = ()
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question with numbers that were drawn: its faces, and the right number.

    value: the right answer in `unit`. tolerance: how far an answer may be off, as a share of the value (0 for a count).
    """

    faces: Mapping[str, Face]
    value: float
    unit: str = ""
    tolerance: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A question with its answer.

    id: never changes, whatever happens to the text: the history hangs on it. deck: names separated by slashes. kind:
    one of `KINDS`. faces: by BCP 47 tag, the first is the one to begin with; empty for a number card, whose faces are
    drawn. also: further decks it belongs to. lesson, section: where in the course it is explained (number, and a
    heading of that notebook). source: paper, section or equation. concepts: nodes of the concept map. family: cards of
    one family are easily confused with each other, so they are asked close together. draw: of a number card.
    """

    id: str
    deck: str
    kind: str = "basic"
    faces: Mapping[str, Face] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    lesson: int | None = None
    section: str = ""
    source: str = ""
    concepts: tuple[str, ...] = ()
    family: str = ""
    draw: Callable[[random.Random], Drawn] | None = None

    def face(self, language: str) -> Face:
        """The card in this language, or in its first one where it has not this one."""
        return self.faces.get(language) or next(iter(self.faces.values()))
