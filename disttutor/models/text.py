"""English text without a download: the language reference that Python ships for its `help()`, by characters.

Every Python version ships a slightly different text, so losses differ a little between them; the vocabulary does not.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from disttutor.models.checks import sizes

# The new line and the 95 printable characters of ASCII. The number divides by 2, 3, 4, 6, 8 and more.
VOCABULARY = "\n" + "".join(map(chr, range(32, 127)))
IGNORE = -100  # a target that counts for nothing, as in torch's cross_entropy

_NUMBER_OF = {character: number for number, character in enumerate(VOCABULARY)}


def topics() -> list[str]:
    """Return the topics of Python's own reference, each one text, in the order of their names."""
    from pydoc_data.topics import topics as text_of

    return [text_of[name] for name in sorted(text_of)]


def text(characters: int | None = None) -> str:
    """Return the first `characters` of all topics together (some 460,000 in Python 3.11), or all of them.

    Raises ValueError if there are not that many.
    """
    whole = "\n".join(topics())
    if characters is not None and not 1 <= characters <= len(whole):
        raise ValueError(f"characters={characters} cannot be: the text has {len(whole)}, ask for 1 to that many")
    return whole[:characters]


def encode(characters: str) -> Tensor:
    """Return the number of each character, [len(characters)]; what is not in the vocabulary becomes a question mark."""
    unknown = _NUMBER_OF["?"]
    return torch.tensor([_NUMBER_OF.get(character, unknown) for character in characters], dtype=torch.long)


def decode(ids: Tensor) -> str:
    """Return the characters of [N] numbers. Raises IndexError for a number that is not in the vocabulary."""
    return "".join(VOCABULARY[number] for number in ids.tolist())


def pad(pieces: Sequence[str], context: int) -> tuple[Tensor, Tensor]:
    """Put each piece of text on a row of its own: (ids, targets), both [pieces, context].

    The target of a character is the one after it. Behind the end of a piece the targets are IGNORE, so rows have
    different numbers of valid tokens: min(len(piece) - 1, context), or none.
    """
    sizes(context=context)
    ids = torch.full((len(pieces), context), _NUMBER_OF["\n"])
    targets = torch.full((len(pieces), context), IGNORE)
    for row, piece in enumerate(pieces):
        numbers = encode(piece[: context + 1])
        valid = max(len(numbers) - 1, 0)
        ids[row, : min(len(numbers), context)] = numbers[:context]
        targets[row, :valid] = numbers[1:]
    return ids, targets


def windows(characters: str, context: int) -> tuple[Tensor, Tensor]:
    """Cut text into rows of `context` that follow each other: (ids, targets), both [rows, context].

    Every character but the first is the target of exactly one position; the last row is padded.
    """
    sizes(context=context)
    return pad([characters[start : start + context + 1] for start in range(0, len(characters) - 1, context)], context)


def text_batches(
    characters: str, *, batch: int, context: int, steps: int, seed: int = 0
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield `steps` batches (ids, targets), both [batch, context], cut at random places; the same for the same seed.

    Raises ValueError if the text is not longer than the context.
    """
    sizes(batch=batch, context=context)
    if len(characters) <= context:
        raise ValueError(f"a text of {len(characters)} characters is too short for context={context}: needs one more")
    numbers = encode(characters)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(numbers) - context, (batch,), generator=generator)  # batch
        places = starts[:, None] + torch.arange(context + 1)  # batch, context + 1
        yield numbers[places[:, :-1]], numbers[places[:, 1:]]
