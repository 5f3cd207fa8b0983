"""Cards: decks of questions, what is due, what has been learnt, and the quiz that asks."""

from disttutor.cards.card import ENGLISH, HINGLISH, Card, Drawn, Face, Option
from disttutor.cards.decks import DeckError, our_cards, read_deck

__all__ = ["Card", "DeckError", "Drawn", "ENGLISH", "Face", "HINGLISH", "Option", "our_cards", "read_deck"]
