"""Cards where no quiz can run: a page of a few elements, and plain text."""

import re
from html.parser import HTMLParser

import pytest

from disttutor.cards.card import ENGLISH, HINGLISH, Card, Drawn, Face, Option
from disttutor.cards.decks import our_cards
from disttutor.cards.quiz import fallback

BASIC = Card(id="a", deck="d", lesson=3, section="Why", source="Rao 2020", faces={
    ENGLISH: Face("How many bytes, of `vector<int>`?", "It is $\\frac{2(N-1)}{N} S$.\n\n- once\n- twice"),
    HINGLISH: Face("Kitne bytes?", "$2S$ ke paas.")})
CHOICE = Card(id="b", deck="d", kind="choice", faces={ENGLISH: Face("Which?", "It holds all.", options=(
    Option("one", why="Too few."), Option("two", True)))})
STEPS = Card(id="c", deck="d", kind="order", faces={ENGLISH: Face("Order?", "So.", steps=("send", "add"))})
NUMBER = Card(id="n", deck="d", kind="number", draw=lambda random: (
    lambda n: Drawn({ENGLISH: Face(f"Twice {n}?", f"$2 \\cdot {n} = {2 * n}$")}, 2 * n))(random.randrange(100)))
CARDS = (BASIC, CHOICE, STEPS, NUMBER)
# What JupyterLab's cleaner of untrusted notebooks leaves, of what is used here; it has no math.
KEPT = set("a blockquote br code details div em h1 h2 h3 hr i li ol p pre s span strong sub summary sup table tbody td "
           "th thead tr ul".split())


class Elements(HTMLParser):
    """Names of all elements, and all attributes."""

    def __init__(self, page: str):
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_the_text_reads_well_alone():
    assert fallback.text((BASIC, CHOICE, STEPS), "Cards.", "Run.") == """Cards. Run.

1. How many bytes, of vector<int>?
   -> It is 2(N − 1)/N · S.

      - once
      - twice
   Kitne bytes?
   -> 2S ke paas.
   Lesson 03, Why. Source: Rao 2020

2. Which?
   a) one
   b) two
   -> b) is right. It holds all.
      Not a): Too few.

3. Order?
   1. send
   2. add
   -> So."""


def test_an_example_is_called_one_and_is_always_the_same():
    one, other = (fallback.text((NUMBER,), "", "") for _ in range(2))
    assert one == other and "An example" in one
    assert fallback.page(CARDS, "", "") == fallback.page(CARDS, "", "")
    number = int(re.search(r"Twice (\d+)", one)[1])
    assert f"2 · {number} = {2 * number}" in one


def test_every_card_can_be_unfolded_in_every_language():
    page = fallback.page(CARDS, "Cards.", "Run.")
    assert page.count("<details") == page.count("</details>") == 4
    assert '<summary lang="en">How many bytes, of <code>vector&lt;int&gt;</code>?</summary>' in page
    assert '<div lang="hi-Latn"' in page and "Kitne bytes?" in page
    assert "<strong>two</strong> (right)" in page and "one (wrong): Too few." in page
    assert "Source: Rao 2020" in page
    assert page.index("How many") < page.index("Which?") < page.index("Order?") < page.index("Twice")


@pytest.mark.parametrize("lesson", range(17))
def test_our_cards_lose_nothing_where_a_notebook_is_not_trusted(lesson):
    cards = [card for card in our_cards() if card.lesson == lesson]
    page = fallback.page(cards, "Cards.", "Run.")
    found = Elements(page)
    assert found.names <= KEPT
    assert found.attributes <= {"class", "style", "lang", "title", "href", "target", "rel", "start"}
    assert page.count("<details") == len(cards)
    assert "$" not in re.sub("<[^>]*>", "", page)               # all mathematics are converted
    assert not re.search(r"\\[a-z]+", fallback.text(cards, "", ""))
