"""What in a note is not prose: code, mathematics, links, addresses, comments. No separator is looked for in there.

One walk from left to right over the whole note, in which whatever opens first wins, as in Markdown. Its time grows in
step with the note: a search for an end that was once in vain is not made again.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MASKED = "\0"                   # stands in masked text for a letter that is not prose
HIDDEN = "\ufdd0"               # stands for a letter of a comment; both are neither white space nor in any note

_ATTRIBUTE = r"""\s++[A-Za-z_@][\w:.-]*+(?>\s*+=\s*+(?:"[^"\n]*+"|'[^'\n]*+'|[^\s"'=<>`]++))?+"""
_TOKEN = re.compile(rf"""
    (?P<escape>\\[!-/:-@\[-`{{-~])
  | (?P<ticks>`++)
  | (?P<comment><!--)
  | (?P<remark>%%)
  | (?P<display>\$\$)
  | (?P<maths>\$(?=[^\s$]))
  | (?P<tag></?[A-Za-z][A-Za-z0-9-]*+(?>{_ATTRIBUTE})*+\s*+/?>|<[A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>]*+>)
  | (?P<address>(?<![A-Za-z0-9+.-])(?:[A-Za-z][A-Za-z0-9+.-]{{0,20}}://|www\.)[^\s<>`]++)
  | (?P<wiki>\[\[[^\[\]\n]*+\]\])
  | (?P<field>[\[(][^\W\d_][\w\ -]{{0,40}}::\ [^\[\]()\n]*+[\])])
  | (?P<link>\[[^\[\]\n`]*+\]\((?>[^()\n]++|\([^()\n]*+\))*+\)|\]\((?>[^()\n]++|\([^()\n]*+\))*+\))
  | (?P<definition>^[ ]{{0,3}}\[[^\[\]^\n][^\[\]\n]*+\]:[ \t]*+\S++(?:[ \t]++(?:"[^"\n]*+"|'[^'\n]*+'))?[ \t]*+$)
  | (?P<ipv6>\[[0-9A-Fa-f:.]{{2,45}}(?:%\w{{1,20}})?(?:/\d{{1,3}})?\])
""", re.VERBOSE | re.MULTILINE)
_MATHS_END = re.compile(r"(?<![\s\\$])\$(?![\d$])")
_BEFORE_TEXT = re.compile(r"[\s>*+\-0-9.)]*")   # list, number and quote markers before a line's text

WORDS = {
    "escape": "it is escaped by a backslash", "ticks": "it stands in a code span", "comment": "a comment hides it",
    "schedule": "a comment hides it", "remark": "a comment hides it", "display": "it stands in mathematics",
    "maths": "it stands in mathematics", "tag": "it stands in an HTML tag", "address": "it is part of an address",
    "wiki": "it stands in a wiki link", "field": "it is a Dataview field in brackets", "link": "it stands in a link",
    "definition": "it stands in the definition of a link", "ipv6": "it is an IPv6 address",
}
_HIDING = {"comment", "schedule", "remark"}


@dataclass(frozen=True, slots=True)
class Span:
    """Letters from start up to end that are no prose. kind: a key of `WORDS`."""

    start: int
    end: int
    kind: str

    @property
    def hides(self) -> bool:
        """Whether a reader never sees it: then it is no part of a card either."""
        return self.kind in _HIDING


@dataclass(frozen=True, slots=True)
class Unclosed:
    """Something opened at letter `at` that nothing closes. It is taken for text, so nothing after it is lost."""

    at: int
    kind: str


def find_spans(text: str, ends: Sequence[int]) -> tuple[list[Span], list[Unclosed]]:
    """The spans of a text in their order. `ends`: where its paragraphs end, rising; no code span reaches over an end.

    Code blocks are to be blanked out of the text before.
    """
    return _Walk(text, ends).walk()


def mask(text: str, spans: Sequence[Span]) -> tuple[str, str]:
    """The text twice, letter for letter as long: with comments hidden, and with everything masked that is no prose."""
    visible, masked, done = [], [], 0
    for span in spans:
        between, inside = text[done:span.start], text[span.start:span.end]
        visible += between, _fill(inside, HIDDEN) if span.hides else inside
        masked += between, _fill(inside, HIDDEN if span.hides else MASKED)
        done = span.end
    return "".join([*visible, text[done:]]), "".join([*masked, text[done:]])


def _fill(text: str, letter: str) -> str:
    return "\n".join(letter * len(line) for line in text.split("\n"))


class _Walk:
    """The walk over one text. Where a search finds no end, it remembers how far that holds."""

    def __init__(self, text: str, ends: Sequence[int]):
        self.text, self.ends = text, ends
        self.spans: list[Span] = []
        self.unclosed: list[Unclosed] = []
        self.no_maths_before = 0                # no `$` ends mathematics up to here
        self.comment_end: int | None = 0        # the first `-->` from some place on, None where there is none
        self.ticks_until = 0                    # the paragraph whose runs of backticks are known
        self.ticks: dict[int, list[int]] = {}   # length of a run: where such runs begin

    def walk(self) -> tuple[list[Span], list[Unclosed]]:
        ends_of: dict[str, Callable[[int, int], int | None]] = {
            "ticks": self._code, "comment": self._comment, "remark": self._pair, "display": self._pair,
            "maths": self._maths,
        }
        at = 0
        while match := _TOKEN.search(self.text, at):
            start, at, kind = match.start(), match.end(), match.lastgroup or ""
            end = ends_of[kind](start, at) if kind in ends_of else at
            if end is None:
                continue
            if kind == "comment" and self.text.startswith("<!--SR:", start):
                kind = "schedule"
            self.spans.append(Span(start, end, kind))
            at = end
        return self.spans, self.unclosed

    def _paragraph_end(self, at: int) -> int:
        place = bisect_right(self.ends, at)
        return self.ends[place] if place < len(self.ends) else len(self.text)

    def _code(self, start: int, after: int) -> int | None:
        """A run of backticks is closed by the next one of the same length in its paragraph."""
        if start >= self.ticks_until:
            self.ticks_until = self._paragraph_end(start)
            self.ticks = defaultdict(list)
            for run in re.finditer("`+", self.text[start:self.ticks_until]):
                self.ticks[run.end() - run.start()].append(start + run.start())
        runs = self.ticks[after - start]
        place = bisect_right(runs, start)
        return runs[place] + after - start if place < len(runs) else None

    def _comment(self, start: int, after: int) -> int | None:
        if self.comment_end is not None and self.comment_end < start + 2:
            found = self.text.find("-->", start + 2)
            self.comment_end = found if found >= 0 else None
        if self.comment_end is None:
            self.unclosed.append(Unclosed(start, "comment"))
            return None
        return self.comment_end + 3

    def _pair(self, start: int, after: int) -> int | None:
        """`%%` and `$$` are closed by the next such pair: in their paragraph, or anywhere if they open a line."""
        end = self.text.find(self.text[start:after], after)
        line = self.text.rfind("\n", 0, start) + 1
        opens = start - line < 40 and bool(_BEFORE_TEXT.fullmatch(self.text, line, start))
        if end < 0 or not (opens or end < self._paragraph_end(start)):
            if opens or end < 0:
                self.unclosed.append(Unclosed(start, "remark" if self.text[start] == "%" else "display"))
            return None
        return end + 2

    def _maths(self, start: int, after: int) -> int | None:
        """`$…$` stays in its line, touches its text, and is followed by no digit, so prices are no mathematics."""
        if start < self.no_maths_before:
            return None
        line = self.text.find("\n", after)
        line = len(self.text) if line < 0 else line
        end = _MATHS_END.search(self.text, after + 1, line)
        if end is None:
            self.no_maths_before = line
            return None
        return end.end()
