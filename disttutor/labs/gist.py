"""What stays of a lesson: its gist in six lines, its part of the kitchen story, and all of it told to a child.

Everything in two languages, sentence beside sentence: English, and Hinglish (Hindi in Latin letters, with English
technical words), marked as such so that a screen reader does not read it as English.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from disttutor.cards import ENGLISH, HINGLISH


@dataclass(frozen=True, slots=True)
class Parallel:
    """A text in two languages. As a cell's value it shows itself, sentence beside sentence.

    hinglish, english: as many sentences each; numbered: whether they are counted.
    """

    title: str
    hinglish: Sequence[str]
    english: Sequence[str]
    numbered: bool = True

    def __post_init__(self) -> None:
        if len(self.hinglish) != len(self.english):
            raise ValueError(f"{self.title}: {len(self.hinglish)} sentences in Hinglish but {len(self.english)} in "
                             "English; both need the same, side by side")

    def _lines(self, sentences: Sequence[str]) -> list[str]:
        return [f"{i}. {words}" if self.numbered else words for i, words in enumerate(sentences, 1)]

    def html(self) -> str:
        """A table of two columns, each with its language."""
        cell = "<td lang='{}' style='text-align:left;vertical-align:top;width:50%'>{}</td>"
        head = "".join(f"<th style='text-align:left'>{words}</th>" for words in ("Hinglish", "English"))
        rows = "".join(f"<tr>{cell.format(HINGLISH, escape(left))}{cell.format(ENGLISH, escape(right))}</tr>" for
                       left, right in zip(self._lines(self.hinglish), self._lines(self.english), strict=True))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<div><b>{escape(self.title)}</b></div>{table}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return "\n".join([self.title, "", *self._lines(self.hinglish), "", *self._lines(self.english)])


def gist(lesson: int) -> Parallel:
    """The gist of a lesson in six lines. Raises ValueError for a number that no lesson has."""
    told = _lesson(lesson)
    return Parallel(f"The gist of lesson {lesson:02d}", told["hi"], told["en"])


def kitchen(*lessons: int) -> Parallel:
    """The kitchen story of these lessons, or of all of them. Raises ValueError for a number that no lesson has."""
    told = [_lesson(number) for number in lessons or sorted(_texts()["lesson"])]
    number = [f"{part['number']:02d} · " * (len(told) > 1) for part in told]
    hinglish, english = ([n + part[key] for n, part in zip(number, told, strict=True)]
                         for key in ("kitchen_hi", "kitchen_en"))
    return Parallel("In the kitchen", hinglish, english, numbered=False)


def to_a_child() -> Parallel:
    """What distributed training is, told to a child."""
    child = _texts()["child"]
    return Parallel("Told to a child", child["hi"], child["en"], numbered=False)


@cache
def _texts() -> dict[str, Any]:
    texts = tomllib.loads((resources.files("disttutor.labs") / "gists.toml").read_text(encoding="utf-8"))
    return {**texts, "lesson": {lesson["number"]: lesson for lesson in texts["lesson"]}}


def _lesson(number: int) -> dict[str, Any]:
    told = _texts()["lesson"]
    if type(number) is not int or number not in told:
        raise ValueError(f"there is no lesson {number!r}; the lessons are {min(told)} to {max(told)}")
    return told[number]
