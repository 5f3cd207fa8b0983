"""How a card looks in the terminal: its question, its answer, and the keys that go on."""

from collections.abc import Iterable, Mapping

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from disttutor.cards.card import GAP
from disttutor.cards.choosing import heading
from disttutor.cards.origin import origin
from disttutor.cards.rendering import plain
from disttutor.cards.sitting.review import Review

WIDEST = 88         # letters in a line: longer ones are hard to read


def narrow(console: Console) -> Console:
    """The console, no wider than lines should be."""
    console.width = min(console.width, WIDEST)
    return console


def question(console: Console, review: Review) -> None:
    """The card as it is asked: how far the sitting is, its deck, the question, what there is to choose or to order."""
    asked, face = review.asked, review.face
    where = f"{review.finished + 1} of {review.total} · {heading(asked.card.deck)}"
    console.print()
    console.rule(Text(where), align="left", style="dim")
    console.print()
    _print(console, _marked(plain(face.question)), style="bold")
    texts = [face.steps[place] for place in asked.places if face.steps]
    texts += [face.options[place].text for place in asked.places if face.options]
    if texts:
        console.print()
        _print(console, _list((str(number), Text(plain(text))) for number, text in enumerate(texts, 1)))
    console.print()


def answer(console: Console, review: Review) -> None:
    """The answer, the verdict on what was given, and the reasons."""
    asked, face, verdict = review.asked, review.face, review.verdict
    console.print()
    if verdict and verdict.right is not None:
        _print(console, Text("✓ Right.", "green") if verdict.right else Text("✗ Not right.", "red"))
    if verdict and verdict.feedback and asked.card.kind != "choice":        # of a choice it stands below, as a reason
        _print(console, Text(plain(verdict.feedback)))
    if asked.card.kind == "choice":
        _print(console, _list(_options(review)))
    elif asked.card.kind == "order":
        _print(console, _list((str(number), Text(plain(step))) for number, step in enumerate(face.steps, 1)))
    elif asked.card.kind == "cloze":
        _print(console, Text(plain(face.missing), "cyan bold"))
    if face.answer:
        if asked.card.kind in {"choice", "order"}:
            console.print()
        _print(console, Text(plain(face.answer)))
    place, source = origin(asked.card)
    if place or source:
        console.print()
        _print(console, Text("\n".join(filter(None, [place, plain(source)])), "dim"))
    console.print()


def keys(console: Console, what: str, now: Mapping[str, str], always: Mapping[str, str]) -> None:
    """What is asked and which key does what: those for this question, and below them those for any."""
    for does, style, begin in ((now, "cyan bold", [Text(what)] * bool(what)), (always, "cyan", [])):
        parts = [Text.assemble((key, style), " " * bool(words), words) for key, words in does.items()]
        _print(console, Text("   ").join(begin + parts))


def said(console: Console, words: str, style: str = "") -> None:
    """A remark, below the card."""
    _print(console, Text(words, style))


def _print(console: Console, what: RenderableType, style: str = "") -> None:
    console.print(Padding(what, (0, 0, 0, 2), style=style, expand=False))


def _marked(text: str) -> Text:
    marked = Text(text)
    marked.highlight_words([GAP], "cyan")
    return marked


def _list(entries: Iterable[tuple[str, Text]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for mark, text in entries:
        table.add_row(Text(mark, "cyan"), text)
    return table


def _options(review: Review) -> Iterable[tuple[str, Text]]:
    for number, place in enumerate(review.asked.places, 1):
        option = review.face.options[place]
        text = Text.assemble(*(["✓ "] if option.right else []), plain(option.text),
                             style="green bold" if option.right else "")
        if review.given == place:
            text.append("  (your answer)", "dim")
        if option.why:
            text.append(f"\n{plain(option.why)}", "dim")
        yield str(number), text
