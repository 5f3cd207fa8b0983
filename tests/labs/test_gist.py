"""The gist of every lesson, the kitchen story and the text for a child, in both languages."""

import re

import pytest

from disttutor.labs.course import LESSONS
from disttutor.labs.gist import Parallel, gist, kitchen, to_a_child

NUMBERS = [lesson.number for lesson in LESSONS]


@pytest.mark.parametrize("number", NUMBERS)
def test_every_lesson_has_a_gist_of_six_lines_in_both_languages(number):
    told = gist(number)
    assert len(told.hinglish) == len(told.english) == 6
    assert all(words.strip() for words in [*told.hinglish, *told.english])
    assert not set(told.hinglish) & set(told.english) - {told.english[4]}       # the mnemonic is the same in both


@pytest.mark.parametrize("number", NUMBERS)
def test_both_languages_name_the_same_numbers(number):
    """A number or formula that is in one line is in the line beside it."""
    for hinglish, english in zip(gist(number).hinglish, gist(number).english, strict=True):
        assert numbers(hinglish) == numbers(english), (hinglish, english)


def numbers(words: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:\.\d+)?", words))


def test_the_kitchen_story_has_a_part_for_every_lesson_and_the_child_is_told_as_much_in_both():
    assert len(kitchen().english) == len(kitchen().hinglish) == len(LESSONS)
    assert kitchen().english[3] == f"03 · {kitchen(3).english[0]}"
    assert len(to_a_child().english) == len(to_a_child().hinglish) >= 4


def test_languages_are_marked():
    html = gist(3).html()
    assert html.count("lang='hi-Latn'") == html.count("lang='en'") == 6
    assert "1. Har cook" in repr(gist(3))
    assert "<script>" not in Parallel("t", ["<script>"], ["a < b"]).html()


def test_what_there_is_not_is_said():
    with pytest.raises(ValueError, match="there is no lesson 17; the lessons are 0 to 16"):
        gist(17)
    for strange in (3.0, True, [1]):
        with pytest.raises(ValueError, match="there is no lesson"):
            gist(strange)
    with pytest.raises(ValueError, match="there is no lesson 'all'"):
        kitchen("all")
    with pytest.raises(ValueError, match="1 sentences in Hinglish but 0 in English"):
        Parallel("t", ["ek"], [])
