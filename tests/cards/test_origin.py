"""Where a card comes from is told once."""

import pytest

from disttutor.cards import Card
from disttutor.cards.origin import origin


@pytest.mark.parametrize(("lesson", "section", "source", "told"), [
    (3, "Why", "Li 2020, section 3", ("Lesson 03, Why", "Li 2020, section 3")),
    (3, "", "Li 2020", ("Lesson 03", "Li 2020")),
    (3, "Why", "Lesson 03", ("Lesson 03, Why", "")),
    (3, "Why", "Course, lesson 03, Why", ("Lesson 03, Why", "")),
    (3, "Why", "Lesson 03, What it costs", ("Lesson 03, What it costs", "")),
    (3, "Why", "Lesson 03; Li 2020", ("Lesson 03, Why", "Li 2020")),
    (3, "Why", "Lesson 04, Look", ("Lesson 03, Why", "Lesson 04, Look")),
    (None, "Why", "Lesson 03", ("Why", "Lesson 03")),
    (None, "", "", ("", "")),
])
def test_lesson_section_and_source(lesson, section, source, told):
    assert origin(Card(id="x", deck="d", lesson=lesson, section=section, source=source)) == told
