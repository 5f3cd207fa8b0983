"""Cards found in a note, paragraph by paragraph: `Q :: A` in a line, `?` between lines, gaps in a paragraph.

Whatever looks like a card and is none gets a diagnostic that says why.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from disttutor.cards.notes.cloze import Gapped, find_deletions, gapped, has_marks, looks_like_cloze
from disttutor.cards.notes.deck_tags import DECK_TAG, decks_of, decks_of_tags, is_tag_line
from disttutor.cards.notes.edges import close_edge, markers, open_edge
from disttutor.cards.notes.language import by_script
from disttutor.cards.notes.lines import BLANK, END, HIDES, TEXT, Line, NoteLines
from disttutor.cards.notes.masking import find_spans, mask

LONG_ANSWER = 300               # letters; a longer one is more than one idea
LONGEST_CARD = 20_000           # letters
MOST_GAPS = 30                  # in a paragraph: each gives a card with the whole paragraph
LONE = {"?": "multiline", "??": "multiline_reversed"}
REVERSED = {"reversed", "multiline_reversed"}
_SEPARATORS = ((re.compile(r"(?<!:):::(?!:)"), "reversed"), (re.compile(r"(?<!:)::(?!:)"), "basic"))
_FIELD = re.compile(r"[^\s:]++:: ")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A line of a note, from 1, that asks for a look. kind: a word of `KINDS`. text: the line, shortened."""

    line: int
    kind: str
    reason: str
    text: str = ""

    @property
    def lost(self) -> bool:
        """Whether what may have been meant as a card is none; otherwise this is advice about a card that was made."""
        return self.kind in LOST


LOST = {"look-alike", "empty side", "no deck", "duplicate", "unclosed", "too large", "front matter", "unreadable"}
KINDS = LOST | {"two separators", "no spaces", "field", "long answer", "same question", "same id"}


@dataclass(frozen=True, slots=True)
class Found:
    """One place in a note that gives cards, in the lines from `line` to `last`. written: as Markdown, without tags and
    id. gaps: of a cloze, its cards."""

    line: int
    last: int
    kind: str
    front: str
    back: str
    written: str
    decks: tuple[str, ...]
    block_id: str
    language: str
    gaps: tuple[Gapped, ...] = ()


