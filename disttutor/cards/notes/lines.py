"""The lines of a note, each with what a card reader must know of it: is it code, hidden, a table, in which language."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from disttutor.cards.notes.blocks import Block, find_blocks, is_too_deep
from disttutor.cards.notes.front_matter import FrontMatter, read_front_matter
from disttutor.cards.notes.language import HeadingLanguages
from disttutor.cards.notes.masking import HIDDEN, MASKED, WORDS, Unclosed, find_spans, mask

TEXT, CODE, TABLE, BLANK, HIDES, END = "text", "code", "table", "blank", "hides", "end"
_QUOTE = re.compile(r"(?:[ \t]{0,3}>[ \t]?)+")
_CALLOUT = re.compile(r"\[!([^\]\n]*+)\][+-]?[ \t]*+")
_SCHEDULE_CALLOUT = "sr|card-metadata"
_HIDDEN = re.compile(f"{HIDDEN}+")


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its quote markers and comments. number: from 1. text, masked: as long as each other; masked has
    a NUL for each letter that is no prose. kind: TEXT, CODE, TABLE (all three are parts of a paragraph), BLANK, HIDES
    (only a comment: as if it were not there), END (the plugin's schedule: it ends a card). language: what headings say,
    or "". opens: a callout begins here."""

    number: int
    text: str
    masked: str
    kind: str
    language: str
    opens: bool = False


