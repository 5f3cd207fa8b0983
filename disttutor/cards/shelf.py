"""All the cards of a learner: the course's, and those of the folders of notes that they named."""

from collections.abc import Iterator
from pathlib import Path

from disttutor.cards.card import Card
from disttutor.cards.decks import our_cards
from disttutor.cards.notes.folder import Folder, read_folder
from disttutor.cards.notes.identity import fold
from disttutor.cards.progress import Progress

MOST = 3        # how many notes with odd lines are named


def every_card(progress: Progress) -> tuple[list[Card], list[str]]:
    """The cards, the course's first, each once; and sentences about lines of notes that might have been cards.

    A note's card is left out where the course has it, in the same deck with the same question.
    """
    cards = {card.id: card for card in our_cards()}
    known = {_question(card) for card in cards.values() if card.faces}
    remarks: list[str] = []
    for name in progress.setting("notes_folders"):
        folder = read_folder(Path(name).expanduser())
        for card in folder.cards:
            if _question(card) not in known:
                cards.setdefault(card.id, card)
        remarks += _remarks(name, folder)
    return list(cards.values()), remarks


def _question(card: Card) -> tuple[str, str]:
    return card.deck, fold(next(iter(card.faces.values())).question)


def _remarks(name: str, folder: Folder) -> Iterator[str]:
    odd = {file: lost for file, lines in folder.diagnostics.items() if (lost := [line for line in lines if line.lost])}
    for file, lines in list(odd.items())[:MOST]:
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        yield f"{name}, {file}, line {lines[0].line}: {lines[0].reason}{more}."
    if len(odd) > MOST:
        yield f"{name}: {len(odd) - MOST} more notes have such lines; disttutor cards lint FILE names them."
