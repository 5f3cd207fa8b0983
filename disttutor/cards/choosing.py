"""Decks under the names that people give them."""

import difflib
import re
from collections.abc import Iterable, Sequence

from disttutor.cards.card import Card


class UnknownDeck(ValueError):
    """A name that no deck has. Says which decks there are."""


def choose(cards: Iterable[Card], names: Sequence[str]) -> list[Card]:
    """The cards of the decks with these names, in the order they came in; all cards where no name is given.

    A name is a deck's whole name (`disttutor/03-data-parallelism`), one of its parts with all below it (`disttutor`,
    `03-data-parallelism`), or the number that a part begins with (`03`, `3`). Capitals do not matter, nor `::` for `/`,
    nor a `#` before it. Raises UnknownDeck for a name that fits none.
    """
    cards = list(cards)
    if not names:
        return cards
    decks = sorted({deck for card in cards for deck in _decks(card)})
    chosen: set[str] = set()
    for name in names:
        fitting = {deck for deck in decks if _fits(name, deck)}
        if not fitting:
            raise UnknownDeck(_unknown(name, decks))
        chosen |= fitting
    return [card for card in cards if chosen.intersection(_decks(card))]


def heading(deck: str) -> str:
    """A deck's name for people: disttutor/03-data-parallelism is 03 Data parallelism, flashcards/ai/gpu is ai / gpu."""
    return " / ".join(map(title, deck.split("/")[1:])) or deck


def title(part: str) -> str:
    """One part of a deck's name as a heading: 08-pipeline-parallelism is 08 Pipeline parallelism.

    A learner's own name stays as it is.
    """
    if not re.match(r"\d\d-\w", part):
        return part
    number, _, words = part.partition("-")
    words = re.sub(r"\bzero\b", "ZeRO", words.replace("-", " "))
    return f"{number} {words[0].upper()}{words[1:]}"


def _decks(card: Card) -> tuple[str, ...]:
    return card.deck, *card.also


def _parts(name: str) -> list[str]:
    return [part for part in name.replace("::", "/").lstrip("#").casefold().split("/") if part]


def _fits(name: str, deck: str) -> bool:
    """Whether the parts of the name stand in the deck's name one after the other."""
    wanted, parts = _parts(name), _parts(deck)
    starts = range(len(parts) - len(wanted) + 1) if wanted else ()
    return any(all(map(_same, wanted, parts[start:])) for start in starts)


def _same(wanted: str, part: str) -> bool:
    number = part.split("-")[0]
    return wanted == part or (wanted.isdecimal() and number.isdecimal() and int(wanted) == int(number))


def _unknown(name: str, decks: Sequence[str]) -> str:
    if not decks:
        return f"There is no deck {name!r}: there are no cards at all."
    near = difflib.get_close_matches(name, [*decks, *(deck.split("/")[-1] for deck in decks)], n=1)
    guess = f" Is {near[0]} meant?" if near else ""
    return f"There is no deck {name!r}.{guess} There are: {', '.join(decks)}."
