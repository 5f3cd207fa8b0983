"""Broken notes for tests: the examples with pieces of syntax thrown in, cut out and doubled."""

import json
import random
from pathlib import Path

EXAMPLES = [example["markdown"] for example in
            json.loads(Path(__file__).with_name("note_examples.json").read_text(encoding="utf-8"))]
PIECES = [
    "::", ":::", "?", "??", "\n?\n", "\n??\n", "==", "**", "{{", "}}", ";;", "1;;", "`", "``", "```", "\n```\n", "~~~",
    "\n~~~\n", "$", "$$", "%%", "<!--", "-->", "<!--SR:!x-->", "[[", "]]", "[", "]", "(", ")", "](", "> ", "\n> ", "- ",
    "\n- ", "1. ", "    ", "\t",
    "#flashcards/a", "\n#flashcards/b\n", " #flashcards", "^id", " ^blk-1", "\n\n", "\n",
    "\r\n", "\r", "\0", "\ud800", "\udc00", "\ufdd0", "\u2028", "\x0b", "\x1c", "\ufeff", "---\n", "\n---\n",
    "tags: [flashcards]\n", "lang: hi\n",
    "| a | b |\n|---|---|\n| x :: y | z |", "<div>", "<pre>", "</pre>", "<script>",
    '<a href="x::y">', "http://x/a::b", "[::1]", "> [!note] T", "> [!sr|card-metadata]", "# Hinglish\n", "&a [*a]",
    "\\", "\\:", "हिन्दी", "🚀", "e\u0301", "=", "===", "====", "* ", "a::b", " :: ",
]


def broken_note(seed: int) -> str:
    """The same for the same seed."""
    chance = random.Random(seed)
    if chance.random() < 0.03:
        return "".join(chance.choices(PIECES, k=chance.randint(1, 60)))
    text = "".join(chance.choices(EXAMPLES, k=chance.choice((1, 1, 1, 2))))
    for _ in range(chance.randint(0, 8)):
        start = chance.randint(0, len(text))
        end = start + chance.randint(0, 6)
        letter = chr(chance.choice((chance.randint(0, 127), chance.randint(0, 0xFFFF), chance.randint(0, 0x10FFFF))))
        middles = chance.choice(PIECES) + text[start:end], "", letter, text[start:end] * 3
        middle = chance.choices(middles, weights=(6, 2, 1, 1))[0]
        text = text[:start] + middle + text[end:]
    return text + chance.choice(PIECES) * chance.randint(1, 2000) if chance.random() < 0.01 else text


if __name__ == "__main__":
    import sys

    from disttutor.cards.notes import parse

    count = cards = 0
    for seed in range(int(sys.argv[1])):
        note = broken_note(seed)
        cards += len(parse(note, bold=seed % 2 == 0, braces=seed % 3 == 0).cards)
        count += 1
    print(f"{count:,} broken notes, {cards:,} cards, no exception")
