"""Cards to read where no quiz can run: on a page without a kernel, and as plain text.

The page is made of a few elements that a notebook which is not trusted may keep, without MathML and without styles of
its own. It is the same, to the byte, whenever it is made: number cards show an example with fixed numbers.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from disttutor.cards import rendering
from disttutor.cards.card import Card, Face, Option
from disttutor.cards.origin import origin
from disttutor.cards.sitting.asking import put

EXAMPLE = 1         # the seed of the examples
WIDTH = 96          # letters in a line of text
LETTERS = "abcdefghijklmnopqrstuvwxyz"
IGNORED = "mathjax_ignore tex2jax_ignore"       # a dollar on this page is a dollar
BELOW = "border-top:1px solid #8884;margin-top:8px;padding-top:8px"
BOX = "border:1px solid #8886;border-radius:6px;padding:6px 10px;margin:6px 0"
QUIET = "opacity:.75;font-size:90%"
EXAMPLE_NOTE = "An example: the quiz draws new numbers each time."


def page(cards: Sequence[Card], title: str, note: str) -> str:
    """HTML with a foldable box for each card, in both languages; `note` stands below the title."""
    boxes = "\n".join(_box(card) for card in cards)
    return (f'<div class="disttutor-cards {IGNORED}">\n<p><strong>{escape(title)}</strong><br>'
            f'<span style="{QUIET}">{escape(note)}</span></p>\n{boxes}\n</div>')


def text(cards: Sequence[Card], title: str, note: str) -> str:
    """The same cards as plain text, one after the other."""
    entries = ["\n".join(_entry(number, card)) for number, card in enumerate(cards, 1)]
    return "\n\n".join([textwrap.fill(f"{title} {note}", WIDTH), *entries])


def _faces(card: Card) -> Mapping[str, Face]:
    return put(card, EXAMPLE).faces


def _origin(card: Card) -> str:
    place, source = origin(card)
    return ". ".join(filter(None, [place, source and f"Source: {source}"]))


def _box(card: Card) -> str:
    faces = _faces(card)
    (language, face), *others = faces.items()
    parts = [f'<div lang="{escape(language)}" style="margin-top:8px">{"".join(_inside(card, face))}</div>']
    for language, face in others:
        parts.append(f'<div lang="{escape(language)}" style="{BELOW}">'
                     f'<strong>{_inline(face.question)}</strong>{"".join(_inside(card, face))}</div>')
    if words := _origin(card):
        parts.append(f'<div style="{QUIET}">{_inline(words)}</div>')
    first = next(iter(faces))
    return (f'<details style="{BOX}">\n<summary lang="{escape(first)}">{_inline(faces[first].question)}</summary>\n'
            + "\n".join(parts) + "\n</details>")


def _inside(card: Card, face: Face) -> Iterator[str]:
    """What comes below a question: options with their reasons, steps in their order, the answer."""
    if card.draw:
        yield f'<p style="{QUIET}">{EXAMPLE_NOTE}</p>'
    if face.options:
        yield "<ul>" + "".join(f"<li>{_option(option)}</li>" for option in face.options) + "</ul>"
    if face.steps:
        yield "<ol>" + "".join(f"<li>{_inline(step)}</li>" for step in face.steps) + "</ol>"
    yield rendering.simple_html(face.answer)


def _option(option: Option) -> str:
    if option.right:
        return f"<strong>{_inline(option.text)}</strong> (right)"
    return f"{_inline(option.text)} (wrong)" + (f": {_inline(option.why)}" if option.why else "")


def _inline(markdown: str) -> str:
    """Markdown of one paragraph without the paragraph round it."""
    page = rendering.simple_html(markdown).strip()
    return page[3:-4] if page.startswith("<p>") and page.find("</p>") == len(page) - 4 else page


def _entry(number: int, card: Card) -> Iterator[str]:
    mark = f"{number}. "
    for face in _faces(card).values():
        first = mark if mark.strip() else " " * len(mark)
        yield _filled(rendering.plain(face.question), first)
        mark = " " * len(mark)
        for letter, option in zip(LETTERS, face.options, strict=False):
            yield _filled(rendering.plain(option.text), f"{mark}{letter}) ")
        yield from _answer(card, face, f"{mark}-> ")
    if words := _origin(card):
        yield _filled(rendering.plain(words), mark)


def _answer(card: Card, face: Face, mark: str) -> Iterator[str]:
    if card.draw:
        yield _filled(EXAMPLE_NOTE, " " * (len(mark) - 3))
    for step, words in enumerate(face.steps, 1):
        yield _filled(rendering.plain(words), f"{' ' * (len(mark) - 3)}{step}. ")
    right = [f"{letter}) is right. " for letter, o in zip(LETTERS, face.options, strict=False) if o.right]
    yield _filled("".join(right) + rendering.plain(face.answer), mark)
    for letter, option in zip(LETTERS, face.options, strict=False):
        if option.why:
            yield _filled(f"Not {letter}): {rendering.plain(option.why)}", " " * len(mark))


def _filled(words: str, mark: str) -> str:
    """Words with a mark before the first line; lines are broken at blanks, those that were broken stay so."""
    lines = [line for row in words.split("\n") for line in textwrap.wrap(row, WIDTH - len(mark)) or [""]]
    return "\n".join(((mark if k == 0 else " " * len(mark)) + line).rstrip() for k, line in enumerate(lines))
