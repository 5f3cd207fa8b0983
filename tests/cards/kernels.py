"""Processes that stand for kernels in the tests of progress: they answer cards, and say after each that it is done.

    python -m tests.cards.kernels killed HOME 200       # so many are killed at random, one after the other
    python -m tests.cards.kernels together HOME 4 200   # so many at once, with so many answers each

Run by itself, so that a fork copies neither torch nor its threads. Prints what it found as JSON.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from disttutor.cards.card import Card, Face
from disttutor.cards.progress import Progress
from disttutor.cards.progress.scheduling import Rating


def card(name: str, question: str = "", deck: str = "deck") -> Card:
    """A basic card with a question of its own."""
    return Card(id=name, deck=deck, faces={"en": Face(question or f"What is {name}?", f"It is {name}.")})


def run(*arguments: Any) -> dict[str, Any]:
    """Runs this file by itself, and gives what it found."""
    command = [sys.executable, "-m", "tests.cards.kernels", *map(str, arguments)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def answers(progress: Progress, count: int, tell: Callable[[str], Any]) -> None:
    """Answers cards, and tells the id of each review once it is done."""
    for number in range(count):
        review = progress.answer(card(f"card-{number % 7}"), Rating(1 + number % 4), given="x" * (number % 300))
        tell(review.id)


def start(home: Path, count: int) -> tuple[int, int]:
    """A kernel that answers cards; its process id, and the pipe on which it tells what is done."""
    ours, theirs = os.pipe()
    if child := os.fork():
        os.close(theirs)
        return child, ours
    status = 1
    try:
        answers(Progress(home), count, lambda id: os.write(theirs, f"{id}\n".encode()))
        status = 0
    finally:
        os._exit(status)


def told(pipe: int, begun: bytes = b"") -> list[str]:
    """What came through the pipe until its other end was closed, without a last line that was cut short."""
    with open(pipe, "rb") as file:
        return (begun + file.read()).decode().split("\n")[:-1]


def killed(home: Path, kills: int) -> dict[str, Any]:
    """Kills kernels at random moments, some while they start; after each the progress must be there and go on."""
    chance, done, found, warnings = random.Random(38), 0, 0, []
    for begin in range(0, kills, 40):                   # a home of its own for each 40, which keeps starting quick
        reader, ids = Progress(home / str(begin)), set()
        for _ in range(min(40, kills - begin)):
            ids |= set(_killed(reader.home, chance))
            reader.refresh()
            if lost := ids - {review.id for review in reader.reviews}:
                return {"lost": sorted(lost), "done": done + len(ids)}
        done, found, warnings = done + len(ids), found + len(reader.reviews), warnings + reader.warnings
    return {"lost": [], "done": done, "found": found, "warnings": warnings}


def _killed(home: Path, chance: random.Random) -> list[str]:
    """What a kernel said to be done, until it was killed at a random moment."""
    child, pipe = start(home, 10**6)
    begun = os.read(pipe, 100) if chance.random() < 0.8 else b""
    time.sleep(chance.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return told(pipe, begun)


def together(home: Path, kernels: int, count: int) -> dict[str, Any]:
    """Kernels that answer at the same time."""
    started = [start(home, count) for _ in range(kernels)]
    done = [id for _, pipe in started for id in told(pipe)]
    states = [os.waitpid(child, 0)[1] for child, _ in started]
    progress = Progress(home)
    return {"ends": states, "done": len(done), "lost": sorted(set(done) - {review.id for review in progress.reviews}),
            "found": len(progress.reviews), "warnings": progress.warnings, "files": len(os.listdir(progress.folder))}


if __name__ == "__main__":
    task, where, *numbers = sys.argv[1:]
    print(json.dumps({"killed": killed, "together": together}[task](Path(where), *map(int, numbers))))
