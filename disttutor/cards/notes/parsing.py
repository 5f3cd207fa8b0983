"""Markdown notes with flashcards in them, as Obsidian's spaced-repetition plugin reads them, and a little safer.

    #flashcards/ai-ml
    What does all-reduce leave on every rank? :: The same sum
    FSDP ::: Fully Sharded Data Parallel

    Name two ways to split a model
    ?
    By layer, or inside a layer

    ==All-reduce== leaves the same ==sum== on every rank.

`::` makes a card and `:::` one in each direction; so do `?` and `??` on a line of their own, up to the next empty line;
each `==gap==` of a paragraph makes a card. A line of tags puts what follows into decks. Code, mathematics, links and
comments make no cards. A note is never written to.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from disttutor.cards.card import Card, Face
from disttutor.cards.notes.identity import fold, hashed_id, id_of_block, sibling_id
from disttutor.cards.notes.lines import NoteLines
from disttutor.cards.notes.reader import LOST, REVERSED, Diagnostic, Found, NoteReader

MOST_LETTERS = 2_000_000        # of a note
MOST_CARDS = 20_000             # of a note

__all__ = ["Diagnostic", "LOST", "MOST_CARDS", "MOST_LETTERS", "NoteCard", "Parsed", "as_card", "as_cards", "parse"]


@dataclass(frozen=True, slots=True)
class NoteCard:
    """A card of a note. front, back: Markdown. kind: basic, reversed, multiline, multiline_reversed or cloze.

    deck: names separated by slashes; also: more decks. line: where it begins, from 1. id: see `identity`. sibling: its
    number, from 1, among the cards of the same place (two of a reversed one, one for each gap). language: a BCP 47 tag.
    missing: of a cloze, the words of its gaps. written: the place as Markdown, without markers, tags and id.
    """

    deck: str
    also: tuple[str, ...]
    front: str
    back: str
    kind: str
    line: int
    id: str
    sibling: int
    language: str
    missing: str = ""
    written: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a note holds: its cards in their order, and what deserves a look, line by line."""

    cards: tuple[NoteCard, ...]
    diagnostics: tuple[Diagnostic, ...]


def parse(text: str, *, default_deck: str | None = None, bold: bool = False, braces: bool = False) -> Parsed:
    """The cards of a note, and every line that looks like one and is none, with the reason. Never raises.

    default_deck: the deck of cards in a note without a deck tag; without it they are no cards. bold, braces: whether
    `**words**` and `{{words}}` are gaps too.
    """
    if len(text) > MOST_LETTERS:
        reason = f"the note has {len(text):,} letters; {MOST_LETTERS:,} are read at most: split it"
        return Parsed((), (Diagnostic(1, "too large", reason),))
    note = NoteLines(text)
    reader = NoteReader(note, default_deck, ("==",) + ("**",) * bold + ("{{",) * braces)
    reader.read()
    cards, about_cards = _Collection().collect(reader.found)
    diagnostics = [*reader.diagnostics, *about_cards, *_about_the_note(note)]
    return Parsed(tuple(cards), tuple(sorted(diagnostics, key=lambda diagnostic: diagnostic.line)))


def as_cards(parsed: Parsed) -> list[Card]:
    """The cards of a note as the quiz asks them."""
    return [as_card(card) for card in parsed.cards]


def as_card(card: NoteCard) -> Card:
    """One card of a note as the quiz asks it: a cloze, or a basic one whatever its way of writing."""
    return Card(id=card.id, deck=card.deck, also=card.also, kind="cloze" if card.kind == "cloze" else "basic",
                faces={card.language: Face(card.front, card.back, missing=card.missing)})


def _about_the_note(note: NoteLines) -> Iterator[Diagnostic]:
    if note.front_matter.wrong:
        yield Diagnostic(1, "front matter", note.front_matter.wrong)
    for block in note.blocks:
        if block.open_fence:
            yield _unclosed(note, block.first + 1, "this block of code is never closed: all that follows is code")
    for unclosed in note.unclosed:
        what = "block of mathematics" if unclosed.kind == "display" else "comment"
        yield _unclosed(note, note.line_of(unclosed), f"this {what} is never closed: it is taken for text")


def _unclosed(note: NoteLines, line: int, reason: str) -> Diagnostic:
    return Diagnostic(line, "unclosed", reason, note.raw[line - 1].strip()[:80])


class _Collection:
    """Gives the cards of one note their ids, and drops those that are there already."""

    def __init__(self) -> None:
        self.cards: list[NoteCard] = []
        self.diagnostics: list[Diagnostic] = []
        self._lines: dict[tuple[str, ...], int] = {}    # deck, kind and folded sides: where such a card was first
        self._bases: set[str] = set()
        self._asked: dict[str, int] = {}                # hashed id: how many cards have asked for it

    def collect(self, found: list[Found]) -> tuple[list[NoteCard], list[Diagnostic]]:
        for place in found:
            if len(self.cards) >= MOST_CARDS:
                self._say(place, "too large", f"a note with more than {MOST_CARDS:,} cards; from here on none is read")
                break
            self._take(place)
        return self.cards, self.diagnostics

    def _take(self, place: Found) -> None:
        siblings, twin = [], 0
        for number, (front, back, missing) in enumerate(_sides(place), 1):
            key = (place.decks[0], place.kind, fold(front), fold(back))
            if key in self._lines:
                twin = self._lines[key]
            else:
                self._lines[key] = place.line
                siblings.append((number, front, back, missing))
        if twin:
            self._say(place, "duplicate", f"the same card stands in line {twin} already, in the same deck")
        if siblings:
            base = self._base(place)
            for number, front, back, missing in siblings:
                self.cards.append(NoteCard(
                    place.decks[0], place.decks[1:], front, back, place.kind, place.line, sibling_id(base, number),
                    number, place.language, missing, place.written))

    def _base(self, place: Found) -> str:
        """The id of a place's first card. Each is given once."""
        if place.block_id:
            base = id_of_block(place.block_id)
            if base not in self._bases:
                self._bases.add(base)
                return base
            self._say(place, "same id", f"the block id ^{place.block_id} is taken by a card above; each needs its own")
        first = hashed_id(place.front, place.decks[0], place.kind)
        base = first
        while base in self._bases:
            self._asked[first] = self._asked.get(first, 1) + 1
            base = f"{first}-{self._asked[first]}"
        if base != first and not place.block_id:
            self._say(place, "same question", "a card above asks the same in this deck; which answer is meant?")
        self._bases.add(base)
        return base

    def _say(self, place: Found, kind: str, reason: str) -> None:
        self.diagnostics.append(Diagnostic(place.line, kind, reason, place.written.split("\n", 1)[0][:80]))


def _sides(place: Found) -> list[tuple[str, str, str]]:
    """Front, back and missing words of every card of a place."""
    if place.gaps:
        return [(gap.front, gap.back, gap.missing) for gap in place.gaps]
    sides = [(place.front, place.back, "")]
    return sides + [(place.back, place.front, "")] if place.kind in REVERSED else sides
