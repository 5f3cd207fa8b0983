"""Drawings show where inline SVG does not, and are the same text every time."""

import base64
import re

import pytest

from disttutor.figures.svg import Svg, drawing, escape, number, rect, text, text_width, wrap


@pytest.fixture
def figure() -> Svg:
    return drawing([text(10, 20, "a < b & c")], 200, 99.2, alt='two "ranks" <b>', plain="A drawing.")


def test_a_cell_shows_an_image_that_carries_the_drawing(figure):
    bundle = figure._repr_mimebundle_()
    assert bundle["text/plain"] == repr(figure) == "A drawing."
    found = re.fullmatch(r'<img alt="([^"]*)" width="200" style="[^"]*" src="data:image/svg\+xml;base64,([^"]*)">',
                         bundle["text/html"])
    assert found[1] == "two &quot;ranks&quot; &lt;b&gt;"
    assert base64.b64decode(found[2]).decode() == figure.svg
    assert set(bundle) == {"text/html", "text/plain"}       # nothing that an untrusted notebook would leave out


def test_the_drawing_has_its_own_light_ground(figure):
    assert 'viewBox="0 0 200 100"' in figure.svg
    assert re.search(r'<rect x="0.5" y="0.5" width="199" height="99" rx="8" fill="#fcfcfb" stroke="#', figure.svg)


def test_words_are_escaped(figure):
    assert "a &lt; b &amp; c" in figure.svg
    assert escape("\x00x\x1b[31m\ud800") == "?x?[31m?"


@pytest.mark.parametrize(("value", "words"), [(1, "1"), (1.5, "1.5"), (10.25, "10.25"), (100, "100"), (-0.001, "0"),
                                              (1 / 3, "0.33"), (0, "0")])
def test_numbers_are_short(value, words):
    assert number(value) == words


def test_text_width_of_known_letters():
    assert text_width("il", 10) == pytest.approx(5.6)       # 0.28 em each in DejaVu Sans
    assert text_width("W", 10) == pytest.approx(9.9)


def test_wrapped_lines_fit_and_lose_nothing():
    words = "the quick brown fox " + "x" * 60 + " jumps"
    lines = wrap(words, 100, 11)
    assert all(text_width(line, 11) <= 100 for line in lines)
    assert "".join(lines).replace(" ", "") == words.replace(" ", "")
    assert wrap("one two", 1000, 11) == ["one two"]
    assert wrap("", 100, 11) == []


def test_tooltip_of_a_rectangle():
    assert rect(0, 0, 1, 2, fill="#fff", title="a&b") == (
        '<rect x="0" y="0" width="1" height="2" fill="#fff"><title>a&amp;b</title></rect>')


def test_save(figure, tmp_path):
    path = figure.save(tmp_path / "x.svg")
    assert path.read_text(encoding="utf-8") == figure.svg
    with pytest.raises(ValueError, match=r"as .svg, not as '.png'"):
        figure.save(tmp_path / "x.png")
