"""Decks as they are written: one TOML file for each lesson, with every card in both languages.

    deck = "disttutor/03-data-parallelism"
    lesson = 3

    [[card]]
    id = "dp-what-is-copied"
    en = ["What does every rank of data parallelism keep whole?", "The model, its gradients and its optimizer state."]
    hi = ["Data parallelism mein har rank kya poora rakhta hai?", "Model, uske gradients aur optimizer state."]
    section = "Why"

A choice has `[[card.option]]` tables with `en` and `hi`, one of them with `right = true`, the others with
`why = [English, Hinglish]`. A cloze marks its gap in the question: `==gap==`; its second text is a remark. An order
card has `[[card.step]]` tables with `en` and `hi`, in the right order.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import Any

from disttutor.cards.card import ENGLISH, GAP, HINGLISH, KINDS, Card, Face, Option

LANGUAGES = {"en": ENGLISH, "hi": HINGLISH}
_OF_A_DECK = {"deck", "lesson", "card"}
_OF_A_CARD = {"id", "kind", "en", "hi", "section", "source", "concepts", "family", "option", "step", "deck", "lesson"}
_TEXTS = ("id", "kind", "deck", "section", "source", "family")
_MARKED = re.compile(r"==(\S(?:.*?\S)?)==")


class DeckError(ValueError):
    """A deck that cannot be read. Says which card is meant and what is wrong with it."""


def read_deck(text: str, name: str = "deck") -> list[Card]:
    """The cards of a deck written as TOML; `name` is used in errors. Raises DeckError."""
    try:
        table = tomllib.loads(text.removeprefix("\ufeff"))      # some editors begin a file with it
    except (ValueError, RecursionError) as error:  # also numbers of too many digits, and brackets nested too deep
        raise DeckError(f"{name} is not TOML: {error}") from None
    _known(table, _OF_A_DECK, name)
    _typed(table, name)
    cards = [_card(entry, table, f"{name}, card {number}")
             for number, entry in enumerate(_tables(table, "card", name), 1)]
    check_unique(cards, name)
    return cards


@cache
def our_cards() -> tuple[Card, ...]:
    """The course's own cards, deck by deck; the number cards come last."""
    from disttutor.cards.numbers import NUMBER_CARDS

    folder = resources.files("disttutor.cards") / "decks"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    cards = [card for file in files for card in read_deck(file.read_text(encoding="utf-8"), file.name)]
    cards += NUMBER_CARDS
    check_unique(cards, "the course")
    return tuple(cards)


def check_unique(cards: Iterable[Card], name: str) -> None:
    """Raises DeckError where two cards share an id."""
    seen: set[str] = set()
    for card in cards:
        if card.id in seen:
            raise DeckError(f"{name}: two cards have the id {card.id!r}; an id belongs to one card, as a history does")
        seen.add(card.id)


def _known(table: dict[str, Any], names: set[str], where: str) -> None:
    if strange := sorted(set(table) - names):
        raise DeckError(f"{where}: unknown {', '.join(strange)}; what can stand here: {', '.join(sorted(names))}")


def _tables(table: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    """The tables that stand below a name, none where it is missing."""
    tables = table.get(name, [])
    if not (isinstance(tables, list) and all(isinstance(entry, dict) for entry in tables)):
        raise DeckError(f"{where}: {name} must be tables, each below a line that names it in double brackets")
    return tables


def _typed(table: dict[str, Any], where: str) -> None:
    """Raises DeckError where a plain value is of another type than it has to be."""
    for name in _TEXTS:
        if not isinstance(table.get(name, ""), str):
            raise DeckError(f"{where}: {name} is {table[name]!r}, and must be a text in quotation marks")
    if type(table.get("lesson", 0)) is not int:
        raise DeckError(f"{where}: lesson is {table['lesson']!r}, and must be a number like 3")
    concepts = table.get("concepts", [])
    if not (isinstance(concepts, list) and all(isinstance(concept, str) for concept in concepts)):
        raise DeckError(f"{where}: concepts is {concepts!r}, and must be a list of ids like [\"all-reduce\"]")


def _card(entry: dict[str, Any], table: dict[str, Any], where: str) -> Card:
    _known(entry, _OF_A_CARD, where)
    _typed(entry, where)
    id = entry.get("id", "")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id):
        raise DeckError(f"{where}: its id {id!r} must be small letters and digits joined by hyphens, like ring-bytes")
    where = f"{where} ({id})"
    kind = entry.get("kind", "basic")
    if kind not in KINDS or kind == "number":
        raise DeckError(f"{where}: a deck cannot hold the kind {kind!r}; it can hold basic, choice, cloze, order")
    return Card(
        id=id, deck=entry.get("deck", table.get("deck", "disttutor")), kind=kind,
        faces=dict(_faces(entry, kind, where)), lesson=entry.get("lesson", table.get("lesson")),
        section=entry.get("section", ""), source=entry.get("source", ""),
        concepts=tuple(entry.get("concepts", ())), family=entry.get("family", ""),
    )


