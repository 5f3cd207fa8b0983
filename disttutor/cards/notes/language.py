"""The language of a card in a note: what a heading or the front matter says, then its script, then English.

A heading says it by being the name of a language (`## Hinglish`, `## Hinglish mein`) or by `{lang=hi-Latn}` at its end.
It holds until the next heading of its level or a higher one. Hinglish is never guessed from words.
"""

import re

from disttutor.cards.card import ENGLISH, HINGLISH

HINDI = "hi"
_NAMES = {"english": ENGLISH, "hinglish": HINGLISH, "hindi": HINDI, "हिन्दी": HINDI, "हिंदी": HINDI}
_ATTRIBUTE = re.compile(r"\{lang=[\"']?([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,5})[\"']?\}\s*$")
_DEVANAGARI = re.compile("[\u0900-\u097f]")
_LATIN = re.compile("[A-Za-z]")


class HeadingLanguages:
    """The languages that headings have announced so far. start: what holds before any heading, "" for nothing."""

    def __init__(self, start: str = ""):
        self._open: list[tuple[int, str]] = [(0, start)]

    @property
    def now(self) -> str:
        """The language that holds here, "" where none was announced."""
        return self._open[-1][1]

    def take(self, level: int, heading: str) -> None:
        """Go past a heading of this level (1 to 6), given as its line."""
        while self._open[-1][0] >= level:
            self._open.pop()
        self._open.append((level, _announced(heading) or self.now))


def heading(language: str) -> str:
    """A heading that announces this language."""
    return f"# Cards {{lang={language}}}"


def by_script(text: str) -> str:
    """Hindi where there are as many Devanagari letters as Latin ones (technical words stay English), else English."""
    devanagari = len(_DEVANAGARI.findall(text))
    return HINDI if devanagari and devanagari >= len(_LATIN.findall(text)) else ENGLISH


def _announced(heading: str) -> str:
    if attribute := _ATTRIBUTE.search(heading[-60:]):
        return attribute[1]
    words = heading.strip("# \t").lower().split()
    return _NAMES.get(words[0], "") if len(words) == 1 or words[1:] in (["mein"], ["में"]) else ""
