"""The blocks of a note (code, paragraphs, tables, quotes), found by markdown-it: which lines each of them has.

Only blocks are asked for. Reference definitions are left out: they need quadratic time where thousands follow each
other, and a card sees them as text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt

DEEPEST = 25                    # lists and quotes in each other; deeper ones are not looked into
_MARKERS = re.compile(r"(?:[ \t]|>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))*+")
_RAW = re.compile(r"\s*<(pre|script|style|textarea)\b", re.IGNORECASE)
_RAW_END = re.compile(r"</(pre|script|style|textarea)>", re.IGNORECASE)
_CODE = {"fence", "code_block"}
_LEAVES = {*_CODE, "html_block", "inline", "hr", "table_open"}


@dataclass(frozen=True, slots=True)
class Block:
    """Lines from first up to end. kind: code, text, heading, table, rule or html. quotes: how many quotes it lies in.
    open_fence: what would close code that nothing closes. level: of a heading, 1 to 6."""

    first: int
    end: int
    kind: str
    quotes: int = 0
    open_fence: str = ""
    level: int = 0


@cache
def _reader() -> MarkdownIt:
    # Where it reaches this, it passes over all the rest: `is_too_deep` keeps it from getting there. A list counts two.
    reader = MarkdownIt("commonmark", {"maxNesting": 2 * DEEPEST + 10})
    return reader.enable("table").disable(["inline", "reference"])


def find_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """The blocks that hold text or code, in the order of their lines."""
    quotes, level, table_end = 0, 0, 0
    heading: list[int] = []
    for token in _reader().parse("\n".join(lines)):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "heading_open":
            level, heading = int(token.tag[1:]), token.map or []
        elif token.type == "heading_close":
            level = 0
        elif token.type in _LEAVES and token.map:
            first, end = heading if level else token.map
            if token.type == "table_open":
                table_end = end
                yield Block(first, end, "table", quotes)
            elif token.type in _CODE:
                is_open = token.type == "fence" and not _is_closed(lines[first:end], token.markup)
                yield Block(first, end, "code", quotes, token.markup if is_open else "")
            elif token.type == "html_block":
                raw = _RAW.match(token.content)
                is_open = raw and not _RAW_END.search(token.content)
                yield Block(first, end, "code" if raw else "html", quotes, "</pre>" if is_open else "")
            elif first >= table_end:
                kind = "heading" if level else "rule" if token.type == "hr" else "text"
                yield Block(first, end, kind, quotes, level=level)


def is_too_deep(line: str) -> bool:
    """Whether a line may lie in more lists and quotes than are looked into. Each has its marker on the line, or is
    implied by two columns of white space."""
    prefix = _MARKERS.match(line)
    if prefix is None or prefix.end() < DEEPEST:
        return False
    spaces = prefix[0].count(" ") + 4 * prefix[0].count("\t")
    return spaces // 2 + sum(prefix[0].count(marker) for marker in ">-*+.)") >= DEEPEST


def _is_closed(lines: Sequence[str], fence: str) -> bool:
    last = lines[-1].strip("> \t")
    return len(lines) > 1 and len(last) >= len(fence) and not last.strip(fence[0])
