"""The two sides of a card in Anki, for every kind of card.

Anki shows a front, and then a back below it. A choice has its options in an order drawn once from the card's id, an
order card its steps likewise, so that every export has the same. Both languages of a card get the same order.
"""

import random
from dataclasses import dataclass

from disttutor.cards.anki.text import html, line
from disttutor.cards.card import HINGLISH, Card, Drawn, Face, Option

EXAMPLES = 4                # of a number card
_DRAWS = 50                 # tries to find an example unlike those before it

_EXAMPLE = "Worked example {number} of {count}: in disttutor, this card asks with new numbers each time."
_EXAMPLE_HINGLISH = "Example {number} / {count}: disttutor mein ye card har baar naye numbers se poochta hai."


@dataclass(frozen=True, slots=True)
class Sides:
    """One card in one language, as HTML."""

    language: str
    front: str
    back: str


def sides(card: Card) -> list[Sides]:
    """A card in its languages, the first one first. Not for a number card: see `examples`."""
    return [Sides(language, _front(face, card), _back(face, card)) for language, face in card.faces.items()]


def examples(card: Card) -> list[list[Sides]]:
    """Worked examples of a number card, each in the languages of the card.

    Always the same: example number n is drawn from the card's id and n, and again if it is one that was there before.
    """
    found: list[Drawn] = []
    for number in range(1, EXAMPLES + 1):
        for attempt in range(_DRAWS):
            drawn = card.draw(random.Random(f"{card.id} {number} {attempt}"))
            if drawn.faces not in [other.faces for other in found]:
                found.append(drawn)
                break
    return [_example(drawn, number, len(found)) for number, drawn in enumerate(found, 1)]


def _example(drawn: Drawn, number: int, count: int) -> list[Sides]:
    both = []
    for language, face in drawn.faces.items():
        remark = (_EXAMPLE_HINGLISH if language == HINGLISH else _EXAMPLE).format(number=number, count=count)
        front = f'{html(face.question)}\n<p class="remark">{remark}</p>'
        both.append(Sides(language, front, html(face.answer)))
    return both


def _front(face: Face, card: Card) -> str:
    question = html(face.question)
    if card.kind == "choice":
        return f"{question}\n{_list([line(option.text) for option in _shuffled(face.options, card)])}"
    if card.kind == "order":
        return f"{question}\n{_list([line(step) for step in _shuffled(face.steps, card)])}"
    return question


def _back(face: Face, card: Card) -> str:
    answer = html(face.answer)
    if card.kind == "cloze":
        return f'<p><span class="gap">{line(face.missing)}</span></p>\n{answer}'
    if card.kind == "choice":
        return f"{_list([_judged(option) for option in _shuffled(face.options, card)])}\n{answer}"
    if card.kind == "order":
        steps = "".join(f"<li>{line(step)}</li>" for step in face.steps)
        return f"<ol>{steps}</ol>\n{answer}"
    return answer


def _judged(option: Option) -> str:
    if option.right:
        return f'<span class="right">✓ {line(option.text)}</span>'
    return f"✗ {line(option.text)}" + (f'<br><span class="remark">{line(option.why)}</span>' if option.why else "")


def _list(entries: list[str]) -> str:
    return '<ol type="A">' + "".join(f"<li>{entry}</li>" for entry in entries) + "</ol>"


def _shuffled(things: tuple, card: Card) -> list:
    """In an order that hangs on the card's id alone; that of an order card is never the right one."""
    places = list(range(len(things)))
    random.Random(card.id).shuffle(places)
    if card.kind == "order" and places == sorted(places):
        places = places[1:] + places[:1]
    return [things[place] for place in places]
