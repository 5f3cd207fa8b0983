"""The HTML of Anki's fields: what Anki would misread stays text."""

import re

import pytest

from disttutor.cards.anki.style import CSS
from disttutor.cards.anki.text import html, line


@pytest.mark.parametrize(("markdown", "field"), [
    ("a $x<y$ b", r"<p>a \(x&lt;y\) b</p>"),
    ("$$\n\\frac{a}{b}\n$$", r"\[\frac{a}{b}\]"),
    ("so $$a$$ it is", r"<p>so \[a\] it is</p>"),
    ("`$x$` is code", "<p><code>$x$</code> is code</p>"),
    ("from $5 to $6", "<p>from $5 to $6</p>"),
    (r"a literal \$x\$", "<p>a literal $x$</p>"),
])
def test_mathematics_is_tex_between_ankis_marks(markdown, field):
    assert html(markdown) == field


@pytest.mark.parametrize(("markdown", "field"), [
    ("x<y and vector<int> & <rank>", "<p>x&lt;y and vector&lt;int&gt; &amp; &lt;rank&gt;</p>"),
    ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
    ("<!-- hidden -->", "<p>&lt;!-- hidden --&gt;</p>"),
    ("```cpp\nvector<int> a;\n```", '<pre><code class="language-cpp">vector&lt;int&gt; a;\n</code></pre>'),
    ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
])
def test_what_looks_like_html_stays_text(markdown, field):
    assert html(markdown) == field


@pytest.mark.parametrize("order", ["[sound:a.mp3]", "[anki:tts lang=en]x[/anki:tts]", "[latex]x[/latex]", "[LaTeX]x",
                                   r"[\$]x[/\$]", r"[\$\$]x[/\$\$]", "`[sound:a.mp3]`"])
def test_orders_to_anki_stay_text(order):
    field = line(order)
    assert "[sound" not in field and "[anki" not in field and "[$" not in field and "[latex" not in field.lower()
    assert field.removeprefix("<code>").startswith("&#91;")


def test_other_brackets_stay_as_they_are():
    assert line("a[0], [a sound], [x]") == "a[0], [a sound], [x]"


def test_a_picture_is_named_and_nothing_is_loaded():
    assert html("![a ring](https://example.org/ring.png)") == "<p><em>[a ring]</em></p>"


def test_a_gap_is_marked_in_text_only():
    field = html("[...] of `[...]` and $[...]$")
    assert field.count('<span class="gap"') == 1
    assert field.endswith(r"[...]</span> of <code>[...]</code> and \([...]\)</p>")


def _contrast(one: str, other: str) -> float:
    """Of two colours #rrggbb, as WCAG 2 defines it."""
    def luminance(colour: str) -> float:
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_all_colours_can_be_read_by_day_and_by_night():
    assert _contrast("#ffffff", "#000000") == pytest.approx(21)
    rules = re.findall(r"^([^{}\n]+?) \{([^}]*)\}", CSS, flags=re.M)
    for night in (False, True):
        body = "".join(body for selector, body in rules if ("night" in selector) == night)
        (paper,) = re.findall(r"background-color: (#\w{6})", body)
        colours = re.findall(r"(?<!-)color: (#\w{6})", body)
        assert len(set(colours)) >= 3 and min(_contrast(colour, paper) for colour in colours) >= 4.5
