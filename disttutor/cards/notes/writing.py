"""Cards written as an Obsidian note: tags for their decks, block ids for their histories.

What `notes.parse` read from a note and this writes, it reads again as the same cards with the same ids, whatever stood
around them. Cards of the course become such a note too: choices and steps are then listed in the text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from disttutor.cards.card import ENGLISH, Card, Face
from disttutor.cards.notes import NoteCard, parse
from disttutor.cards.notes.deck_tags import tag_line
from disttutor.cards.notes.identity import block_of_id
from disttutor.cards.notes.language import by_script, heading
from disttutor.cards.notes.masking import find_spans, mask

_BLOCKS = ("```", "~~~", "<", "|", "$$", "[")


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands in the note for one card and its siblings."""

    decks: tuple[str, ...]
    language: str
    announced: bool     # whether a heading must say the language, since the script of the question does not
    text: str


def as_markdown(cards: Iterable[NoteCard | Card], language: str = ENGLISH) -> str:
    """The note. A deck `a/b` is written as the tag `#flashcards/a/b`.

    language: which face is taken of cards of the course. Number cards draw their question anew each time, so a note
    cannot hold them and they are left out.
    """
    pieces, decks, now = [], (), ""
    for place in _places(cards, language):
        wanted = place.language if place.announced or now else now
        if wanted != now:
            pieces.append(heading(wanted))
            now = wanted
        if place.decks != decks:
            pieces.append(tag_line(place.decks))
            decks = place.decks
        pieces.append(place.text)
    return "\n\n".join(pieces) + "\n" if pieces else ""


def _places(cards: Iterable[NoteCard | Card], language: str) -> Iterator[_Place]:
    before = None
    for card in cards:
        if isinstance(card, NoteCard):
            place = (card.written, block_of_id(card.id))
            if place != before:     # siblings come one after the other, and are written once
                yield _place(card, card.language, card.front, card.written, place[1])
            before = place
        elif card.faces:
            spoken = language if language in card.faces else next(iter(card.faces))
            face = card.face(spoken)
            yield _place(card, spoken, face.question, _card(card, face), _block_id(card.id))


def _block_id(card_id: str) -> str:
    """A card's id in the letters of block ids."""
    return re.sub(r"[^A-Za-z0-9-]", "-", card_id.removeprefix("^"))


def _place(card: NoteCard | Card, language: str, front: str, text: str, block_id: str) -> _Place:
    """The text with its block id, which stands alone below code, tables and other things of several lines."""
    decks, announced = (card.deck, *card.also), language != by_script(front)
    if "\n" in text:
        return _Place(decks, language, announced, f"{text}\n\n^{block_id}")
    # Behind a tag, which is no part of the card, nothing begins a block of code or HTML.
    tag = f"{tag_line(decks)} " if text.startswith(_BLOCKS) else ""
    return _Place(decks, language, announced, f"{tag}{text} ^{block_id}")


def _card(card: Card, face: Face) -> str:
    """A card of the course in one line if it reads the same there, else in several."""
    question, answer = _sides(card, face)
    line = f"{question} :: {answer}"
    read = parse(line, default_deck=card.deck).cards
    if [(one.front, one.back) for one in read] == [(question, answer)]:
        return line
    return f"{_escaped(question)}\n?\n{answer}"


def _escaped(question: str) -> str:
    """The question with a backslash before colons that would cut it in two; Markdown shows it as it was."""
    masked = mask(question, find_spans(question, [len(question)])[0])[1]
    pieces, done = [], 0
    for colons in re.finditer("::+", masked):
        pieces += question[done:colons.start()], "\\:" * len(colons[0])
        done = colons.end()
    return "".join([*pieces, question[done:]])


def _sides(card: Card, face: Face) -> tuple[str, str]:
    """What is asked and what is answered, without the empty lines that would end the card."""
    question, answer = face.question, face.answer
    if card.kind == "choice":
        right = next(option.text for option in face.options if option.right)
        question = "\n".join([question, *(f"- {option.text}" for option in face.options)])
        wrong = (f"- not {option.text}: {option.why}" for option in face.options if not option.right)
        answer = "\n".join([right, answer, *wrong])
    elif card.kind == "order":
        question = "\n".join([question, *(f"- {step}" for step in sorted(face.steps))])
        answer = "\n".join([*(f"{place}. {step}" for place, step in enumerate(face.steps, 1)), answer])
    return _dense(question), _dense(answer)


def _dense(text: str) -> str:
    return text.strip() if "```" in text else re.sub(r"\n\s*\n", "\n", text.strip())
