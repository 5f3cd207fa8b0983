"""Reading notes, against a plain Markdown parser on the same text in the same run; keeping progress.

    python benchmarks/cards.py [ROUNDS]

Every kind of note is read by us and by markdown-it-py, in turn, so that a busy machine slows both alike; read the
ratio. Seconds are of this process alone. `MEASUREMENTS` are run one after the other; each prints its own table.
"""

import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import fsrs

from disttutor.cards import Card, Face
from disttutor.cards.progress import Progress
from disttutor.cards.progress.events import EARLIEST, encode, make
from disttutor.cards.progress.reviews import Review
from disttutor.cards.progress.scheduling import Rating

ROUNDS = 5
CARDS = 5_000
REVIEWS = 20_000

LINE = "What does `c10d::init_{0}` do in step {0} of $x_{0}$? :: It starts process group number {0}\n"
LIST = "- What does operation {0} do? :: It adds chunk {0} to the buffer\n"
SEVERAL = "What are the parts of step {0}?\n?\nForward number {0}\nand backward\n\n"
CODE = "How is group {0} started?\n?\n```python\ninit({0})\n\nx::y\n```\n\n"
GAP = "Operation {0} leaves the ==sum {0}== on every rank.\n\n"


def notes() -> dict[str, str]:
    """Notes of 5,000 cards each, by what they are made of."""
    mixture = [LINE, "\n" + SEVERAL, LIST, "\n" + GAP, CODE]
    kinds = {"one line, with code and maths": [LINE], "list items": [LIST], "several lines": [SEVERAL],
             "with fenced code": [CODE], "gaps": [GAP], "a mixture": mixture}
    return {name: "#flashcards/a\n\n" + "".join(pieces[n % len(pieces)].format(n) for n in range(CARDS))
            for name, pieces in kinds.items()}


def seconds(action: Callable[[], object]) -> float:
    """Processor time of this process, so that others on the machine count less."""
    start = time.process_time()
    action()
    return time.process_time() - start


def reading(rounds: int) -> None:
    """Our reader, and markdown-it-py rendering the same notes to HTML."""
    from markdown_it import MarkdownIt

    from disttutor.cards.notes import parse

    peer = MarkdownIt("commonmark").enable("table")
    print(f"reading {CARDS:,} cards, {rounds} rounds in turn")
    print(f"{'':32}{'median':>10}{'best':>10}{'cards/s':>12}{'markdown-it-py / it':>22}")
    for name, note in notes().items():
        assert len(parse(note).cards) == CARDS, name
        ours, theirs = zip(*((seconds(lambda n=note: parse(n)), seconds(lambda n=note: peer.render(n)))
                             for _ in range(rounds)), strict=True)
        middle, peers = statistics.median(ours), statistics.median(theirs)
        print(f"{name:32}{middle:8.2f} s{min(ours):8.2f} s{CARDS / middle:12,.0f}{peers / middle:22.2f}")


def matching(rounds: int) -> None:
    """Finding the past of edited cards: a few among thousands, and all of them at once."""
    from disttutor.cards.notes.identity import Known, near_matches

    def cards(few: int, word: str) -> list[Known]:
        return [Known(f"{word}-{n}", "a", "basic", 1, f"What does operation {n} do to its {word}?") for n in range(few)]

    print(f"\nfinding edited cards again, {rounds} rounds")
    for few in (5, 500, CARDS):
        old, new = cards(few, "buffer"), cards(few, "bufer")
        times = [seconds(lambda a=old, b=new: near_matches(a, b)) for _ in range(rounds)]
        print(f"{f'{few:,} edited':32}{statistics.median(times):8.3f} s{min(times):8.3f} s")


def progress_of(home: Path) -> int:
    """A learner's progress below `home`: 20,000 reviews of 500 cards in 40 kernels; gives its bytes."""
    chance, moment = random.Random(4), datetime(2024, 1, 1, 12, tzinfo=UTC)
    (home / "events").mkdir()
    for kernel in range(40):
        lines = []
        for _ in range(REVIEWS // 40):
            moment += timedelta(minutes=40)
            lines.append(encode(make("review", moment, moment.date(), EARLIEST, card=f"card-{chance.randrange(500)}",
                                     rating=chance.choice((1, 3, 3, 3)), confidence=75, seconds=4.2, retention=0.9)))
        (home / "events" / f"{kernel}.jsonl").write_bytes(b"".join(lines))
    return sum(file.stat().st_size for file in (home / "events").iterdir())


def replaying(rounds: int) -> None:
    """Opening a learner's progress in a new kernel, and what fsrs alone takes for the same histories."""
    with TemporaryDirectory() as home:
        size = progress_of(Path(home))
        histories: dict[str, list[Review]] = defaultdict(list)
        for review in Progress(Path(home)).reviews:
            histories[review.card].append(review)
        scheduler = fsrs.Scheduler(enable_fuzzing=False)

        def by_fsrs() -> None:
            for history in histories.values():
                card = fsrs.Card(card_id=1)
                for review in history:
                    card, _ = scheduler.review_card(card, fsrs.Rating(review.rating), review.moment)

        ours, theirs = zip(*((seconds(lambda: len(Progress(Path(home)).states)), seconds(by_fsrs))
                             for _ in range(rounds)), strict=True)
    middle, peers = statistics.median(ours), statistics.median(theirs)
    print(f"\nreplaying {REVIEWS:,} reviews, {size / 2**20:.1f} MiB in 40 files: median {middle:.2f} s, "
          f"best {min(ours):.2f} s; fsrs alone {peers:.2f} s, {peers / middle:.2f} of it")


def answering(rounds: int) -> None:
    """One answer, until it is on the disk, beside a bare write and fsync of as many bytes. Wall time."""
    with TemporaryDirectory() as home:
        progress, card = Progress(Path(home)), Card(id="a", deck="d", faces={"en": Face("Which?", "This.")})
        line, ours, theirs = b"x" * 250, [], []
        with open(Path(home) / "bare", "ab", buffering=0) as file:
            for _ in range(100 * rounds):
                start = time.perf_counter()
                progress.answer(card, Rating.REMEMBERED, confidence=75)
                between = time.perf_counter()
                file.write(line)
                os.fsync(file)
                ours.append(between - start)
                theirs.append(time.perf_counter() - between)
    print(f"\nanswering {len(ours)} times: median {1e3 * statistics.median(ours):.2f} ms, slowest "
          f"{1e3 * max(ours):.1f} ms; a bare write and fsync {1e3 * statistics.median(theirs):.2f} ms")


MEASUREMENTS: tuple[Callable[[int], None], ...] = (reading, matching, replaying, answering)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    for measure in MEASUREMENTS:
        measure(rounds)


if __name__ == "__main__":
    main()