class NoteLines:
    """A note taken apart. lines: what stands after the front matter. raw: every line as written, also those
    before. begin_inside: places in `raw` of lines that begin inside code or mathematics of several lines."""

    def __init__(self, text: str):
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        # Both letters mean something in masked text; Markdown replaces NUL in the same way.
        text = text.replace(MASKED, "\ufffd").replace(HIDDEN, "\ufffd")
        self.raw = text.split("\n")
        self.front_matter: FrontMatter = read_front_matter(self.raw)
        body = [""] * self.front_matter.end + self.raw[self.front_matter.end:]
        deep = {number for number, line in enumerate(body) if is_too_deep(line)}
        shallow = ["" if number in deep else line for number, line in enumerate(body)]
        self.blocks = list(find_blocks(_without_unclosed_comments(shallow)))
        self._tables = {number for block in self.blocks if block.kind == "table"
                        for number in range(block.first, block.end)}
        self._code = {number: block for block in self.blocks if block.kind == "code"
                      for number in range(block.first, block.end)}
        prose = [MASKED * len(line) if number in self._code else line for number, line in enumerate(body)]
        self._starts = _starts(prose)
        prose_text = "\n".join(prose)
        self.spans, self.unclosed = find_spans(prose_text, self._paragraph_ends(body))
        visible, self._masked = (part.split("\n") for part in mask(prose_text, self.spans))
        self._visible = [body[number] if number in self._code and HIDDEN not in line else line
                         for number, line in enumerate(visible)]
        self._between = set(self._lines_after_start(hiding=True))
        self.begin_inside = set(self._lines_after_start(hiding=False))
        self.too_deep = deep - self._code.keys()
        self.lines = list(self._lines())

    def line_of(self, unclosed: Unclosed) -> int:
        """The number of the line, from 1, in which something opens."""
        return bisect_right(self._starts, unclosed.at)

    def why_masked(self, number: int, at: int) -> str:
        """Why a letter of a line (numbered from 1) is no prose, in words; "" where it is."""
        if (block := self._code.get(number - 1)) is not None:
            return f"it stands in the block of code that begins in line {block.first + 1}"
        if number - 1 in self.too_deep:
            return "it stands in lists or quotes that are nested too deep to be looked into"
        if number - 1 in self._tables:
            return "it stands in a table"
        where = self._starts[number - 1] + at
        place = bisect_right(self.spans, where, key=lambda span: span.start) - 1
        if place >= 0 and where < self.spans[place].end:
            return WORDS[self.spans[place].kind]
        return "the line begins inside code that the line above opens" if number - 1 in self.begin_inside else ""

    def _paragraph_ends(self, body: Sequence[str]) -> list[int]:
        """Where each paragraph ends, so that code spans stay in theirs; lines outside of all end with themselves."""
        inside = {number for block in self.blocks if block.kind in ("text", "heading")
                  for number in range(block.first, block.end - 1)}
        return [start + len(line) for number, (start, line) in enumerate(zip(self._starts, body, strict=True))
                if number not in inside]

    def _lines_after_start(self, hiding: bool) -> Iterator[int]:
        """Lines (from 0) that begin inside a span of several lines: a comment, or code and the like."""
        for span in self.spans:
            if span.hides == hiding:
                yield from range(bisect_right(self._starts, span.start), bisect_right(self._starts, span.end - 1))

    def _lines(self) -> Iterator[Line]:
        headings = {block.first: block for block in self.blocks if block.kind == "heading"}
        schedules = {bisect_right(self._starts, span.start) - 1 for span in self.spans if span.kind == "schedule"}
        closings = dict(self._closings())
        languages = HeadingLanguages(self.front_matter.language)
        in_schedule = False
        for number in range(self.front_matter.end, len(self.raw)):
            if (heading := headings.get(number)) is not None:
                languages.take(heading.level, self._visible[number])
            kind, text, masked, callout = self._look(number)
            if kind == HIDES and number in schedules:
                kind = END
            in_schedule = callout == _SCHEDULE_CALLOUT or (
                in_schedule and callout is None and self.raw[number].lstrip().startswith(">"))
            if in_schedule:
                kind = END
            yield Line(number + 1, text, masked, kind, languages.now, callout is not None)
            if number in closings:
                yield Line(number + 1, closings[number], MASKED * len(closings[number]), kind, languages.now)

    def _closings(self) -> Iterator[tuple[int, str]]:
        """Behind which lines (from 0) a fence belongs that was forgotten: else a card's code would not end with it."""
        for block in self.blocks:
            if block.open_fence:
                last = block.end - 1
                while last > block.first and not self.raw[last].strip():
                    last -= 1
                opener = _unquoted(self.raw[block.first], block)
                before = opener[:max(0, opener.find(block.open_fence[0]))]
                indent = re.sub(r"\S", " ", before)    # in a list item it belongs below the text, not the marker
                yield last, indent + block.open_fence

    def _look(self, number: int) -> tuple[str, str, str, str | None]:
        """A line's kind, its text, its masked text and the kind of callout that it opens (None for none)."""
        visible, masked = self._visible[number], self._masked[number]
        hides = number in self._between or HIDDEN in masked
        if hides:
            visible, masked = _without_comments(visible, masked)
        if number in self._code:
            text = _unquoted(visible, self._code[number])
            return (HIDES if hides else CODE), text, MASKED * len(text), None
        callout = None
        if quote := _QUOTE.match(visible):  # not the masked text: code of several lines masks its markers
            visible, masked = visible[quote.end():], masked[quote.end():]
            if title := _CALLOUT.match(visible):
                callout, visible, masked = title[1].lower(), visible[title.end():], masked[title.end():]
        if not visible.strip():
            return (HIDES if hides else BLANK), "", "", callout
        if number in self.too_deep or number in self._tables:
            return (TABLE if number in self._tables else CODE), visible, MASKED * len(visible), callout
        return TEXT, visible, masked, callout


def _starts(lines: Iterable[str]) -> list[int]:
    """At which letter of the whole text each line begins."""
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return starts


def _without_comments(visible: str, masked: str) -> tuple[str, str]:
    """Both without what is hidden. A space stays between what a comment held apart."""
    pieces: list[tuple[str, str]] = []
    done = 0
    for run in _HIDDEN.finditer(masked):
        start, end = run.span()
        between = " " if masked[max(0, start - 1):start].strip() and masked[end:end + 1].strip() else ""
        pieces.append((visible[done:start] + between, masked[done:start] + between))
        done = end
    pieces.append((visible[done:], masked[done:]))
    return "".join(text for text, _ in pieces), "".join(text for _, text in pieces)


def _unquoted(line: str, block: Block) -> str:
    for _ in range(block.quotes):
        line = line.lstrip(" ")
        line = line.removeprefix(">").removeprefix(" ")
    return line


def _without_unclosed_comments(lines: Sequence[str]) -> list[str]:
    """The lines with comments undone that nothing closes: Markdown would take all the rest of the note for one."""
    text = "\n".join(lines)
    last = text.rfind("-->")
    after = text.find("<!--", 0 if last < 0 else last)
    if after < 0:
        return list(lines)
    return (text[:after] + text[after:].replace("<!--", "&lt;")).split("\n")
