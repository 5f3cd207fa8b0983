"""Hinglish as it is spelled here: one spelling for each of the small words, plain ASCII, technical words in English.

Hindi in Latin letters has no standard spelling. One house list keeps our own texts alike; what a learner types is never
held against it.
"""

import re
import unicodedata
from collections.abc import Iterator

from disttutor.cards.notes.masking import MASKED, find_spans, mask

# The house's spelling, and others of the same word that are met. Spellings that are English words too are left out.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "aadha": ("adha", "aadhaa"),
    "agar": ("agr",),
    "apna": ("apnaa",),
    "baad": ("baadh",),
    "bahut": ("bohot", "bahot", "bhot", "bahoot"),
    "bhi": ("bhee",),
    "bina": ("binaa",),
    "chahiye": ("chahie", "chaiye", "chahiey", "caahiye"),
    "char": ("chaar",),
    "dono": ("donon", "donno"),
    "hain": ("hein", "hainn"),
    "hai": ("hei",),
    "hota": ("hotaa",),
    "isliye": ("isiliye", "islie", "isliey"),
    "jaata": ("jata", "jaataa"),
    "jaate": ("jate",),
    "jaati": ("jati",),
    "jaise": ("jese", "jaese"),
    "jitna": ("jitnaa",),
    "kaise": ("kese", "kaese"),
    "kahan": ("kaha", "kahaan", "kahaa"),
    "karna": ("krna", "karnaa"),
    "karta": ("krta", "kartaa"),
    "kaun": ("kon", "koun"),
    "kitna": ("kitnaa",),
    "kya": ("kyaa",),
    "kyun": ("kyu", "kyoon", "kyon"),
    "kyunki": ("kyonki", "kyuki", "kyunkii", "kyoonki"),
    "lekin": ("lekn", "laykin"),
    "matlab": ("mtlb", "matlb"),
    "mein": ("mai", "mei", "mey"),
    "milta": ("miltaa",),
    "nahin": ("nahi", "nai", "nahee", "nhi", "naheen"),
    "pehle": ("pahle", "phle", "pehley"),
    "phir": ("fir", "phirr"),
    "poora": ("pura", "puraa"),
    "poori": ("puri",),
    "rakhta": ("rkhta",),
    "saath": ("sath",),
    "sabhi": ("sabhee",),
    "sirf": ("srf", "sirph"),
    "taaki": ("taki", "takki"),
    "thoda": ("thora", "thodaa"),
    "to": ("toh",),
    "wahi": ("vahi", "wahee"),
    "warna": ("varna",),
    "wo": ("woh", "vo", "voh"),
    "yahi": ("yehi", "yahee"),
    "ye": ("yeh", "yah"),
    "zyada": ("jyada", "zyaada", "jyaada", "ziada"),
}
_HOUSE = {other: house for house, others in SPELLINGS.items() for other in others}
_WORD = re.compile(r"[^\W\d_]+")


def misspelled(text: str) -> Iterator[tuple[str, str]]:
    """Words of a Hinglish text that are spelled otherwise here, each with its spelling. Code and mathematics, and words
    with a capital letter inside a sentence (names), are passed over."""
    for match in _WORD.finditer(_prose(text)):
        word = match[0]
        house = _HOUSE.get(word.lower())
        if house and (word.islower() or match.start() == 0):
            yield word, house


def not_ascii(text: str) -> Iterator[str]:
    """Words with Devanagari letters or with marks on Latin ones."""
    for match in re.finditer(r"[^\s\0]+", _prose(text)):
        if not match[0].isascii() and any(_is_foreign(letter) for letter in match[0]):
            yield match[0]


def _is_foreign(letter: str) -> bool:
    return not letter.isascii() and unicodedata.name(letter, "").startswith(("DEVANAGARI", "LATIN", "COMBINING"))


def _prose(text: str) -> str:
    text = text.replace(MASKED, " ")
    return mask(text, find_spans(text, [len(text)])[0])[1]
