"""Whether an answer is right: of what was chosen, typed or brought into order, and a word about it."""

import difflib
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from disttutor.cards import rendering
from disttutor.cards.card import ENGLISH, Drawn, Face
from disttutor.cards.sitting import quantities

NEAR = 0.8      # how alike two texts are that may be one and the same, misspelt


class AnswerError(ValueError):
    """What was given is no answer to this card; says what one would look like."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """right: None where only the learner can tell. feedback: a word about the answer, as Markdown; may be empty."""

    right: bool | None
    feedback: str = ""


def check(kind: str, face: Face, given: object, *, drawn: Drawn | None = None, language: str = ENGLISH) -> Verdict:
    """Check an answer to a card of this kind.

    given: of a choice the place of the option among `face.options` (0 is the first); of a number the text that was
    typed, for `drawn`; of an order card the places of `face.steps`, in the order in which they were brought; of a cloze
    the text that was typed. Raises AnswerError for anything that is no answer, and for a basic card, which asks for
    none.
    """
    match kind:
        case "choice":
            return _choice(face, given)
        case "number":
            return _number(drawn, str(given))
        case "order":
            return _order(face, given)
        case "cloze":
            return _cloze(face, str(given), language)
    raise AnswerError(f"a {kind} card is not checked: show its answer, and say whether you knew it")


def _choice(face: Face, given: object) -> Verdict:
    if type(given) is not int or not 0 <= given < len(face.options):
        raise AnswerError(f"choose one of the {len(face.options)} options")
    option = face.options[given]
    return Verdict(option.right, "" if option.right else option.why)


def _number(drawn: Drawn, given: str) -> Verdict:
    try:
        readings = quantities.readings(given, drawn.unit)
    except quantities.NoNumber as error:
        raise AnswerError(str(error)) from None
    room = max(drawn.tolerance, 1e-9) * abs(drawn.value) + 1e-12
    right = any(abs(reading - drawn.value) <= room for reading in readings)
    exact = any(math.isclose(reading, drawn.value, rel_tol=1e-3) for reading in readings)
    value = quantities.shown(drawn.value, drawn.unit)
    return Verdict(right, "" if exact else f"To be exact: {value}." if right else f"The answer is {value}.")


def _order(face: Face, given: object) -> Verdict:
    count = len(face.steps)
    places = isinstance(given, Sequence) and all(type(place) is int for place in given)
    if not places or sorted(given) != list(range(count)):
        raise AnswerError(f"bring all {count} steps into order, each once")
    steps = [face.steps[place] for place in given]      # two steps with the same words may stand for each other
    wrong = [number for number, (one, other) in enumerate(zip(steps, face.steps, strict=True), 1) if one != other]
    if not wrong:
        return Verdict(True)
    return Verdict(False, f"{count - len(wrong)} of {count} steps are in their place.")


def _cloze(face: Face, given: str, language: str) -> Verdict:
    """English is compared word by word. Hinglish has no fixed spelling, so there a difference decides nothing."""
    if not (typed := folded(given)):
        raise AnswerError("There is no answer yet: type the missing words, or show the answer without them.")
    missing = folded(rendering.plain(face.missing))
    if typed == missing:
        return Verdict(True)
    said = f"You wrote: {_literally(given)}"
    if language != ENGLISH or difflib.SequenceMatcher(None, typed, missing).ratio() >= NEAR:
        return Verdict(None, f"{said} Compare the two, and decide.")
    return Verdict(False, said)


def folded(text: str) -> str:
    """Words without what spelling leaves open: capitals, hyphens, blanks, a leading article, quotes."""
    text = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in text).split()
    if len(words) > 1 and words[0] in {"the", "a", "an"}:
        del words[0]
    return "".join(words)


def _literally(text: str) -> str:
    """Typed text as Markdown that shows it letter by letter."""
    text = " ".join(text.split())
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks} {text} {ticks}."
