"""The command `disttutor cards`: a review in the terminal, and what else one does with cards outside of a notebook."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from disttutor.terminal import files
from disttutor.terminal.desk import Decks, all_cards, at_home, choose, console, fail, open_progress, say, say_if_lost

if TYPE_CHECKING:
    from disttutor.cards import Card
    from disttutor.cards.progress import Progress

ANSWERS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}

cards = typer.Typer(help="Review what is due, here in the terminal.", rich_markup_mode=None)
cards.command()(files.lint)
cards.command()(files.export)
cards.command("import")(files.take_in)


@cards.callback(invoke_without_command=True)
def review(
    context: typer.Context,
    deck: Decks = None,
    new: Annotated[int | None, typer.Option(min=0, metavar="N", help="At most N cards never asked before.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also cards that are not due.")] = False,
) -> None:
    """Review what is due, here in the terminal."""
    if context.invoked_subcommand:
        return
    from disttutor.cards.sitting.review import Review
    from disttutor.cards.sitting.summary import summary
    from disttutor.terminal.keyboard import Keyboard
    from disttutor.terminal.review import confirm, sit
    from disttutor.terminal.screen import narrow

    out, keyboard = narrow(console()), Keyboard()
    progress = open_progress(out)
    cards = all_cards(out, progress)
    chosen = choose(out, cards, deck)
    confirm(progress, progress.adopt(cards), out, keyboard)
    sitting = Review(chosen, progress, new_limit=new, everything=everything)
    if not sitting.total:
        say(out, "Nothing is due now. To go through cards all the same: disttutor cards --all")
        _say_what_waits(out, chosen, progress)
    sit(sitting, out, keyboard)
    for sentence in summary(sitting, chosen):
        out.print(Text(sentence))
    say_if_lost(out, progress)


def _say_what_waits(out: Console, chosen: "Sequence[Card]", progress: "Progress") -> None:
    """Cards that were never asked, where the day's new ones are used up: as when notes were added today."""
    from disttutor.cards.progress.scheduling import NEW
    from disttutor.cards.sitting.summary import counted

    waiting, limit = sum(progress.states.get(card.id, NEW).is_new for card in chosen), progress.setting("new_per_day")
    if waiting and progress.started_today() >= limit:
        say(out, f"Never asked before: {counted(waiting, 'card')}; today's new ones are used up (new_per_day is "
                 f"{limit}). To be asked some all the same: --new 5")


@cards.command()
def stats(deck: Decks = None) -> None:
    """Count the known, learning, new and due cards of each deck."""
    from rich.table import Table

    from disttutor.cards.choosing import heading
    from disttutor.cards.knowledge import card_state
    from disttutor.cards.sitting.summary import counted

    out = console()
    progress = open_progress(out)
    chosen = choose(out, all_cards(out, progress), deck)
    due, today, states = {card.id for card in progress.due(chosen)}, progress.today, progress.states
    counts: dict[str, Counter[str]] = {}
    for card in chosen:
        counts.setdefault(card.deck, Counter()).update(
            ["cards", card_state(states.get(card.id), today), *["due"] * (card.id in due)])
    total = sum(counts.values(), Counter())
    columns = ("cards", "known", "learning", "new", "due")
    table = Table("deck")
    for column in columns:
        table.add_column(column, justify="right")
    rows = [(heading(deck), count) for deck, count in sorted(counts.items())]
    for name, count in [*rows, *[("all of them", total)] * (len(rows) > 1)]:
        table.add_row(Text(name), *(str(count[column]) for column in columns))
    out.print(table)
    say(out, f"{counted(len(progress.reviews), 'review')} on {counted(len(progress.study_days()), 'day')} until now.")
    say(out, f"Due now: {counted(total['due'], 'card')}. To be asked: disttutor cards")


@cards.command()
def notes(
    folder: Annotated[Path | None, typer.Argument(help="A folder with Markdown notes, or one note.")] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Ask the cards of FOLDER no longer.")] = False,
) -> None:
    """Ask the cards of your own notes too.

    For example: disttutor cards notes ~/vault. The notes are read anew each time, and never written to. Without FOLDER,
    say which ones are read.
    """
    out = console()
    progress = open_progress(out)
    folders = progress.setting("notes_folders")
    if folder is None and forget:
        fail(out, f"Name the folder to be asked no longer; what is read: {', '.join(folders) or 'nothing'}.")
    if folder is None:
        for name in folders:
            _tell(out, name)
        if not folders:
            say(out, "No notes of yours are read. To change that: disttutor cards notes FOLDER")
        return
    name = os.path.abspath(at_home(folder))         # one name for a folder, however it is given
    if forget and name not in folders:
        fail(out, f"{name} is not read anyway; what is read: {', '.join(folders) or 'nothing'}.")
    if not forget and not os.path.exists(name):
        fail(out, f"{name} is not there. Name the folder in which your notes are.")
    progress.set("notes_folders", [other for other in folders if other != name] + [name] * (not forget))
    if forget:
        say(out, f"{name} is read no longer. What you have learnt of its cards is kept.")
    else:
        _tell(out, name)
    say_if_lost(out, progress)


def _tell(out: Console, name: str) -> None:
    """How many cards a folder has, and which lines look like cards and are none."""
    from disttutor.cards.notes.folder import read_folder
    from disttutor.cards.sitting.summary import counted

    cards, diagnostics = read_folder(Path(name))
    say(out, f"{name}: {counted(len(cards), 'card')}")
    for file, found in diagnostics.items():
        for lost in (diagnostic for diagnostic in found if diagnostic.lost):
            say(out, f"  {file}:{lost.line}: no card: {lost.reason}")


@cards.command()
def settings(
    name: Annotated[str | None, typer.Argument(help="Which one; without it all are listed.")] = None,
    value: Annotated[str | None, typer.Argument(help="What it shall be.")] = None,
) -> None:
    """Show how the quiz is set, or change it.

    For example: disttutor cards settings buttons 4
    """
    from disttutor.cards.progress.preferences import PREFERENCES

    out = console()
    progress = open_progress(out)
    if name is not None and value is not None:
        try:
            progress.set(name, _typed(value))
        except ValueError as error:
            fail(out, f"It stays as it is: {error}.")
    for shown in PREFERENCES if name is None else [name]:
        try:
            value = progress.setting(shown)
            say(out, f"{shown}: {value}  ({PREFERENCES[shown].words})\n    {PREFERENCES[shown].about}")
        except ValueError as error:
            fail(out, f"Nothing to show: {error}.")
    say_if_lost(out, progress)


def _typed(text: str) -> object:
    """Numbers, yes and no as what they mean; anything else as text."""
    if (word := text.strip().lower()) in ANSWERS:
        return ANSWERS[word]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