def _faces(entry: dict[str, Any], kind: str, where: str) -> Iterator[tuple[str, Face]]:
    for place, (key, language) in enumerate(LANGUAGES.items()):
        texts = entry.get(key)
        if not (isinstance(texts, list) and len(texts) == 2 and all(isinstance(text, str) for text in texts)):
            raise DeckError(f"{where}: {key} must be two texts, [question, answer]")
        question, answer = (text.strip() for text in texts)
        if not question or not (answer or kind == "cloze"):
            raise DeckError(f"{where}: {key} has an empty question or answer")
        if kind == "cloze":
            yield language, _cloze(question, answer, f"{where}, {key}")
        else:
            yield language, Face(question, answer, options=_options(entry, kind, key, place, where),
                                 steps=_steps(entry, kind, key, where))


def _cloze(sentence: str, remark: str, where: str) -> Face:
    if len(gaps := _MARKED.findall(sentence)) != 1:
        raise DeckError(f"{where}: a cloze has one gap, written ==gap==; here are {len(gaps)}")
    whole = _MARKED.sub(r"\1", sentence)
    return Face(_MARKED.sub(GAP, sentence), f"{whole}\n\n{remark}".strip(), missing=gaps[0])


def _options(entry: dict[str, Any], kind: str, key: str, place: int, where: str) -> tuple[Option, ...]:
    options = _tables(entry, "option", where)
    if (kind == "choice") != bool(options):
        raise DeckError(f"{where}: options belong to a choice, and a choice has some")
    for option in options:
        _known(option, {"en", "hi", "right", "why"}, f"{where}, an option")
        if type(option.get("right", False)) is not bool:
            raise DeckError(f"{where}: an option says right = {option['right']!r}; it is true or false")
        why = option.get("why", [])
        if not isinstance(why, list) or len(why) not in (0, 2) or not all(isinstance(text, str) for text in why):
            raise DeckError(f"{where}: why must be two texts, [English, Hinglish]")
        if not (option.get("right") or why):
            raise DeckError(f"{where}: a wrong option needs why = [English, Hinglish]: the reason why it is wrong")
    if kind == "choice" and (len(options) < 2 or sum(bool(o.get("right")) for o in options) != 1):
        raise DeckError(f"{where}: a choice has two or more options, and exactly one of them is right")
    texts = [_text(option, key, where) for option in options]
    if twice := sorted({text for text in texts if texts.count(text) > 1}):
        raise DeckError(f"{where}: two options say {twice[0]!r} in {key}; nobody could tell which is right")
    return tuple(Option(text, bool(o.get("right")), o["why"][place] if o.get("why") else "")
                 for text, o in zip(texts, options, strict=True))


def _steps(entry: dict[str, Any], kind: str, key: str, where: str) -> tuple[str, ...]:
    steps = _tables(entry, "step", where)
    if (kind == "order") != (len(steps) >= 2):
        raise DeckError(f"{where}: steps belong to an order card, which has at least two")
    return tuple(_text(step, key, where) for step in steps)


def _text(table: dict[str, Any], key: str, where: str) -> str:
    if not isinstance(text := table.get(key), str) or not text.strip():
        raise DeckError(f"{where}: an option or step has no text in {key}")
    return text.strip()


