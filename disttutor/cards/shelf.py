"""All the cards of a learner: the course's, and those of the folders of notes that they named."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from disttutor.cards.card import Card
from disttutor.cards.decks import our_cards
from disttutor.cards.notes.deck_tags import ROOT
from disttutor.cards.notes.folder import Folder, read_folder
from disttutor.cards.notes.identity import fold
from disttutor.cards.progress import Progress

MOST = 3        # how many notes with odd lines are named


def every_card(progress: Progress) -> tuple[list[Card], list[str]]:
    """The cards, the course's first, each once; and sentences about lines of notes that might have been cards.

    A note's card is left out where the course has it, in the same deck with the same question or the same id, as in a
    note that the course was written to. Two folders may give different cards one id: the second is told apart.
    """
    cards = {card.id: card for card in our_cards()}
    ours = {name for card in cards.values() for name in _names(card)}
    sides: set[tuple[str, ...]] = set()
    remarks: list[str] = []
    for name in progress.setting("notes_folders"):
        folder = read_folder(Path(os.path.expanduser(name)))
        for card in folder.cards:
            if ours.isdisjoint(_names(card)) and _sides(card) not in sides:
                sides.add(_sides(card))
                card = replace(card, id=_own_id(card.id, name)) if card.id in cards else card
                cards[card.id] = card
        remarks += _remarks(name, folder)
    return list(cards.values()), remarks


def _names(card: Card) -> set[tuple[str, ...]]:
    """By what a card of the course is known again in a note."""
    deck = card.deck.removeprefix(f"{ROOT}/")
    question = {(deck, "question", fold(next(iter(card.faces.values())).question))} if card.faces else set()
    return {(deck, "id", card.id.removeprefix("^"))} | question


def _sides(card: Card) -> tuple[str, ...]:
    face = next(iter(card.faces.values()))
    return card.deck, card.kind, fold(face.question), fold(face.answer)


def _own_id(card_id: str, folder: str) -> str:
    return f"{card_id}~{hashlib.sha256(folder.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _remarks(name: str, folder: Folder) -> Iterator[str]:
    odd = {file: lost for file, lines in folder.diagnostics.items()
           if (lost := [line for line in lines if line.lost and line.kind != "no deck"])}       # a list, not a deck
    for file, lines in list(odd.items())[:MOST]:
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        yield f"{name}, {file}, line {lines[0].line}: {lines[0].reason}{more}."
    if len(odd) > MOST:
        yield f"{name}: {len(odd) - MOST} more notes have such lines; disttutor cards lint FILE names them."
