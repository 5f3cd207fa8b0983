"""Number cards: the numbers are drawn anew each time, and the library computes the answer."""

from disttutor.cards.card import Card

NUMBER_CARDS: tuple[Card, ...] = ()
