"""Cards and files: `disttutor cards lint`, `export` and `import`."""

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from disttutor.files import write_whole
from disttutor.terminal.desk import Decks, all_cards, at_home, choose, console, fail, open_progress, say

# What a file of each format is called if it is given no name, and what a name says of the format.
NAMES = {"apkg": "disttutor.apkg", "tsv": "disttutor.tsv", "markdown": "disttutor.md"}
FORMATS = {".apkg": "apkg", ".tsv": "tsv", ".txt": "tsv", ".md": "markdown", ".markdown": "markdown"}
WRITTEN = {".md", ".markdown", ".toml"}
PROGRESS = "disttutor-progress.json"
# What a file begins with that an earlier export has made; a note may be somebody's own, whatever it begins with.
BEGINNINGS = {"apkg": b"PK", "tsv": b"#separator:tab\n", "progress": b'{\n "format": "disttutor progress",'}

Target = Annotated[Path | None, typer.Argument(help="Where to; - is standard output.", show_default=NAMES["apkg"])]
FormatName = Annotated[str, typer.Option(metavar="FORMAT",
                                         help=f"One of {', '.join(NAMES)}; by default what FILE ends in.")]
Linted = Annotated[list[Path], typer.Argument(metavar="FILE", help="Notes (.md), decks (.toml), or folders of them.")]
Exported = Annotated[Path, typer.Argument(help="What disttutor cards export --progress has made.")]


def lint(files: Linted) -> None:
    """Check the cards in notes or decks that you write.

    Says what is wrong and what may be better, and ends with 1 if something is wrong.
    """
    from disttutor.cards.lint import lint_file

    out = console()
    for file in files:
        if not os.path.exists(file):        # which does not raise for a name that no file can have
            fail(out, f"{file} is not there. Name a note or a deck, for example: disttutor cards lint notes/today.md")
        if not _written(file):
            fail(out, f"{file} holds no note (.md) and no deck (.toml), or only hidden ones. Name one of them.")
    findings = [(file, finding) for named in files for file in _written(named) for finding in lint_file(file)]
    for file, finding in findings:
        say(out, f"{file}:{finding.line}: {finding.level}: {finding.text}")
    raise typer.Exit(any(finding.level == "error" for _, finding in findings))


def export(
    file: Target = None,
    format: FormatName = "",
    deck: Decks = None,
    hinglish: Annotated[bool, typer.Option("--hinglish", help="Markdown in Hinglish instead of English.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Also over a file that may be your own.")] = False,
    progress: Annotated[bool, typer.Option("--progress", help="Not the cards, but what you have answered.")] = False,
) -> None:
    """Write the cards, or your progress, to a file.

    Cards for Anki (.apkg), as text with tabs (.tsv) or as an Obsidian note (.md).
    """
    out = console(stderr=str(file) == "-")
    if progress:
        if format:
            fail(out, "--progress writes all that you have answered, in a format of its own: leave --format out, "
                      "for example: disttutor cards export --progress progress.json")
        return _export_progress(out, at_home(file or Path(PROGRESS)), replace)
    format = format or _format(out, file)
    if format not in NAMES:
        fail(out, f"There is no format {format!r}. There are: {', '.join(NAMES)}.")
    file = at_home(file or Path(NAMES[format]))
    _spare(out, file, format, replace)
    cards = choose(out, all_cards(out, open_progress(out)), deck)
    try:
        _write(out, cards, file, format, hinglish)
    except ValueError as error:
        fail(out, f"Nothing is written: {error}.")
    except OSError as error:
        _no_place(out, file, error, NAMES[format])


def take_in(file: Exported) -> None:
    """Add the progress of another computer to the one here. Doing it twice changes nothing."""
    from disttutor.cards.progress import transfer

    out = console()
    try:
        count = transfer.take_in(open_progress(out), at_home(file))
    except transfer.TransferError as error:
        fail(out, f"{error}.", "Make it anew on the other computer: disttutor cards export --progress FILE")
    except OSError as error:
        fail(out, f"{error.filename or file} cannot be read or written: {error.strerror or error}.")
    say(out, f"{_entries(count)} new here." if count else "All of it was here already.")


def _written(path: Path) -> list[Path]:
    """A file itself; of a folder all notes and decks below it that are not hidden."""
    if not path.is_dir():
        return [path]
    below = [file for file in path.rglob("*") if file.suffix.lower() in WRITTEN and os.path.isfile(file)]
    return sorted(file for file in below if not any(part.startswith(".") for part in file.relative_to(path).parts))


def _format(out: Console, file: Path | None) -> str:
    if file is None:
        return "apkg"
    if file.suffix.lower() not in FORMATS:
        fail(out, f"{str(file)!r} does not say what to write: it can end in {', '.join(FORMATS)}.",
             "Or name the format, for example: --format tsv")
    return FORMATS[file.suffix.lower()]


def _spare(out: Console, file: Path, format: str, replace: bool) -> None:
    """Ends the command where it would write over a file that no export of this format has made."""
    if replace or not os.path.isfile(file):
        return
    try:
        with open(file, "rb") as there:
            begins = there.read(50)
    except OSError as error:
        _no_place(out, file, error, NAMES.get(format, PROGRESS))
    if format not in BEGINNINGS or not begins.startswith(BEGINNINGS[format]):
        fail(out, f"{file} is there already, and may be a note of yours. To write over it: --replace")


def _print(text: bytes) -> None:
    """Standard output gets the bytes that a file would, whatever letters this terminal has."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def _write(out: Console, cards: list, file: Path, format: str, hinglish: bool) -> None:
    from disttutor.cards import ENGLISH, HINGLISH, anki
    from disttutor.cards.notes.writing import as_markdown
    from disttutor.cards.sitting.summary import counted

    drawn = sum(card.kind == "number" for card in cards)
    if format == "apkg":
        if str(file) == "-":
            raise ValueError(f"a package is no text for standard output: name a file, such as {NAMES[format]}")
        count = anki.export(cards, file)
        say(out, f"{count} notes are in {file}. In Anki: File, then Import.")
        if drawn:
            say(out, "Anki cannot draw numbers: each number card is there as several examples.")
        say(out, "A later export, imported again, brings new texts to these notes and leaves your learning as it is.")
        return
    text = anki.tsv(cards) if format == "tsv" else as_markdown(cards, HINGLISH if hinglish else ENGLISH)
    if str(file) == "-":
        return _print(text.encode())
    write_whole(file, text.encode())
    say(out, f"The cards are in {file}.")
    if format == "markdown" and drawn:
        say(out, f"Without {counted(drawn, 'number card')}: a note cannot draw new numbers each time.")


def _export_progress(out: Console, file: Path, replace: bool) -> None:
    from disttutor.cards.progress import transfer

    if str(file) == "-":
        return _print(transfer.content(open_progress(out).all_events()))
    _spare(out, file, "progress", replace)
    try:
        count = transfer.export(open_progress(out), file)
    except OSError as error:
        _no_place(out, file, error, PROGRESS)
    say(out, f"{_entries(count)} in {file}. On another computer: disttutor cards import {file.name}")


def _entries(count: int) -> str:
    return "1 entry is" if count == 1 else f"{count} entries are"


def _no_place(out: Console, file: Path, error: OSError, name: str) -> NoReturn:
    fail(out, f"{file} cannot be written: {error.strerror or error}.",
         f"Name a file in a folder that you can write to, for example: ~/{name}")
