"""Notes are read as the format's examples say; code makes no cards; no line that looks like a card is lost unsaid."""

import json
from pathlib import Path

import pytest

from disttutor.cards import notes
from disttutor.cards.card import Face

EXAMPLES = json.loads(Path(__file__).with_name("note_examples.json").read_text(encoding="utf-8"))
TAG = "#flashcards/ai-ml\n"


def sides(text, **options):
    return [(card.front, card.back) for card in notes.parse(text, **options).cards]


def said(text, **options):
    return [(diagnostic.line, diagnostic.kind) for diagnostic in notes.parse(text, **options).diagnostics]


def as_example(card):
    found = {"deck": card.deck, "front": card.front, "back": card.back, "kind": card.kind}
    return found | ({"also": list(card.also)} if card.also else {})


def test_there_are_all_examples():
    assert len(EXAMPLES) == 25 and len({example["name"] for example in EXAMPLES}) == 25


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_example(example):
    assert [as_example(card) for card in notes.parse(example["markdown"]).cards] == example["expected"]


def test_look_alikes_of_the_examples_say_why():
    text = next(example["markdown"] for example in EXAMPLES if example["name"] == "look_alikes_are_not_cards")
    assert said(text) == [(3, "look-alike"), (5, "look-alike"), (7, "look-alike"), (9, "look-alike"),
                          (11, "empty side"), (14, "empty side"), (16, "empty side")]
    reasons = [diagnostic.reason for diagnostic in notes.parse(text).diagnostics]
    assert "IPv6" in reasons[0] and "address" in reasons[1] and "comparison" in reasons[2] and "mathem" in reasons[3]


def test_the_separator_inside_code_neither_cuts_a_card_nor_makes_one():
    text = TAG + ("What does `torch::Tensor` hold? :: an array :: typed\n\n"
                  "```cpp\na::b\n\nc :: d\n```\n")
    assert sides(text) == [("What does `torch::Tensor` hold?", "an array :: typed")]
    assert said(text) == [(2, "two separators"), (5, "look-alike"), (7, "look-alike")]


@pytest.mark.parametrize("text", [
    "~~~\na :: b\n\nc\n?\nd\n~~~",
    "~~~ python\n```\na :: b\n~~~",
    "````\n```\na :: b\n```\nc :: d\n````",
    "- item\n\n  ```\n  a :: b\n  ```",
    "> ```\n> a :: b\n> ```",
    "    a :: b",
    "\ta :: b",
    "Use ``a ` :: b`` here.",
    "A code span `over two\nlines :: of text` and more.",
    "A tag <a title=\"x > y :: z\" href='u'>link</a> here.",
    "See [the docs :: part](https://example.org) now.",
    "See [docs](a::b) or ![picture](c::d 'x :: y') now.",
    "See [[a :: b]] and [[page#x::y|z]].",
    "[ref]: https://example.org/a \"x :: y\"",
    "See <https://example.org/a::b> and www.example.org/a::b.",
    "We have $a :: b$ here.",
    "$$\na :: b\n\nc\n?\nd\n$$",
    "A [key:: value] and a (key:: value) of Dataview.",
    r"Escaped \:\: or \:: or :\: colons.",
    "| a :: b | c |\n|---|---|\n| d :: e | f |",
    "a :: b | c\n---|---\nd :: e | f",
    "<!-- a :: b\n\nc :: d -->",
    "%% a :: b\n\nc :: d %%",
    "<pre>\na :: b\n\nc :: d\n</pre>",
    ":::: note",
    "Run if a==1 or b==2 holds.",
    "x == y == z",
])
def test_what_is_no_prose_makes_no_card_and_says_so(text):
    parsed = notes.parse(TAG + "\n" + text + "\n\nQ :: A\n")
    assert [(card.front, card.back) for card in parsed.cards] == [("Q", "A")]
    suspicious = [number for number, line in enumerate(text.split("\n"), 3) if "::" in line or line.strip("> ") == "?"]
    assert {diagnostic.line for diagnostic in parsed.diagnostics} >= set(suspicious)
    assert parsed.diagnostics and all(diagnostic.reason for diagnostic in parsed.diagnostics)


