"""What Anki shows of a card: HTML of its own fields, with mathematics as TeX between the marks that Anki knows.

Anki draws mathematics itself, from TeX between `\\(` and `\\)`, or between `\\[` and `\\]` where it stands on a line by
itself. A field of Anki is HTML, so a text that only looks like HTML (`vector<int>`) is escaped.
"""

import re
from html import escape

from disttutor.cards import rendering

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
    return _ORDERS.sub("&#91;", field.strip())
