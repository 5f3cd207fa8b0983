"""What is wrong with cards that somebody writes, and what may be better: for Markdown notes and for decks in TOML.

An *error* is something that is not as it was meant: a deck that cannot be read, a lesson that does not exist, a formula
that never ends. A *note* is advice on style.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from disttutor.cards import hinglish
from disttutor.cards.card import HINGLISH, Card, Face
from disttutor.cards.decks import DeckError, read_deck
from disttutor.cards.notes import as_card, parse
from disttutor.cards.notes.folder import Unreadable, read_text
from disttutor.cards.notes.masking import MASKED, find_spans, mask
from disttutor.cards.notes.reader import LONG_ANSWER

ERROR, NOTE = "error", "note"
_ADVICE = {"look-alike", "two separators", "no spaces", "field", "long answer", "same question"}
_JOINS = re.compile(r";\s|,?\s(?:and|aur)\s")
_SEVERAL = re.compile(r"\b(two|three|four|five|six|both|each|differ|compare|list|name|which|are)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """A line, from 1, and what is to be said of it. level: ERROR or NOTE."""

    line: int
    level: str
    text: str


def lint_file(path: Path) -> list[Finding]:
    """What there is to say of a note or of a deck (.toml), by line. Never raises: what cannot be read is a finding."""
    try:
        text = read_text(path)
    except Unreadable as error:
        return [Finding(1, ERROR, str(error))]
    findings = _deck(text, path.name) if path.suffix.lower() == ".toml" else _note(text)
    return sorted(findings, key=lambda finding: finding.line)


def _note(text: str) -> Iterator[Finding]:
    parsed = parse(text)
    for diagnostic in parsed.diagnostics:
        yield Finding(diagnostic.line, NOTE if diagnostic.kind in _ADVICE else ERROR,
                      f"{diagnostic.reason} ({diagnostic.text})" if diagnostic.text else diagnostic.reason)
    if not parsed.cards and not parsed.diagnostics:
        yield Finding(1, NOTE, "there is no card here; a card is a line like Question :: Answer below #flashcards/NAME")
    for card in parsed.cards:
        if card.sibling == 1:
            yield from (Finding(card.line, level, what) for level, what in _of_card(as_card(card)))


def _deck(text: str, name: str) -> Iterator[Finding]:
    try:
        cards = read_deck(text, name)
    except DeckError as error:
        yield Finding(_line_of_error(text, str(error)), ERROR, str(error))
        return
    if not cards:
        yield Finding(1, NOTE, "there is no card here; a card is a table below a line [[card]]")
    lines = {match[1]: number for number, line in enumerate(text.split("\n"), 1)
             if (match := re.match(r"""\s*id\s*=\s*["']([^"']+)["']""", line))}
    for card in cards:
        for level, what in (*_of_card(card), *_of_course_card(card)):
            yield Finding(lines.get(card.id, 1), level, f"{card.id}: {what}")


def _line_of_error(text: str, error: str) -> int:
    """The line that TOML complains of, or in which the card begins that the error names by its number; else 1."""
    if at := re.search(r"\(at line (\d{1,9})", error):
        return int(at[1])
    card = re.search(r", card (\d{1,9})", error)
    begins = [number for number, line in enumerate(text.split("\n"), 1) if re.match(r"\s*\[\[\s*card\s*\]\]", line)]
    return begins[int(card[1]) - 1] if card and int(card[1]) <= len(begins) else 1


def _of_card(card: Card) -> Iterator[tuple[str, str]]:
    """What holds for cards from anywhere: (level, what)."""
    for language, face in card.faces.items():
        for text in _texts(face):
            yield from ((ERROR, f"{what} ({language})") for what in _wrong_mathematics(text))
            if language == HINGLISH:
                yield from ((NOTE, f"{word!r} is spelled {house!r} here") for word, house in hinglish.misspelled(text))
                yield from ((NOTE, f"{word!r} is not plain ASCII; Hinglish is") for word in hinglish.not_ascii(text))
    first = next(iter(card.faces.values()), None)
    if first and card.kind == "basic" and (parts := _two_answers(first)):
        yield NOTE, f"two answers in one? {parts[0]!r} and {parts[1]!r} could be two cards"


def _of_course_card(card: Card) -> Iterator[tuple[str, str]]:
    """What holds for cards of the course, which know their lesson and concepts."""
    from disttutor.cards.concepts import BY_ID, LESSONS

    if card.lesson is None or card.lesson not in LESSONS:
        yield ERROR, f"there is no lesson {card.lesson}; there are {LESSONS[0]} to {LESSONS[-1]}"
    for concept in card.concepts:
        if concept not in BY_ID:
            yield ERROR, f"there is no concept {concept!r}; concepts.toml has them all"
    if not card.concepts:
        yield NOTE, "it names no concept, so the concept map does not know of it"
    if not card.source:
        yield NOTE, "it names no source"
    for language, face in card.faces.items():
        if len(face.answer) > LONG_ANSWER:
            yield NOTE, (f"an answer of {len(face.answer)} letters ({language}) is more than one idea; up to "
                         f"{LONG_ANSWER} are easy to recall")


def _texts(face: Face) -> Iterator[str]:
    yield face.question
    yield face.answer
    yield from face.steps
    for option in face.options:
        yield option.text
        yield option.why


def _wrong_mathematics(text: str) -> Iterator[str]:
    """A dollar sign that neither opens nor closes mathematics, and mathematics with a brace too many."""
    text = text.replace(MASKED, " ")
    spans, unclosed = find_spans(text, [match.start() for match in re.finditer(r"\n\s*\n", text)] + [len(text)])
    prose = mask(text, spans)[1]
    if re.search(r"\$(?!\d)", prose):
        yield "a dollar sign opens or closes mathematics, and its partner is missing; write \\$ for the sign itself"
    for span in spans:
        inside = re.sub(r"\\.", "", text[span.start:span.end])
        if span.kind in ("maths", "display") and inside.count("{") != inside.count("}"):
            yield f"the mathematics {text[span.start:span.end][:60]} has a brace without its partner"


def _two_answers(face: Face) -> list[str]:
    """The parts of an answer that says two things, where the question does not ask for several."""
    sentence = re.split(r"(?<=[.!?])\s", face.answer, maxsplit=1)[0]
    parts = [part.strip() for part in _JOINS.split(sentence)]
    two = len(parts) == 2 and all(len(part.split()) >= 3 for part in parts)
    return parts if two and "between" not in parts[0] and not _SEVERAL.search(face.question) else []
