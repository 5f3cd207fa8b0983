"""Notes: flashcards in Markdown notes, read, written and recognised again."""

from disttutor.cards.notes.parsing import Diagnostic, NoteCard, Parsed, as_card, as_cards, parse

__all__ = ["Diagnostic", "NoteCard", "Parsed", "as_card", "as_cards", "parse"]