@pytest.mark.parametrize(("line", "front", "back"), [
    ("What is `a` :: b", "What is `a`", "b"),
    ("What is $x$ :: $y :: z$", "What is $x$", "$y :: z$"),
    ("[docs](u) :: [[page]]", "[docs](u)", "[[page]]"),
    ("Costs $5 :: or $6", "Costs $5", "or $6"),
    ("a ` b :: c", "a ` b", "c"),
    ("<b>x</b> :: y", "<b>x</b>", "y"),
    ("x < y and z > 1 :: y", "x < y and z > 1", "y"),
    ("> Q :: A", "Q", "A"),
    ("> > - [x] Q :: A", "Q", "A"),
    ("> [!question]- Q :: A", "Q", "A"),
    ("> [!tip]\n> Q :: A", "Q", "A"),
    ("#flashcards/b #flashcards/c - Q :: A", "Q", "A"),
    ("Q :: A ^id #flashcards/b", "Q", "A"),
    ("Q <!-- aside :: x --> :: A %% x :: y %%", "Q", "A"),
    ("Q :: 100 %% of it", "Q", "100 %% of it"),
    ("**Q** :: *A*", "**Q**", "*A*"),
    ("2 ^3 is :: $x ^3$", "2 ^3 is", "$x ^3$"),
])
def test_one_line(line, front, back):
    assert sides(TAG + line) == [(front, back)]


def test_a_card_of_several_lines_in_a_quote_loses_its_markers_and_code_its_quote():
    text = TAG + "> [!question] How?\n> ?\n> So:\n> ```\n> a\n>\n> b\n> ```\n"
    assert sides(text) == [("How?", "So:\n```\na\n\nb\n```")]


def test_a_card_of_several_lines_in_a_list_item_loses_the_marker_and_its_indent():
    assert sides(TAG + "- Q\n  ?\n  A\n  ```\n    x\n  ```\n") == [("Q", "A\n```\n  x\n```")]


def test_hard_breaks_and_list_answers_stay():
    assert sides(TAG + "Q\n?\none  \ntwo\n") == [("Q", "one  \ntwo")]
    assert sides(TAG + "\nQ\n?\n- one\n- two\n") == [("Q", "- one\n- two")]


def test_an_open_fence_is_closed_in_its_card_and_reported():
    text = TAG + "\nQ\n?\n```\ncode :: x\n\nmore\n"
    assert sides(text) == [("Q", "```\ncode :: x\n\nmore\n```")]
    assert said(text) == [(5, "unclosed")]


@pytest.mark.parametrize("opener", ["<!-- note", "text <!-- note", "%% note", "$$ a"])
def test_what_is_opened_and_never_closed_swallows_nothing(opener):
    text = TAG + f"\n{opener}\n\nQ :: A\n\n```\na :: b\n```\n"
    assert sides(text) == [("Q", "A")]
    assert said(text) == [(3, "unclosed"), (8, "look-alike")]


@pytest.mark.parametrize(("line", "words"), [
    ("| a :: b | c |\n|---|---|", "a table"), ("| ==a== | c |\n|---|---|", "a table"), (":::: note", "four or more"),
    ("`a :: b`", "code span"), ("    a :: b", "block of code that begins in line 3"), ("[a](b::c)", "a link"),
    ("<!-- a :: b -->", "a comment"), ("- " * 40 + "a :: b", "too deep"),
])
def test_the_reason_names_what_stands_in_the_way(line, words):
    assert words in notes.parse(f"{TAG}\n{line}\n").diagnostics[0].reason


def test_a_line_that_begins_in_code_of_the_line_above_is_no_card_and_says_so():
    parsed = notes.parse(TAG + "Q1 :: costs ` 5\nQ2 has ` too :: x\n")
    assert [(card.front, card.back) for card in parsed.cards] == [("Q1", "costs ` 5")]
    assert [diagnostic.line for diagnostic in parsed.diagnostics] == [3]
    assert "the line above opens" in parsed.diagnostics[0].reason


