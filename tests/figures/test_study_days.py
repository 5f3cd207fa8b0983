"""The calendar of study days, counted by hand: Wednesday 18 March 2026."""

from datetime import date

import pytest
from drawn import SVG, outside, root, texts

from disttutor.figures import study_days

TODAY = date(2026, 3, 18)
STUDIED = [date(2026, 2, 22), date(2026, 2, 23), date(2026, 3, 15), date(2026, 3, 18)]     # the first lies before it


def cells(figure):
    return [node for node in root(figure).findall(f"{SVG}rect") if node.get("width") == "26"]


def test_four_weeks_to_today():
    figure = study_days(STUDIED, TODAY)
    drawn = cells(figure)
    assert len(drawn) == 3 * 7 + 3                              # Monday 23 February to Wednesday 18 March
    assert texts(figure) == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "23 Feb", "2 Mar", "9 Mar", "16 Mar"]
    filled = [k for k, node in enumerate(drawn) if node.get("fill") != "#ffffff"]
    assert filled == [0, 20, 23]                                # first Monday, last Sunday, today
    assert len(root(figure).findall(f"{SVG}path")) == 3         # each with a tick
    assert [k for k, node in enumerate(drawn) if node.get("stroke-width")] == [23]
    assert outside(figure) == []


def test_it_is_told_in_words():
    figure = study_days(STUDIED, TODAY)
    assert figure.alt == "Days on which you studied, in 4 weeks to today: 23 February, 15 March, 18 March."
    assert repr(figure) == "You studied on 3 of the 24 days since 23 February."
    assert study_days([], TODAY, weeks=1).alt == "Days on which you studied, in 1 week to today: none."


def test_no_weeks_are_none():
    with pytest.raises(ValueError, match="0 weeks cannot be drawn"):
        study_days([], TODAY, weeks=0)
