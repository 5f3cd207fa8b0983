"""What every command about cards begins with: something to speak with, the learner's progress, and the cards."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from disttutor.cards import Card
    from disttutor.cards.progress import Progress

Decks = Annotated[list[str] | None, typer.Option("--deck", "-d", metavar="DECK",
                                                 help="Only this deck, as 03 or ai-ml; may be given several times.")]


def console(*, stderr: bool = False) -> Console:
    """What to speak with. A letter that this terminal does not have is no reason to stop."""
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(errors="replace")
    return Console(highlight=False, stderr=stderr)


def say(to: Console, text: str, style: str = "") -> None:
    """A text with names in it, which must be neither broken in two nor taken for marks."""
    to.print(Text(text, style), soft_wrap=True)


def fail(to: Console, *lines: str) -> NoReturn:
    """Say what is wrong and what would work, and end with 2."""
    for line in lines:
        say(to, line)
    raise typer.Exit(2)


def at_home(path: Path) -> Path:
    """The path with `~` as the home folder; of a user that there is not it stays as it was given."""
    return Path(os.path.expanduser(path))


def open_progress(to: Console) -> "Progress":
    """The learner's progress; what stands in its way is said."""
    from disttutor.cards.progress import here

    progress = here()
    for warning in progress.warnings:
        say(to, warning, "yellow")
    return progress


def say_if_lost(to: Console, progress: "Progress") -> None:
    """Say why what was done is not kept, if it is not: that shows only once something is to be written."""
    if progress.notice:
        say(to, progress.notice, "bold yellow")


def all_cards(to: Console, progress: "Progress") -> "list[Card]":
    """Cards of the course and of the learner's notes; what is odd about the notes is said."""
    from disttutor.cards.shelf import every_card

    cards, remarks = every_card(progress)
    for remark in remarks:
        say(to, remark, "yellow")
    return cards


def choose(to: Console, cards: "Sequence[Card]", decks: Sequence[str] | None) -> "list[Card]":
    """The cards of these decks, or all. Ends the command where there is no such deck."""
    from disttutor.cards import choosing

    try:
        return choosing.choose(cards, decks or [])
    except choosing.UnknownDeck as error:
        fail(to, str(error))
