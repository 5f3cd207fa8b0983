"""Markdown of cards as HTML and as text: mathematics, code, and nothing that a stranger's note could smuggle in."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cards import mathematics, rendering

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"


@pytest.mark.parametrize(("tex", "line"), [
    (r"\frac{2(N-1)}{N}", "2(N − 1)/N"),
    (r"\frac{a+1}{N^2}", "(a + 1)/N²"),
    (r"\frac{1}{2N}", "1/(2N)"),
    (r"S(N)=\frac{1}{s+\frac{1-s}{N}}", "S(N) = 1/(s + (1 − s)/N)"),
    (r"\frac{2(N-1)}{N} S", "2(N − 1)/N · S"),
    (r"2\frac{1}{N}\,\frac{S}{B}(a+b)", "2 · 1/N · S/B · (a + b)"),
    (r"(a)\frac{1}{N} = \frac{b}{c}", "(a) · 1/N = b/c"),
    (r"f(\frac{1}{N})", "f(1/N)"),
    (r"2 \times 10^{-9}", "2 × 10⁻⁹"),
    (r"x_{12}", "x₁₂"),
    (r"W_{ij}^2", "W_(ij)²"),
    (r"\log_2 N", "log₂ N"),
    (r"\sum_{i=1}^{N} g_i", "∑_(i = 1)^N g_i"),
    (r"-1", "−1"),
    (r"\text{bytes per rank}", "bytes per rank"),
    (r"\frac{a}{", r"\frac{a}{"),
])
def test_mathematics_in_one_line(tex, line):
    assert mathematics.line(tex) == line


def test_mathematics_are_mathml_with_their_tex_as_label():
    page = rendering.html(r"It is $\frac{2(N-1)}{N}$ of them.")
    math = ElementTree.fromstring(page).find(f"{NAMESPACE}math")
    assert math.get("aria-label") == math.get("alttext") == r"\frac{2(N-1)}{N}"
    above, below = math.find(f".//{NAMESPACE}mfrac")
    assert ["".join(part.itertext()) for part in (above, below)] == ["2(N−1)", "N"]


def test_what_cannot_be_converted_is_shown_as_it_was_written():
    assert '<code class="tex">\\frac{a}{</code>' in rendering.html(r"half: $\frac{a}{$")
    assert rendering.plain(r"half: $\frac{a}{$") == r"half: \frac{a}{"


def test_money_is_no_mathematics():
    assert rendering.html("from $5 to $10") == "<p>from $5 to $10</p>\n"


def test_less_than_survives_in_words_code_and_mathematics():
    page = rendering.html("`vector<int>`, vector<int>, $a<b$")
    assert page.count("vector&lt;int&gt;") == 2
    assert "vector<int>" in rendering.plain("`vector<int>` it is")
    assert "".join(ElementTree.fromstring(page).find(f"{NAMESPACE}math").itertext()) == "a<b"


@pytest.mark.parametrize("markdown", [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "[x](JaVaScript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)", "![x](http://example.org/spy.png)", "![x](local.png)",
    r"$\text{<img src=x onerror=alert(1)>}$", r"$\href{javascript:alert(1)}{x}$", r"$\style{color:red}{x}$",
    r"$\class{jp-Cell}{x}$", "<http://example.org/?a=<script>>", "[x](<http://example.org/\" onclick=\"alert(1)>)",
])
@pytest.mark.parametrize("write", [rendering.html, rendering.simple_html])
def test_nothing_is_smuggled_in(markdown, write):
    for element in tags(write(markdown)):
        assert element.tag.removeprefix(NAMESPACE) not in {"script", "img", "iframe", "object", "style"}
        assert not [name for name in element.attrib if name.startswith("on") or name == "style"]
        assert element.get("class") in {None, "tex", "gap"}
        assert element.get("href", "http").startswith("http")


def tags(page: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<div>{page}</div>").iter())


def test_links_open_a_page_of_their_own():
    page = rendering.html("[paper](https://arxiv.org/abs/1910.02054)")
    assert 'href="https://arxiv.org/abs/1910.02054"' in page
    assert 'target="_blank"' in page and 'rel="noopener noreferrer"' in page


def test_a_picture_leaves_its_words():
    assert rendering.html("![a ring](http://example.org/ring.png)") == "<p><em>[a ring]</em></p>\n"
    assert rendering.plain("![a ring](http://example.org/ring.png)") == "[a ring]"


def test_lists_tables_and_code_as_text():
    markdown = "Steps:\n\n1. send\n2. add\n   - once\n\n| a | b |\n|---|---|\n| `x` | $y^2$ |\n\n```py\nif a < b:\n```"
    assert rendering.plain(markdown) == (
        "Steps:\n\n1. send\n2. add\n   - once\n\na | b\nx | y²\n\n    if a < b:")


def test_the_gap_is_marked():
    assert "[...]" in re.sub("<[^>]*>", "", rendering.html("An [...] sums."))
    assert 'class="gap"' in rendering.html("An [...] sums.")


def test_simple_html_needs_no_mathml():
    assert rendering.simple_html("$x_i^2$") == (
        '<p><span title="x_i^2"><i>x</i><sub><i>i</i></sub><sup>2</sup></span></p>\n')


@given(st.text(alphabet=st.sampled_from("ab1 $\\{}^_<>&\"'`*[]()!-\n|frac"), max_size=60))
def test_any_text_gives_well_formed_html(markdown):
    for write in (rendering.html, rendering.simple_html):
        tags(write(markdown))
    rendering.plain(markdown)
