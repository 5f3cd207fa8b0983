"""What a lab shows in its cell: pictures, tables and sentences in one output, as HTML and as plain text.

The plain text is the same in every run where its parts are: no times, no addresses.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows of short texts under `head`. timed: numbers of columns that differ from run to run (they are left out of the
    plain text). caption: a sentence above it."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    timed: Sequence[int] = ()

    def html(self) -> str:
        """The table as HTML."""
        above = f"<div>{escape(self.caption)}</div>" if self.caption else ""       # a caption would be as narrow as it
        head = "".join(f"<th style='text-align:left'>{escape(str(cell))}</th>" for cell in self.head)
        cells = ["".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in row) for row in self.rows]
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        kept = [i for i in range(len(self.head)) if i not in self.timed]
        lines = [[str(row[i]) for i in kept] for row in (self.head, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                for line in lines]
        return "\n".join([*([self.caption] if self.caption else []), *text])


@dataclass(frozen=True)
class Timed:
    """A sentence that differs from run to run: as plain text it is not there."""

    words: str

    def html(self) -> str:
        """The sentence as HTML."""
        return f"<p>{escape(self.words)}</p>"

    def __repr__(self) -> str:
        return "[a sentence about this run]"


class Still:
    """A picture turned into HTML once, for labs that draw other parts again and again."""

    def __init__(self, picture: Any):
        self._html, self._plain = picture.html(), repr(picture)

    def html(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._plain


def page(items: Iterable[Any]) -> dict[str, str]:
    """A cell's output out of `items`: sentences, and objects that have `html()` and a plain text as their `repr`.

    Raises TypeError for anything else.
    """
    html, plain = [], []
    for item in items:
        if isinstance(item, str):
            html.append(f"<p>{escape(item)}</p>")
            plain.append(item)
        elif hasattr(item, "html"):
            html.append(item.html())
            plain.append(repr(item))
        else:
            raise TypeError(f"a lab shows sentences, pictures and tables, not {type(item).__name__}")
    return {"text/html": "\n".join(f"<div style='margin:6px 0'>{part}</div>" for part in html),
            "text/plain": "\n".join(plain)}
