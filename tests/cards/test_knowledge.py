"""What is known of a card and of a concept, against FSRS's own formula and counts by hand."""

from datetime import date, timedelta

import fsrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cards import Card
from disttutor.cards.knowledge import Knowledge, card_state, knowledge
from disttutor.cards.progress.scheduling import State

TODAY = date(2026, 3, 18)
DECAY = 0.1542          # FSRS-6's default w20; recall after t days is (1 + f t / S)^-w20, with f such that S gives 0.9
FACTOR = 0.9 ** (-1 / DECAY) - 1


def learnt(stability, days_ago=0):
    return State(reviews=3, stability=stability, difficulty=5.0, due_day=TODAY + timedelta(1),
                 last_day=TODAY - timedelta(days_ago), phase=int(fsrs.State.Review), step=None)


def test_a_card_is_new_then_being_learnt_then_known():
    assert card_state(None, TODAY) == card_state(State(), TODAY) == "new"
    assert card_state(learnt(6.9), TODAY) == "learning"
    assert card_state(learnt(7.0), TODAY) == "known"


def test_in_its_steps_of_minutes_no_card_is_known():
    step = State(reviews=9, stability=40.0, difficulty=5.0, due_at=None, last_day=TODAY,
                 phase=int(fsrs.State.Relearning), step=0)
    assert card_state(step, TODAY) == "learning"


@given(stability=st.floats(7, 300), days=st.integers(0, 3000))
def test_what_is_long_not_asked_is_no_longer_known(stability, days):
    recall = (1 + FACTOR * days / stability) ** -DECAY
    if abs(recall - 0.8) > 1e-4:
        assert card_state(learnt(stability, days), TODAY) == ("known" if recall > 0.8 else "learning")


def card(id, *concepts):
    return Card(id=id, deck="d", concepts=concepts)


def test_counts_of_a_concept():
    cards = [card("1", "mesh"), card("2", "mesh", "zero", "mesh"), card("3", "zero", "no node of the map"), card("4")]
    states = {"1": learnt(30.0), "2": learnt(2.0), "gone": learnt(30.0)}
    found = knowledge(["mesh", "zero", "data"], cards, states, TODAY, {"2"})
    assert found == {"mesh": Knowledge(2, 1, 1, 1), "zero": Knowledge(2, 0, 1, 1), "data": Knowledge()}
    assert [k.state for k in found.values()] == ["learning", "learning", "new"]
    assert [k.share for k in found.values()] == [0.5, 0.0, 0.0]


@pytest.mark.parametrize("counts, state", [((0, 0, 0), "new"), ((5, 0, 0), "new"), ((5, 0, 1), "learning"),
                                           ((5, 3, 2), "learning"), ((5, 4, 1), "known"), ((1, 1, 0), "known")])
def test_four_of_five_cards_make_a_concept_known(counts, state):
    assert Knowledge(*counts).state == state
