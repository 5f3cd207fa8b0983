"""The command `disttutor`: the lessons, a look at the machine, and the main job without a notebook."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from disttutor import __version__, lessons
from disttutor.terminal.cards import cards

app = typer.Typer(
    help="Distributed training, learnt by running it: real ranks, and a picture of what they did.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.add_typer(cards, name="cards")

SIGNS = {"fine": "[green]  ok  [/green]", "note": "[yellow] note [/yellow]", "wrong": "[bold red] wrong[/bold red]"}


def main() -> None:
    """Where the installed command begins."""
    app()


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Say the version and end.")] = False) -> None:
    if version:
        typer.echo(f"disttutor {__version__}")
        raise typer.Exit


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where your copies of the lessons are kept.")] = lessons.FOLDER,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser, or only say where.")] = True,
    port: Annotated[int | None, typer.Option(help="Of JupyterLab; by default the next free one from 8888.")] = None,
) -> None:
    """Open the lessons in JupyterLab.

    They are copied into FOLDER first, never over a changed file.

    Further arguments are handed to jupyter lab as they are, for example --IdentityProvider.token=secret
    """
    console = _console()
    folder = folder.expanduser()
    try:
        outcomes = lessons.copy_lessons(folder)
    except OSError as error:
        console.print(f"The lessons cannot be copied to {escape(str(folder))}: {escape(str(error))}.")
        console.print("Name a folder that you can write to, for example: disttutor lab ~/lessons")
        raise typer.Exit(2) from None
    for outcome in outcomes:
        if outcome.state != "current":
            console.print(escape(str(outcome)))
    console.print(f"Opening JupyterLab in {escape(str(folder.resolve()))} ...")
    lessons.start(lessons.lab_command(folder, browser=browser, port=port, more=context.args))


@app.command()
def doctor() -> None:
    """Say what this machine has and what is wrong with it. Ends with 1 if something is."""
    from disttutor.doctor import examine

    console = _console()
    problems = 0
    for finding in examine():
        console.print(f"{SIGNS[finding.state]} {escape(finding.text)}")
        if finding.advice:
            console.print(f"       {escape(finding.advice)}")
        problems += finding.state == "wrong"
    if problems:
        what = "One thing is" if problems == 1 else f"{problems} things are"
        console.print(f"\n[bold]{what} wrong; what to do is said above.[/bold]")
        raise typer.Exit(1)
    console.print("\n[bold]Everything that the lessons need is here.[/bold]")


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where the picture is put.")] = Path("disttutor-demo"),
    epochs: Annotated[int, typer.Option(min=1, help="How often each training sees all digits.")] = 5,
) -> None:
    """Train with 1, 2 and 4 ranks, and compare them.

    The handwritten digits are learnt, and the result is held against that of one process.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from disttutor.cluster import RankError
    from disttutor.demo import check_folder, compare, picture

    console = _console()
    try:
        check_folder(folder)
    except OSError as error:
        raise _no_place(console, folder, error) from None
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("training with 1, 2 and 4 ranks", total=1.0)
            rows, trace = compare(
                epochs=epochs,
                moved=lambda share: progress.update(task, completed=share),
                say=lambda text: console.print(escape(text)),
            )
    except RankError as error:
        console.print(escape(str(error)))
        console.print("What stands in the way may be said by: disttutor doctor")
        raise typer.Exit(1) from None
    console.print(_table(rows))
    console.print(
        "Distance: the largest difference, in float64, between any weight and the one that a single process ends with. "
        "What is left is rounding: sums are taken in another order."
    )
    try:
        path = picture(trace, folder)
    except OSError as error:
        raise _no_place(console, folder, error) from None
    console.print(f"The timeline of the last steps on {trace.world_size} ranks: {escape(str(path))}")


def _no_place(console: Console, folder: Path, error: OSError) -> typer.Exit:
    why = error.strerror or str(error)
    console.print(f"The picture cannot be put into the folder {escape(str(folder))}: {escape(why)}.")
    console.print("Name a folder that you can write to, for example: disttutor demo ~/disttutor-demo")
    return typer.Exit(1)


def _table(rows):
    from rich.table import Table

    table = Table(title="The same training on the handwritten digits, with more and more ranks")
    for heading in ("ranks", "loss", "test accuracy", "distance to one process", "sent by each rank", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        sent = f"{row.sent / 1e6:.2f} MB" if row.sent else "nothing"
        cells = f"{row.loss:.6f}", f"{row.accuracy:.1%}", f"{row.distance:.1e}", sent, f"{row.seconds:.1f}"
        table.add_row(str(row.ranks), *cells)
    return table
