"""How a number card is written: what to draw from, a function that works out the answer, and texts in two languages.

    cards = NumberCards()

    @cards.card("number-ring-bytes", lesson=2, unit="MB", choices={"ranks": (4, 8), "size": (100, 400)},
                en=("Over <ranks> ranks a ring all-reduces <size> MB. ...?", "Each rank sends ..."),
                hi=("...", "..."), working=r"2 \\cdot \\frac{<ranks> - 1}{<ranks>} \\cdot <size>")
    def ring_bytes(ranks, size):
        return {"value": terms("all_reduce", "ring", ranks).arrays * size}

A name between < and > stands for a number that was drawn or worked out. A solution is the second text, and below it the
working, which ends with the value in all languages.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import floor, isclose, log10
from random import Random
from typing import Any

from disttutor.cards.card import ENGLISH, HINGLISH, Card, Drawn, Face

# The deck of each lesson, by its number.
DECKS = ("00-start-here", "01-why-distribute", "02-how-ranks-talk", "03-data-parallelism", "04-gradient-accumulation",
         "05-sync-and-async", "06-zero", "07-tensor-parallelism", "08-pipeline-parallelism",
         "09-activation-checkpointing", "10-hybrid-mesh", "11-long-sequences-and-experts", "12-scaling-wall",
         "13-choosing", "14-many-machines", "15-frameworks", "16-review")
TOLERANCE = 0.01        # of answers that are no counts: whoever rounds to three digits is right
DIGITS, EXACT = 3, 5    # digits of a number that was worked out, and of one that needs no more to be exact
_PLACE = re.compile(r"<(\w+)>")

Numbers = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """What a number card draws: call it with a random.Random.

    choices: for each name the values that it may have. usable: whether a combination of them makes a fair question.
    work_out: from the drawn values to `value`, the answer, and to other numbers that the texts show. A whole number of
    Python's type int is a count, and must be met exactly. texts: by language, the question and the solution. working:
    a formula of TeX, whose value is the answer.
    """

    choices: Mapping[str, Sequence[Any]]
    usable: Callable[..., bool]
    work_out: Callable[..., Mapping[str, Any]]
    texts: Mapping[str, tuple[str, str]]
    working: str
    unit: str

    def __call__(self, random: Random) -> Drawn:
        """A fresh question; the same state of `random` gives the same one."""
        while not self.usable(**(numbers := {name: random.choice(some) for name, some in self.choices.items()})):
            pass
        return self.pose(**numbers)

    def draws(self) -> Iterator[Numbers]:
        """Everything that can be drawn."""
        for some in product(*self.choices.values()):
            if self.usable(**(numbers := dict(zip(self.choices, some, strict=True)))):
                yield numbers

    def pose(self, **drawn: Any) -> Drawn:
        """The question with these numbers."""
        found = self.work_out(**drawn)
        value = found["value"]
        shown = {name: written(number) for name, number in drawn.items()}
        shown |= {name: written(rounded(number)) for name, number in found.items()}
        equals = "=" if isclose(rounded(value), value) else r"\approx"
        end = f"${_fill(self.working, shown)} {equals} {shown['value']}$ {self.unit}".strip()
        faces = {language: Face(_fill(question, shown), f"{_fill(solution, shown)}\n\n{end}")
                 for language, (question, solution) in self.texts.items()}
        return Drawn(faces, float(value), self.unit, 0.0 if isinstance(value, int) else TOLERANCE)


class NumberCards(list[Card]):
    """The number cards of one file, in their order there."""

    def card(self, id: str, *, lesson: int, source: str, concepts: tuple[str, ...],
             choices: Mapping[str, Sequence[Any]], en: tuple[str, str], hi: tuple[str, str], working: str,
             unit: str = "", family: str = "", section: str = "Why",
             usable: Callable[..., bool] = lambda **_: True) -> Callable[[Callable], Callable]:
        """Makes a card of the function below, which works out its answer; see `Question` and `Card`."""
        def add(work_out: Callable) -> Callable:
            texts = {ENGLISH: en, HINGLISH: hi}
            self.append(Card(id=id, deck=f"disttutor/{DECKS[lesson]}", kind="number", lesson=lesson, section=section,
                             source=source, concepts=concepts, family=family,
                             draw=Question(choices, usable, work_out, texts, working, unit)))
            return work_out

        return add


def rounded(number: Any) -> Any:
    """A number to three digits, or to a whole one where it has more than that before the point; 43.75 stays."""
    if not isinstance(number, float) or number == 0:
        return number
    before = floor(log10(abs(number))) + 1
    exact, near = (round(number, max(0, digits - before)) for digits in (EXACT, DIGITS))
    return exact if isclose(exact, number) else near


def written(value: Any) -> str:
    """As the texts show it: a number without needless zeros and never as 1e6, a row of them with commas."""
    if isinstance(value, float):
        return f"{value:.12f}".rstrip("0").rstrip(".")
    if isinstance(value, tuple | list):
        return ", ".join(map(written, value))
    return str(value)


def _fill(text: str, shown: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: shown[place[1]], text)