def test_clozes():
    assert sides(TAG + "- ==a b== c", bold=True) == [("[...] c", "a b c")]
    assert sides(TAG + "**a** {{b}} ==c==", bold=True, braces=True) == [
        ("[...] b c", "a b c"), ("a [...] c", "a b c"), ("a b [...]", "a b c")]
    assert sides(TAG + "un==believ==able") == [("un[...]able", "unbelievable")]
    assert sides(TAG + "Q :: A\n==x== is y") == [("Q", "A"), ("[...] is y", "x is y")]
    assert sides(TAG + "If a==b then ==x== is y") == [("If a==b then [...] is y", "If a==b then x is y")]
    assert sides(TAG + "==`a == b`== holds") == [("[...] holds", "`a == b` holds")]
    assert sides(TAG + "Q ==x== :: A") == [("Q ==x==", "A")]
    missing = [card.missing for card in notes.parse(TAG + "==1;;a;;h== ==2;;b== ==1;;c==").cards]
    assert missing == ["a, c", "b"]
    assert sides(TAG + "==" + "9" * 5000 + ";;a== b") == [("[...] b", "a b")]


def test_a_paragraph_with_too_many_gaps_is_refused():
    assert said(TAG + "==a== " * 31) == [(2, "too large")]
    assert len(sides(TAG + "==a== " * 30)) == 30


def test_decks():
    decks = [(card.deck, card.also) for card in notes.parse(
        "---\ntags: 'notes, #flashcards/x flashcards/y'\n---\nQ1 :: A\n#flashcards/b #python\nQ2 :: A\n"
        "Q3 :: A #flashcards/c\nQ4 :: A\n\nProse of #flashcards/d now.\n\nQ5 :: A\n\n`#flashcards/e`\n\nQ6 :: A\n"
        "#flashcards/हिंदी\nQ7 :: A\n#Flashcards/f/\nQ8 :: A\n").cards]
    assert decks == [("flashcards/x", ("flashcards/y",)), ("flashcards/b", ()), ("flashcards/c", ()),
                     ("flashcards/b", ()), ("flashcards/d", ()), ("flashcards/d", ()), ("flashcards/हिंदी", ()),
                     ("flashcards/f", ())]


def test_without_a_deck_there_is_no_card_unless_one_is_given():
    assert sides("Q :: A") == [] and said("Q :: A") == [(1, "no deck")]
    assert notes.parse("Q :: A", default_deck="mine").cards[0].deck == "mine"
    assert notes.parse("Q :: A\n\n#flashcards/b", default_deck="mine").cards[0].deck == "flashcards/b"


def test_advice_on_cards_that_were_made():
    assert said(TAG + "GPU::graphics processing unit") == [(2, "no spaces")]
    assert said(TAG + "author:: Ada Lovelace") == [(2, "field")]
    assert said(TAG + "Q :: " + "x" * 301) == [(2, "long answer")] and not said(TAG + "Q :: " + "x" * 300)
    assert said(TAG + "Q :: A\nQ :: B") == [(3, "same question")]
    assert said(TAG + "Q :: A ^x\nR :: B ^x") == [(3, "same id")]
    assert said(TAG + "Q\n?\nA\nR :: B\n") == [(5, "two separators")]
    assert not any(diagnostic.lost for diagnostic in notes.parse(TAG + "author:: Ada").diagnostics)


def test_languages():
    text = TAG + ("Q1 :: A\nTensor का मतलब :: A\n\n## Hinglish mein\nQ2 :: A\n### Detail\nQ3 :: A\n## Why\nQ4 :: A\n"
                  "# Deutsch {lang=de}\nQ5 :: A\n# API\nQ6 :: A\n")
    assert [card.language for card in notes.parse(text).cards] == ["en", "hi", "hi-Latn", "hi-Latn", "en", "de", "en"]
    assert notes.parse("---\nlang: hi-Latn\ntags: [flashcards]\n---\nQ :: A").cards[0].language == "hi-Latn"


def test_cards_for_the_quiz():
    parsed = notes.parse(TAG + "#flashcards/b #flashcards/c\nQ ::: A ^x\n\n==a== b\n")
    first, second, cloze = notes.as_cards(parsed)
    assert (first.id, second.id) == ("^x", "^x.2")
    assert (first.deck, first.also, first.kind) == ("flashcards/b", ("flashcards/c",), "basic")
    assert first.faces == {"en": Face("Q", "A")} and second.faces == {"en": Face("A", "Q")}
    assert cloze.kind == "cloze" and cloze.faces == {"en": Face("[...] b", "a b", missing="a")}
