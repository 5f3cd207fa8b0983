"""What makes a card of a note the same card tomorrow: its id, and the search for its past where its text was edited.

An id is the one that the note gives (`^block-id`), else a hash of the question, its deck and its kind, so the answer
may change at will. Where the question changes, the id does: `near_matches` then finds which card that was before.
"""

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from disttutor.cards.card import GAP, Card

NEAR = 0.8                      # ratio of difflib from which on two questions are near
BESIDE = 20                     # letters on each side of a gap that are compared
LONGEST = 600                   # letters of a question that are compared
CANDIDATES = 6                  # orphans looked at closely for each newcomer
MOST_LOOKED_UP = 2_000          # orphans looked up for each newcomer, by its rarest triples of letters
_SIBLINGS = {str(number) for number in range(2, 100)}
_HASHED = re.compile(r"note-[0-9a-f]{20}(?:-[0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class Known:
    """What near-matching must know of a card. sibling: its number among the cards of one place, from 1."""

    id: str
    deck: str
    kind: str
    sibling: int
    front: str


def fold(text: str) -> str:
    """The text as it is compared: composed (NFC), its white space folded, its capitals kept."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def hashed_id(front: str, deck: str, kind: str) -> str:
    """The id of a card without one. The same with every Python and on every machine; usable as a block id."""
    key = "\0".join((fold(front), fold(deck), kind))
    return "note-" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def id_of_block(block_id: str) -> str:
    """The card id of an explicit block id. Its `^` keeps it apart from the course's own ids.

    What `hashed_id` once gave, and somebody wrote into the note since, stays as it was: so a history goes on.
    """
    return block_id if _HASHED.fullmatch(block_id) else f"^{block_id}"


def block_of_id(card_id: str) -> str:
    """The block id that stands for a card of a note; siblings share it."""
    return card_id.partition(".")[0].removeprefix("^")


def sibling_id(base: str, sibling: int) -> str:
    """The id of the sibling-th card, from 1, of one place in a note."""
    return base if sibling == 1 else f"{base}.{sibling}"


def known(card: Card) -> Known:
    """What near-matching must know of a card, from any deck."""
    sibling = card.id.rpartition(".")[2]
    front = next(iter(card.faces.values())).question if card.faces else ""
    return Known(card.id, card.deck, card.kind, int(sibling) if sibling in _SIBLINGS else 1, front)


def near_matches(orphans: Iterable[Known], newcomers: Iterable[Known]) -> list[tuple[str, str, float]]:
    """Which newcomer was which orphan before an edit: (old id, new id, ratio of likeness), the surest first.

    Both of a pair have the same deck, kind and sibling number; or the same question, kind and sibling number in two
    decks, as after a deck was renamed. There is no pair where two orphans could be the past of
    a newcomer, or two newcomers the future of an orphan; nor where a number in the question changed, since that asks
    something else, as does a gap at another place of the same sentence. One changed letter is always near.
    """
    groups: dict[tuple[object, ...], tuple[list[Known], list[Known]]] = defaultdict(lambda: ([], []))
    questions: dict[tuple[object, ...], tuple[list[Known], list[Known]]] = defaultdict(lambda: ([], []))
    for side, cards in enumerate((orphans, newcomers)):
        for card in cards:
            questions[fold(card.front), card.kind, card.sibling][side].append(card)
            numbers = tuple(re.findall(r"\d+", card.front))
            groups[card.deck, card.kind, card.sibling, numbers][side].append(card)
    pairs = [pair for old, new in groups.values() for pair in _in_group(old, new)]
    pairs += [(before.id, now.id, 1.0) for (front, *_), (old, new) in questions.items() if front
              for before in old for now in new if before.deck != now.deck]
    pasts, futures = Counter(new for _, new, _ in pairs), Counter(old for old, _, _ in pairs)
    sure = [pair for pair in pairs if pasts[pair[1]] == futures[pair[0]] == 1]
    return sorted(sure, key=lambda pair: -pair[2])


def _in_group(old: Sequence[Known], new: Sequence[Known]) -> Iterable[tuple[str, str, float]]:
    """All near pairs. Comparing each with each would take minutes for thousands, so only those that share one of a
    newcomer's rarest triples of letters are compared, those that share most of them first."""
    if not old or not new:
        return
    olds = [fold(card.front)[:LONGEST] for card in old]
    holders: dict[str, list[int]] = defaultdict(list)
    for place, front in enumerate(olds):
        for triple in _triples(front):
            holders[triple].append(place)
    matcher = SequenceMatcher(autojunk=False)
    for card in new:
        front = fold(card.front)[:LONGEST]
        matcher.set_seq2(front)
        for place in _candidates(front, holders):
            # The gaps first: they are quickly compared.
            if _same_gap(old[place].front, card.front) and (ratio := _likeness(matcher, olds[place], front)):
                yield old[place].id, card.id, ratio


def _candidates(front: str, holders: dict[str, list[int]]) -> list[int]:
    """Where the orphans stand that share most of the rarest triples."""
    counts: Counter[int] = Counter()
    looked_up = 0
    for places in sorted((holders[triple] for triple in _triples(front) if triple in holders), key=len):
        if looked_up and looked_up + len(places) > MOST_LOOKED_UP:
            break
        counts.update(places)
        looked_up += len(places)
    return [place for place, _ in counts.most_common(CANDIDATES)]


def _triples(text: str) -> set[str]:
    padded = f"\0\0{text}\0\0"
    return {padded[at:at + 3] for at in range(len(padded) - 2)}


def _likeness(matcher: SequenceMatcher, old: str, new: str) -> float:
    """The ratio of two questions that are near, 0 for others."""
    matcher.set_seq1(old)
    if not _one_letter_apart(old, new):
        if matcher.real_quick_ratio() < NEAR or matcher.quick_ratio() < NEAR or matcher.ratio() < NEAR:
            return 0.0
    return matcher.ratio()


def _same_gap(old: str, new: str) -> bool:
    """Whether the words beside the gaps of two questions are near; True where one of them shows no gap."""
    before, was, after = fold(old).partition(GAP)
    left, now, right = fold(new).partition(GAP)
    pairs = ((before[-BESIDE:], left[-BESIDE:]), (after[:BESIDE], right[:BESIDE]))
    return not (was and now) or all(_likeness(SequenceMatcher(None, "", there, False), here, there)
                                    for here, there in pairs if here != there)


def _one_letter_apart(one: str, other: str) -> bool:
    """One letter changed, added or lost, in texts of three letters and more: shorter ones share too little else."""
    if min(len(one), len(other)) < 3 or abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    return one[start + (len(one) >= len(other)):] == other[start + (len(other) >= len(one)):]
