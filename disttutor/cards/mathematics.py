"""TeX in the forms in which a card can show it: MathML for a browser, and one line for a terminal or a bare page.

The converter's own text is not used: it leaves `<` in the TeX as it is, and a card may come from a stranger's notes.
Here only known elements and attributes pass, and all text is escaped.
"""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree.ElementTree import Element, tostring

LONGEST = 2000          # letters of TeX that are converted; more is shown as it is
ELEMENTS = frozenset("""math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle mpadded mphantom menclose msub msup
    msubsup munder mover munderover mtable mtr mtd mprescripts mmultiscripts none""".split())
ATTRIBUTES = frozenset("""xmlns display stretchy fence form separator accent accentunder largeop movablelimits lspace
    rspace width height depth linethickness minsize maxsize symmetric mathsize mathvariant displaystyle scriptlevel
    columnalign rowalign columnspacing rowspacing columnlines rowlines notation""".split())
SPACED = frozenset("+−-=≠≈<>≤≥≪≫∼≡∝×·⋅∗→←↦∈∧∨⇒")       # operators with blanks round them
SMALL = {
    "^": dict(zip("0123456789+-−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿ", strict=True)),
    "_": dict(zip("0123456789+-−", "₀₁₂₃₄₅₆₇₈₉₊₋₋", strict=True)),
}


def mathml(tex: str, block: bool = False) -> str:
    """The TeX as a `<math>` element that carries the TeX as its label; TeX that cannot be converted, as code."""
    if (tree := _tree(tex, block)) is None:
        return f'<code class="tex">{html.escape(tex)}</code>'
    tree.set("alttext", tex)
    tree.set("aria-label", tex)
    return tostring(tree, encoding="unicode")


def line(tex: str) -> str:
    r"""The TeX as one line of letters, as $\frac{a+1}{N^2}$ is (a + 1)/N²; TeX that cannot be converted, as it is."""
    tree = _tree(tex, False)
    return tex if tree is None else _tidy(_walk(tree, _LETTERS))


def simple_html(tex: str, block: bool = False) -> str:
    """The same line with `<i>`, `<sub>` and `<sup>`, for pages that drop MathML. Its title is the TeX."""
    tree, said = _tree(tex, False), html.escape(tex)
    return f"<code>{said}</code>" if tree is None else f'<span title="{said}">{_tidy(_walk(tree, _TAGS))}</span>'


def _tree(tex: str, block: bool) -> Element | None:
    """MathML with clean text and known elements only, or None."""
    from latex2mathml.converter import Converter

    if len(tex) > LONGEST:
        return None
    try:
        tree = Converter(display="block" if block else "inline").convert_to_element(tex)
    except Exception:           # half a formula makes it raise whatever its own code runs into, IndexError and all
        return None
    for element in tree.iter():
        if element.tag not in ELEMENTS:
            return None
        kept = {name: html.unescape(value) for name, value in element.attrib.items() if name in ATTRIBUTES}
        element.attrib.clear()
        element.attrib.update(kept)
        element.text = html.unescape(element.text) if element.text else None
    return tree


@dataclass(frozen=True, slots=True)
class _Form:
    """How a letter and what stands above or below it are written in one line."""

    word: Callable[[Element], str]
    small: Callable[[str, str, Element], str]       # "^" or "_", the words, the element they come from


def _small_letters(mark: str, words: str, element: Element) -> str:
    letters = words.replace(" ", "")
    if letters and set(letters) <= set(SMALL[mark]):
        return "".join(SMALL[mark][letter] for letter in letters)
    return mark + _bracketed(words, element)


def _small_tags(mark: str, words: str, element: Element) -> str:
    tag = "sup" if mark == "^" else "sub"
    return f"<{tag}>{words}</{tag}>"


def _word_in_tags(element: Element) -> str:
    words = html.escape(element.text or "")
    variable = element.tag == "mi" and len(element.text or "") == 1 and "mathvariant" not in element.attrib
    return f"<i>{words}</i>" if variable and words.isalpha() else words


_LETTERS = _Form(lambda element: element.text or "", _small_letters)
_TAGS = _Form(_word_in_tags, _small_tags)


def _walk(element: Element, form: _Form) -> str:
    parts = [_walk(part, form) for part in element]
    match element.tag:
        case "mfrac":
            above, below = map(_tidy, parts)
            return (f"({above})" if _is_sum(above) else above) + "/" + _bracketed(below, element[1])
        case "msqrt":
            return f"√({_tidy(''.join(parts))})"
        case "mroot":
            return f"({_tidy(parts[0])})" + form.small("^", f"1/{_tidy(parts[1])}", element)
        case "msup" | "mover":
            return parts[0].strip() + form.small("^", _tidy(parts[1]), element[1])
        case "msub" | "munder":
            return parts[0].strip() + form.small("_", _tidy(parts[1]), element[1])
        case "msubsup" | "munderover":
            return (parts[0].strip() + form.small("_", _tidy(parts[1]), element[1])
                    + form.small("^", _tidy(parts[2]), element[2]))
        case "mspace":
            return " "
        case "mtr":
            return " ".join(map(_tidy, parts)) + "; "
    return form.word(element) + "".join(_with_blanks(element, place, words) for place, words in enumerate(parts))


def _with_blanks(row: Element, place: int, words: str) -> str:
    """A part of a row: operators stand between blanks (at the beginning a minus is a sign), sums and logarithms before
    one, and a fraction is kept apart from what it is multiplied by."""
    part = row[place]
    base = part[0] if len(part) else part
    before = next((other for other in reversed(row[:place]) if other.tag != "mspace"), None)
    if part.tag == "mo" and part.text in SPACED and place:
        return f" {words} "
    if before is not None and "mfrac" in (part.tag, before.tag) and _is_factor(part, "([") and _is_factor(before, ")]"):
        return f" · {words}"
    named = base.tag == "mi" and len(base.text or "") > 1 or base.text in {"∑", "∏"}
    return f"{words} " if part.text == "," or named and row[place + 1: place + 2] else words


def _is_factor(part: Element, brackets: str) -> bool:
    return part.tag != "mspace" and (part.tag != "mo" or part.text in [*brackets])


def _is_sum(words: str) -> bool:
    """Whether an operator or a slash stands outside all brackets."""
    depth, outside = 0, []
    for letter in re.sub("<[^>]*>", "", words):
        depth += (letter == "(") - (letter == ")")
        outside += [letter] if not depth else []
    return not {" ", "/"}.isdisjoint(outside)


def _several(element: Element) -> bool:
    """Whether it is more than one letter or number, so that beside a slash it needs brackets."""
    if element.tag in {"mrow", "mstyle", "mpadded"}:
        return len(element) > 1 or any(_several(part) for part in element)
    return element.tag == "mfrac"


def _bracketed(words: str, element: Element) -> str:
    return f"({words})" if _several(element) else words


def _tidy(words: str) -> str:
    return " ".join(words.replace("\u2061", "").split())
