"""What Anki shows of a card: HTML of its own fields, with mathematics as TeX between the marks that Anki knows.

Anki draws mathematics itself, from TeX between `\\(` and `\\)`, or between `\\[` and `\\]` where it stands on a line by
itself. A field of Anki is HTML, so a text that only looks like HTML (`vector<int>`) is escaped.
"""

import re
from html import escape

from disttutor.cards import rendering

# What Anki's database would take for the end of a field, or could not hold.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
# Words in brackets that Anki would take for an order: to play a sound, to speak, to run LaTeX.
_ORDERS = re.compile(r"\[(?=sound:|anki:|/?latex\]|/?\$\$?\])", flags=re.IGNORECASE)


def html(markdown: str) -> str:
    """A text of one or more paragraphs as the HTML of a field."""
    return _harmless(rendering.parser(_tex).render(markdown))


def line(markdown: str) -> str:
    """A text that stands in a line, such as an option, as HTML without a paragraph round it."""
    return _harmless(rendering.parser(_tex).renderInline(markdown))


def _tex(tex: str, block: bool) -> str:
    return rf"\[{escape(tex, quote=False)}\]" if block else rf"\({escape(tex, quote=False)}\)"


def _harmless(field: str) -> str:
    return _ORDERS.sub("&#91;", fit(field).strip())


def fit(text: str) -> str:
    """The text with a sign of replacement for each letter that Anki's database cannot hold."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
