"""A card's Markdown as HTML for the quiz, as simpler HTML for a stored notebook, and as plain text for a terminal.

No HTML of the text gets through, pictures are not fetched, and a link opens a page of its own or nothing.
"""

import html as escaping
import textwrap
from collections.abc import Callable, Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.dollarmath import dollarmath_plugin

from disttutor.cards import mathematics
from disttutor.cards.card import GAP

Mathematics = Callable[[str, bool], str]        # TeX, and whether it stands on lines of its own


def html(markdown: str) -> str:
    """HTML with mathematics as MathML; the TeX is kept as its label, and shown where it cannot be converted."""
    return parser(mathematics.mathml).render(markdown)


def simple_html(markdown: str) -> str:
    """HTML that survives in a notebook which is not trusted: mathematics are a line with raised and lowered letters."""
    return parser(mathematics.simple_html).render(markdown)


def plain(markdown: str) -> str:
    """Text without marks: lists keep their bullets and numbers, code its words, mathematics become one line."""
    return "\n\n".join(_blocks(SyntaxTreeNode(parser(mathematics.mathml).parse(markdown))))


@cache
def parser(mathematics_as: Mathematics) -> MarkdownIt:
    """CommonMark with tables, and mathematics between dollars. A line that ends in the text ends on the screen too, as
    in the program in which notes are written."""
    reader = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    dollarmath_plugin(reader, allow_space=False, allow_labels=False, double_inline=True)
    for name in ("math_inline", "math_inline_double", "math_block"):
        reader.add_render_rule(name, _mathematics(mathematics_as, block=name != "math_inline"))
    reader.add_render_rule("image", lambda _, tokens, i, *rest: f"<em>[{escaping.escape(tokens[i].content)}]</em>")
    reader.add_render_rule("text", lambda _, tokens, i, *rest: _with_gap(tokens[i].content))
    reader.add_render_rule("link_open", _link)
    return reader


def _mathematics(write: Mathematics, block: bool) -> Callable[..., str]:
    def rule(_: object, tokens: list, i: int, *rest: object) -> str:
        return write(tokens[i].content.strip(), block)

    return rule


def _with_gap(words: str) -> str:
    gap = f'<span class="gap" title="the gap">{GAP}</span>'
    return escaping.escape(words, quote=False).replace(GAP, gap)


def _link(renderer: object, tokens: list, i: int, options: object, env: object) -> str:
    tokens[i].attrSet("target", "_blank")
    tokens[i].attrSet("rel", "noopener noreferrer")
    return renderer.renderToken(tokens, i, options, env)


def _blocks(node: SyntaxTreeNode) -> Iterator[str]:
    """Each paragraph, list, table or block of code as lines of text."""
    for block in node.children:
        match block.type:
            case "bullet_list" | "ordered_list":
                yield "\n".join(_items(block))
            case "blockquote":
                yield textwrap.indent("\n\n".join(_blocks(block)), "> ")
            case "fence" | "code_block":
                yield textwrap.indent(block.content.rstrip("\n"), "    ")
            case "math_block":
                yield mathematics.line(block.content)
            case "hr":
                yield "---"
            case "table":
                rows = [row for part in block.children for row in part.children]
                yield "\n".join(" | ".join(_words(cell) for cell in row.children) for row in rows)
            case _:
                yield _words(block)


def _items(block: SyntaxTreeNode) -> Iterator[str]:
    first = int(block.attrs.get("start", 1))
    for number, item in enumerate(block.children, first):
        mark = f"{number}. " if block.type == "ordered_list" else "- "
        yield textwrap.indent("\n".join(_blocks(item)), " " * len(mark)).replace(" " * len(mark), mark, 1)


def _words(node: SyntaxTreeNode) -> str:
    """The words of a line, whatever they are marked with."""
    match node.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "math_inline" | "math_inline_double":
            return mathematics.line(node.content.strip())
        case "image":
            return f"[{node.content}]"
        case "link":
            words, to = "".join(map(_words, node.children)), str(node.attrs["href"])
            return words if words == to else f"{words} ({to})"
    return "".join(map(_words, node.children)) if node.children else node.content
