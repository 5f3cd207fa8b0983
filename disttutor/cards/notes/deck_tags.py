"""Deck tags: `#flashcards` and everything below it, `#flashcards/ai-ml`. A tag names the deck that a card lies in."""

import re
from collections.abc import Iterable

ROOT = "flashcards"
# A tag goes on to white space or to punctuation other than hyphen, slash and underscore.
_LETTER = r"[^\s\x00-,.:-@\[-^`{-\x7f\u2000-\u200b\u200e-\u206f\u3000-\u303f\ufdd0]"
_ONE = rf"#(?i:{ROOT})(?:/{_LETTER}*+)?(?!{_LETTER})"
DECK_TAG = re.compile(rf"(?<!\S){_ONE}")
_OPENING = re.compile(rf"(?:{_ONE}(?:\s+|$))+")
_WHOLE = re.compile(_ONE)
_TAG_LINE = re.compile(rf"(?:#{_LETTER}++\s*+)+")


def decks_of(text: str) -> tuple[str, ...]:
    """The decks that a text's tags name, in their order, each once."""
    return tuple(dict.fromkeys(_deck(tag) for tag in DECK_TAG.findall(text)))


def decks_of_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """The decks among the tags of a front matter, which have no `#`."""
    return decks_of(" ".join(f"#{tag}" for tag in tags if not re.search(r"\s", tag)))


def is_tag_line(line: str) -> bool:
    """Whether the line is tags and nothing else, with a deck among them: it holds until the next one."""
    line = line.strip()
    return line[:1] == "#" and bool(_TAG_LINE.fullmatch(line) and DECK_TAG.search(line))


def opening_tags(text: str, at: int) -> int:
    """Where the deck tags that begin at a place of the text end, with white space after them; that place for none."""
    match = _OPENING.match(text, at)
    return match.end() if match else at


def closing_tags(text: str, end: int) -> int:
    """Where the deck tags that end at a place of the text begin, with white space before them; that place for none."""
    while _WHOLE.fullmatch(text, start := last_word(text, end), end):
        end = without_space(text, start)
    return end


def last_word(text: str, end: int) -> int:
    """Where the word begins that ends at a place of the text."""
    while end and not text[end - 1].isspace():
        end -= 1
    return end


def without_space(text: str, end: int) -> int:
    """Where white space begins that ends at a place of the text."""
    while end and text[end - 1].isspace():
        end -= 1
    return end


def tag_line(decks: Iterable[str]) -> str:
    """The line that puts cards into these decks. A deck outside the root gets the root before its name."""
    return " ".join(f"#{deck if _below_root(deck) else f'{ROOT}/{deck}'}" for deck in decks)


def _deck(tag: str) -> str:
    parts = [part for part in tag[1:].split("/") if part]
    return "/".join([ROOT, *parts[1:]])


def _below_root(deck: str) -> bool:
    return deck == ROOT or deck.startswith(f"{ROOT}/")
