"""The front matter of a note: the YAML between two lines of three hyphens, of which two keys matter to cards.

YAML is read by PyYAML's base loader, which makes nothing but texts, lists and tables. It resolves no merge keys, so a
note that multiplies itself by aliases stays as small as it was written.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import yaml

FENCE = "---"
LONGEST = 10_000                # letters; PyYAML reads about a hundred thousand in a second
DEEPEST = 200                   # brackets in each other: it takes quadratic time for them
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,5}")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What it says. end: the first line after it, 0 without front matter. tags: without their `#`. language: a BCP 47
    tag or "". wrong: why it could not be read, "" where it could."""

    end: int = 0
    tags: tuple[str, ...] = ()
    language: str = ""
    wrong: str = ""


def read_front_matter(lines: Sequence[str]) -> FrontMatter:
    """The front matter of a note given as lines. Never raises."""
    if not lines or lines[0] != FENCE or FENCE not in lines[1:]:
        return FrontMatter()
    end = lines.index(FENCE, 1) + 1
    text = "\n".join(lines[1:end - 1])
    if len(text) > LONGEST:
        return FrontMatter(end, wrong=f"the front matter has {len(text):,} letters, {LONGEST:,} are read at most: "
                                      "its tags are not used")
    if _depth(text) > DEEPEST:
        return FrontMatter(end, wrong=f"the front matter has more than {DEEPEST} brackets in each other: its tags are "
                                      "not used")
    try:
        table = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = getattr(error, "problem", None) or type(error).__name__
        return FrontMatter(end, wrong=f"the front matter is not YAML ({reason}): its tags are not used")
    if not isinstance(table, dict):
        return FrontMatter(end)
    language = table.get("lang") or table.get("language") or ""
    if not (isinstance(language, str) and (not language or _LANGUAGE.fullmatch(language))):
        return FrontMatter(end, _tags(table), wrong="lang in the front matter is no language tag like en or hi-Latn")
    return FrontMatter(end, _tags(table), language)


def _depth(text: str) -> int:
    """How many brackets are open at once, at most; quotes are not looked at."""
    return max(accumulate((letter in "[{") - (letter in "]}") for letter in text), default=0)


def _tags(table: dict) -> tuple[str, ...]:
    """A list of texts, or one text with commas or spaces between the tags."""
    tags = table.get("tags") or table.get("tag") or ()
    if isinstance(tags, str):
        tags = re.split(r"[,\s]+", tags)
    return tuple(tag.strip().removeprefix("#") for tag in tags if isinstance(tag, str))