class NoteReader:
    """Reads one note. found: its cards in their order; diagnostics: not in order."""

    def __init__(self, note: NoteLines, default_deck: str | None, marks: Sequence[str]):
        self.note, self.marks = note, marks
        self.found: list[Found] = []
        self.diagnostics: list[Diagnostic] = []
        self.explained: set[int] = set()        # lines that are part of a card, or have their diagnostic
        self.scope = decks_of_tags(note.front_matter.tags)
        first = next((tag for line in note.lines if line.kind == TEXT for tag in DECK_TAG.findall(line.masked)), "")
        self.otherwise = decks_of(first) or ((default_deck,) if default_deck else ())

    def read(self) -> None:
        """Go through the note once."""
        paragraph: list[Line] = []
        for line in self.note.lines:
            if line.kind == HIDES:
                continue
            tags = line.kind == TEXT and is_tag_line(line.masked)
            if tags or line.opens or line.kind in (BLANK, END):
                self._paragraph(paragraph)
                paragraph = []
            if tags:
                self.scope = decks_of(line.masked)
            elif line.kind not in (BLANK, END):
                paragraph.append(line)
        self._paragraph(paragraph)
        self._look_alikes()

    def _paragraph(self, lines: list[Line]) -> None:
        if len(lines) == 1 and lines[0].kind == TEXT and (tail := close_edge(lines[0].text, lines[0].masked)).block_id:
            if not tail.text.strip() and self._name_last_card(lines[0], tail.block_id):
                return
        rest: list[Line] = []
        for place, line in enumerate(lines):
            if line.kind == TEXT and line.masked.strip() in LONE:
                self._several_lines(rest, line, lines[place + 1:])
                return
            if line.kind == TEXT and "::" in line.masked and (split := self._split(line)):
                self._rest(rest)
                rest = []
                self._one_line(line, *split)
            else:
                rest.append(line)
        self._rest(rest)

    def _name_last_card(self, line: Line, block_id: str) -> bool:
        """A block id that stands alone between empty lines belongs to what is above it, as in Obsidian."""
        above = line.number - 1
        while above > 0 and not self.note.raw[above - 1].strip("> \t"):
            above -= 1
        if not self.found or self.found[-1].last != above or self.found[-1].block_id:
            return False
        self.found[-1] = replace(self.found[-1], block_id=block_id)
        return True

    def _split(self, line: Line) -> tuple[int, int, str] | None:
        """The separator of a line that can be read alone: code that runs on into the next line must not hide one."""
        split = _separator(line.masked)
        if split and line.number - 1 in self.note.begin_inside:
            return None
        if split and line.number in self.note.begin_inside:
            spans, _ = find_spans(line.text, [len(line.text)])
            return split if _separator(mask(line.text, spans)[1]) == split else None
        return split

    def _one_line(self, line: Line, start: int, end: int, kind: str) -> None:
        front = open_edge(line.text[:start], line.masked[:start], with_markers=True)
        back = close_edge(line.text[end:], line.masked[end:])
        sides = front.text.strip(), back.text.strip()
        self.explained.add(line.number)
        if not all(sides):
            self._say(line, "empty side", f"there is no text {'after' if sides[0] else 'before'} the separator")
            return
        if _separator(back.masked):
            self._say(line, "two separators", "a second separator; it is taken for a part of the answer")
        if kind == "basic" and line.masked[start - 1].isalnum() and line.masked[end].isalnum():
            self._say(line, "no spaces", "the separator has no spaces round it; code belongs between backticks")
        elif kind == "basic" and _FIELD.match(front.masked + line.masked[start:end + 1]):
            self._say(line, "field", "looks like a Dataview field, and is a card; write [key:: value] for a field")
        written = f"{front.text}{line.text[start:end]}{back.text.rstrip()}"
        self._add([line], kind, sides, written, front.decks + back.decks, back.block_id)

    def _several_lines(self, above: list[Line], separator: Line, below: list[Line]) -> None:
        self.explained.update(line.number for line in [*above, separator, *below])
        above, below = _outdented(above, separator, below)
        front = open_edge(*_joined(above), with_markers=False)
        tail = close_edge(front.text, front.masked)
        back = close_edge(*_joined(below))
        sides = tail.text.strip(), _trimmed(back.text)
        if not all(sides):
            where = "below" if sides[0] else "above"
            self._say(separator, "empty side", f"there is no text {where} the separator, up to the next empty line")
            return
        for line in below:
            if line.kind == TEXT and (line.masked.strip() in LONE or _separator(line.masked)):
                self._say(line, "two separators", f"this is part of the answer of the card with the separator in line "
                          f"{separator.number}; an empty line before it would make it a card of its own")
        kind = LONE[separator.masked.strip()]
        written = f"{sides[0]}\n{separator.masked.strip()}\n{sides[1]}"
        self._add([*above, *below], kind, sides, written, front.decks + tail.decks + back.decks,
                  back.block_id or tail.block_id)

    def _rest(self, lines: list[Line]) -> None:
        """Lines that are no other card: a cloze, or prose, whose tags hold for what comes."""
        if not lines or not self._cloze(lines):
            for line in lines:
                if line.kind == TEXT and "#" in line.masked and (decks := decks_of(line.masked)):
                    self.scope = decks

    def _cloze(self, lines: list[Line]) -> bool:
        prose = [line for line in lines if line.kind == TEXT and has_marks(line.masked, self.marks)]
        if not prose:
            return False
        text, masked = _joined(lines)
        opened = open_edge(text, masked, with_markers=len(lines) == 1)
        closed = close_edge(opened.text, opened.masked)
        deletions = find_deletions(closed.text, closed.masked, self.marks)
        if not deletions:
            return False
        self.explained.update(line.number for line in prose)
        if len(deletions) > MOST_GAPS:
            self._say(lines[0], "too large", f"a paragraph with {len(deletions)} gaps; {MOST_GAPS} are read at most")
            return True
        gaps = tuple(gapped(closed.text, deletions))
        self._add(lines, "cloze", (gaps[0].front, gaps[0].back), closed.text, opened.decks + closed.decks,
                  closed.block_id, gaps)
        return True

    def _add(self, lines: list[Line], kind: str, sides: tuple[str, str], written: str, decks: tuple[str, ...],
             block_id: str, gaps: tuple[Gapped, ...] = ()) -> None:
        line, cut = lines[0], self.note.begin_inside
        decks = tuple(dict.fromkeys(decks)) or self.scope or self.otherwise
        if not decks:
            self._say(line, "no deck", "it lies in no deck: a line #flashcards/NAME above it would give it one")
        elif line.number - 1 in cut or (len(lines) > 1 and lines[-1].number in cut):
            self._say(line, "look-alike", "code or mathematics runs from outside into this paragraph, or out of it")
        elif len(written) > LONGEST_CARD:
            self._say(line, "too large", f"a card of {len(written):,} letters; {LONGEST_CARD:,} are read at most")
        else:
            if kind != "cloze" and len(sides[1]) > LONG_ANSWER:
                self._say(line, "long answer", f"an answer of {len(sides[1])} letters is more than one idea; up to "
                                               f"{LONG_ANSWER} are easy to recall")
            language = line.language or by_script(sides[0])
            self.found.append(
                Found(line.number, lines[-1].number, kind, *sides, written, decks, block_id, language, gaps))

    def _look_alikes(self) -> None:
        """Every line that might have been meant as a card, and is part of none, says why."""
        first = self.note.front_matter.end
        for number, raw in enumerate(self.note.raw[first:], first + 1):
            if number not in self.explained and (spot := _suspicious(raw)):
                why = self.note.why_masked(number, raw.find(spot)) or _why_not(spot, raw)
                reason = f"{spot!r} makes no card here: {why}"
                self.diagnostics.append(Diagnostic(number, "look-alike", reason, _short(raw)))

    def _say(self, line: Line, kind: str, reason: str) -> None:
        self.explained.add(line.number)
        self.diagnostics.append(Diagnostic(line.number, kind, reason, _short(line.text)))


