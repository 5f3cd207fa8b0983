"""Cloze deletions: `==words==` in a paragraph, and the cards they give, one for each deletion.

`==1;;words;;hint==` carries a number and a hint: deletions of one number are asked together, and the hint stands in
the gap. Bold text and `{{braces}}` are deletions only where that is asked for.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from disttutor.cards.card import GAP

_PAIRS = {"==": re.compile(r"(?<!=)==(?!=)"), "**": re.compile(r"(?<!\*)\*\*(?!\*)")}
_BRACES = re.compile(r"\{\{([^{}\n]++)\}\}")


@dataclass(frozen=True, slots=True)
class Deletion:
    """Letters from start up to end, marks included. number: "" where it has none."""

    start: int
    end: int
    words: str
    number: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Gapped:
    """One card of a paragraph: the text with gaps, the whole text, and the words of its gaps."""

    front: str
    back: str
    missing: str


def has_marks(masked: str, marks: Iterable[str]) -> bool:
    """Whether there may be a deletion. Quick, and wrong only by saying yes too often."""
    return any(mark in masked for mark in marks)


def find_deletions(text: str, masked: str, marks: Iterable[str] = ("==",)) -> list[Deletion]:
    """The deletions of a paragraph, by the marks that are asked for: `==`, `**`, `{{`. masked: the text with NULs for
    what is no prose. A mark touches its words, stays in its line, and does not compare as in `a==b or c==d`.
    """
    found = [spot for mark in marks for spot in (_in_braces(masked) if mark == "{{" else _in_pairs(masked, mark))]
    deletions: list[Deletion] = []
    for start, end in sorted(found):
        if not deletions or start >= deletions[-1].end:
            deletions.append(_deletion(text, start, end))
    return deletions


def looks_like_cloze(line: str) -> bool:
    """Whether somebody may have meant a deletion in this line: it has two marks of two equals signs."""
    return line.count("==") > 1 and len(_PAIRS["=="].findall(line)) > 1


def gapped(text: str, deletions: Iterable[Deletion]) -> list[Gapped]:
    """The cards of a paragraph, in the order in which their gaps begin."""
    deletions = list(deletions)
    keys = [d.number or f"at {d.start}" for d in deletions]
    asked: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        asked.setdefault(key, []).append(place)
    back = _written(text, deletions, ())
    return [Gapped(_written(text, deletions, places), back, ", ".join(deletions[place].words for place in places))
            for places in asked.values()]


def _in_pairs(masked: str, mark: str) -> Iterator[tuple[int, int]]:
    opened = line_end = -1
    for run in _PAIRS[mark].finditer(masked):
        start, end = run.span()
        if start > line_end:
            opened, line_end = -1, masked.find("\n", start)
            line_end = len(masked) if line_end < 0 else line_end
        closes = opened >= 0 and start > opened + 2 and not masked[start - 1].isspace()
        opens = bool(masked[end:end + 1].strip())
        if closes and not _compares(masked, opened, end):
            yield opened, end
            opened = -1
        elif opens:                 # the nearest one counts, as in emphasis
            opened = start
        elif closes:
            opened = -1


def _compares(masked: str, start: int, end: int) -> bool:
    """Like `a==b or c==d`: words touch both marks from outside too, and there is white space between the marks."""
    return (masked[max(0, start - 1):start].isalnum() and masked[end:end + 1].isalnum()
            and len(masked[start + 2:end - 2].split(maxsplit=1)) > 1)


def _in_braces(masked: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _BRACES.finditer(masked) if match[1].strip())


def _deletion(text: str, start: int, end: int) -> Deletion:
    parts = text[start + 2:end - 2].split(";;")
    number = parts.pop(0).lstrip("0") or "0" if len(parts) > 1 and _is_number(parts[0]) and parts[1].strip() else ""
    return Deletion(start, end, parts[0] or ";;".join(parts), number, ";;".join(parts[1:]).strip() if parts[0] else "")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _written(text: str, deletions: list[Deletion], gaps: Iterable[int]) -> str:
    """The text without marks, with a gap for those deletions that are asked."""
    asked, pieces, done = set(gaps), [], 0
    for place, deletion in enumerate(deletions):
        gap = f"[{deletion.hint}]" if deletion.hint else GAP
        pieces += text[done:deletion.start], gap if place in asked else deletion.words
        done = deletion.end
    return "".join([*pieces, text[done:]])
