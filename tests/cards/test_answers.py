"""Answers as learners type them, against values worked out by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cards.card import HINGLISH, Drawn, Face, Option
from disttutor.cards.numbers import NUMBER_CARDS
from disttutor.cards.sitting import answers, quantities

CHOICE = Face("Which?", "Because.", options=(Option("two", why="Too few."), Option("three", True)))
STEPS = Face("In which order?", "So.", steps=("send", "add", "send", "stop"))
CLOZE = Face("An [...] sums.", "An **all-reduce** sums.", missing="**all-reduce**")


@pytest.mark.parametrize(("typed", "unit", "value"), [
    ("42", "", 42), ("1,234", "", 1234), ("1,23,456", "", 123456), ("1 234", "", 1234), ("1_234", "", 1234),
    ("1.234.567,5", "", 1234567.5), ("0,125", "", 0.125), ("-0,050 s", "s", -0.05),
    ("12,5", "%", 12.5), ("-3", "", -3), ("−3", "", -3), (".5", "", 0.5),
    ("1e9", "bytes", 1e9), ("2^10", "", 1024), ("2**10", "", 1024), ("3 x 10^9", "", 3e9), ("3×10⁹", "", 3e9),
    ("10⁻³", "", 1e-3), ("3/11", "", 3 / 11), ("½", "", 0.5), ("about 7", "", 7), ("= 7", "", 7), ("१२", "", 12),
    ("12.5 %", "%", 12.5), ("12.5%", "", 0.125), ("1 GB", "bytes", 1e9), ("1 gb", "MB", 1000), ("2mb", "MB", 2),
    ("2 GiB", "bytes", 2147483648), ("8 Gbit", "GB", 1), ("400 Gb/s", "GB/s", 50), ("5 ms", "s", 0.005),
    ("3 µs", "us", 3), ("2 min", "s", 120), ("312 TFLOPS", "TFLOP/s", 312), ("8 step", "steps", 8),
    ("16 micro-batches", "micro-batches", 16), ("4x", "", 4), ("3.5 times", "×", 3.5), ("7B", "parameters", 7e9),
    ("7 billion parameters", "parameters", 7e9), ("2 lakh", "", 2e5), ("1.5 crore", "", 1.5e7), ("8 ranks", "", 8),
])
def test_a_number_is_read(typed, unit, value):
    assert quantities.readings(typed, unit)[-1] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("typed", "unit", "why"), [
    ("", "", "no answer yet"), ("many", "", "is no number"), ("1/0", "", "cannot be worked out"),
    ("9^99999", "", "cannot be worked out"), ("1 2 3", "", "cannot be worked out"), ("5 ms", "bytes", "in bytes"),
    ("10 apples", "GB", "in GB"), ("5 GB", "", "the answer is a number"), ("3 and 4", "", "and 4"),
    ("1,2,3", "", "cannot be worked out"), ("1½", "", "cannot be worked out"),
])
def test_what_is_no_number_is_told_why(typed, unit, why):
    with pytest.raises(answers.AnswerError, match=why):
        answers.check("number", Face("?", "!"), typed, drawn=Drawn({}, 1.0, unit))


@given(st.text(max_size=30), st.sampled_from(["", "%", "GB", "steps", "GB/s"]))
def test_any_text_is_read_or_refused(typed, unit):
    try:
        assert quantities.readings(typed, unit)
    except quantities.NoNumber as error:
        assert str(error)


def test_a_share_may_be_typed_for_a_percentage():
    bubble = Drawn({}, 3 / 11 * 100, "%", 0.01)
    for typed in ("27.27 %", "27.3", "3/11", "0.2727"):
        assert answers.check("number", Face("?", "!"), typed, drawn=bubble).right
    assert not answers.check("number", Face("?", "!"), "0.2727 %", drawn=bubble).right


@pytest.mark.parametrize(("typed", "right", "feedback"), [
    ("100", True, ""), ("101", True, "To be exact: 100 GB."), ("101.1", False, "The answer is 100 GB."),
    ("99", True, "To be exact: 100 GB."), ("98.9", False, "The answer is 100 GB."), ("0.1 TB", True, "")])
def test_tolerance_is_a_share_of_the_value(typed, right, feedback):
    verdict = answers.check("number", Face("?", "!"), typed, drawn=Drawn({}, 100.0, "GB", 0.01))
    assert verdict == answers.Verdict(right, feedback)


def test_a_count_must_be_exact():
    count = Drawn({}, 14, "steps", 0)
    assert answers.check("number", Face("?", "!"), "14 steps", drawn=count).right
    assert not answers.check("number", Face("?", "!"), "14.01", drawn=count).right


@pytest.mark.parametrize(("value", "unit", "words"), [
    (14.0, "steps", "14 steps"), (1048576, "bytes", "1,048,576 bytes"), (27.272727, "%", "27.27 %"),
    (1.23456e20, "", "1.235e+20"), (1234.5, "ms", "1,234 ms"), (0, "", "0")])
def test_numbers_are_shown_to_be_read(value, unit, words):
    assert quantities.shown(value, unit) == words


def test_a_wrong_option_comes_with_its_reason():
    assert answers.check("choice", CHOICE, 0) == answers.Verdict(False, "Too few.")
    assert answers.check("choice", CHOICE, 1) == answers.Verdict(True, "")
    for given_ in (2, -1, "x", None):
        with pytest.raises(answers.AnswerError, match="choose one of the 2 options"):
            answers.check("choice", CHOICE, given_)


def test_steps_with_the_same_words_may_change_places():
    assert answers.check("order", STEPS, [0, 1, 2, 3]).right
    assert answers.check("order", STEPS, [2, 1, 0, 3]).right
    assert answers.check("order", STEPS, [1, 0, 2, 3]) == answers.Verdict(False, "2 of 4 steps are in their place.")
    for given_ in ([0, 1], [0, 0, 1, 2], None):
        with pytest.raises(answers.AnswerError, match="all 4 steps"):
            answers.check("order", STEPS, given_)


@pytest.mark.parametrize(("typed", "right"), [
    ("all-reduce", True), ("All Reduce", True), ("the allreduce", True), ("`all-reduce`", True),
    ("all-redcue", None), ("broadcast", False), ("all-gather", False)])
def test_a_gap_is_compared_without_what_spelling_leaves_open(typed, right):
    assert answers.check("cloze", CLOZE, typed).right is right


def test_what_is_nearly_the_same_is_left_to_the_learner():
    face = Face("[...] updates wait for all.", "", missing="Synchronous")
    assert answers.check("cloze", face, "asynchronous").right is None


def test_hinglish_spelling_is_never_called_wrong():
    face = Face("Gradients [...] hote hain.", "", missing="jama")
    assert answers.check("cloze", face, "jama", language=HINGLISH).right is True
    assert answers.check("cloze", face, "ikattha", language=HINGLISH).right is None


def test_an_empty_gap_is_no_answer_and_a_basic_card_asks_for_none():
    with pytest.raises(answers.AnswerError, match="no answer yet"):
        answers.check("cloze", CLOZE, " - ")
    with pytest.raises(answers.AnswerError, match="not checked"):
        answers.check("basic", Face("?", "!"), "x")


@pytest.mark.parametrize("card", NUMBER_CARDS, ids=lambda card: card.id)
def test_the_answers_of_number_cards_can_be_typed_with_and_without_their_unit(card):
    for seed in range(20):
        drawn = card.draw(random.Random(seed))
        for typed in (f"{drawn.value!r}", f"{drawn.value!r} {drawn.unit}", quantities.shown(drawn.value, drawn.unit)):
            assert answers.check("number", Face("?", "!"), typed, drawn=drawn).right, (typed, drawn)
        wrong = f"{drawn.value * 1.5 + 1} {drawn.unit}"
        assert not answers.check("number", Face("?", "!"), wrong, drawn=drawn).right


@pytest.mark.parametrize("places", [[0, "a", 1, 2], [None, 0, 1, 2], [0.0, 1.0, 2.0, 3.0], [0, 1, 2, [3]],
                                    {0, 1, 2, 3}, 7])
def test_what_is_no_order_is_told_so_whatever_it_is(places):
    with pytest.raises(answers.AnswerError, match="all 4 steps"):
        answers.check("order", STEPS, places)