def _separator(masked: str) -> tuple[int, int, str] | None:
    """The first of the longest separators in a line: where it begins, where it ends, the kind of card."""
    for pattern, kind in _SEPARATORS if "::" in masked else ():
        if match := pattern.search(masked):
            return match.start(), match.end(), kind
    return None


def _outdented(above: list[Line], separator: Line, below: list[Line]) -> tuple[list[Line], list[Line]]:
    """A card that lies in one list item, without the item's marker and the white space below it."""
    width = markers(above[0].masked) if above else 0
    rest = [*above[1:], separator, *below]
    if not width or any(line.text.strip() and line.text[:width].strip() for line in rest):
        return above, below
    cut = [replace(line, text=line.text[width:], masked=line.masked[width:]) for line in [*above, *below]]
    return cut[:len(above)], cut[len(above):]


def _trimmed(answer: str) -> str:
    """Without white space round it, and without that which all its lines begin with: code would keep it."""
    return textwrap.dedent(answer).strip() if answer[:1].isspace() else answer.strip()


def _joined(lines: list[Line]) -> tuple[str, str]:
    return "\n".join(line.text for line in lines), "\n".join(line.masked for line in lines)


def _suspicious(raw: str) -> str:
    if "::" in raw:
        return "::"
    if (lone := raw.strip("> \t")) in LONE:
        return lone
    return "==" if looks_like_cloze(raw) else ""


def _why_not(spot: str, raw: str) -> str:
    """Why a spot in prose makes no card."""
    if spot == "==":
        return "the marks do not both touch the words between them, or stand in a comparison"
    if spot in LONE:
        return "it stands in a block that is not read as lines"
    return "four or more colons are no separator" if "::::" in raw else "what stands around it is not read as text"


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 80 else f"{text[:79]}…"
