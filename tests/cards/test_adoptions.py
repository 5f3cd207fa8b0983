"""A card's history survives an edit of its text."""

from datetime import UTC, datetime, timedelta

import pytest

from disttutor.cards.card import Card, Face
from disttutor.cards.notes import as_cards, parse
from disttutor.cards.progress import Progress
from disttutor.cards.progress.adoptions import Adoption, owners
from disttutor.cards.progress.days import StudyDays
from disttutor.cards.progress.scheduling import Rating
from tests.cards.kernels import card

NOTE = """#flashcards/ai-ml
What does a ring all-reduce send per rank? :: Two times (n-1)/n of the array.
What does ZeRO stage 1 shard? :: The optimizer state.
What is a pipelin bubble? :: Time in which a stage waits.
"""


def cards(note: str) -> list[Card]:
    return as_cards(parse(note))


@pytest.fixture
def progress(tmp_path):
    return Progress(tmp_path, clock=lambda: datetime(2026, 1, 31, 12, tzinfo=UTC), days=StudyDays(UTC))


def test_one_letter_of_a_question_changes_and_nothing_else_does(progress):
    before = cards(NOTE)
    for one in before:
        progress.answer(one, Rating.EASY)                    # due in eight days
    states = dict(progress.states)
    after = cards(NOTE.replace("pipelin bubble", "pipeline bubble"))
    assert [a.id == b.id for a, b in zip(before, after, strict=True)] == [True, True, False]
    adoption, = progress.adopt(after)
    assert (adoption.old, adoption.new) == (before[2].id, after[2].id)
    assert adoption.sentence == ('"What is a pipeline bubble?" goes on with the history of "What is a pipelin bubble?" '
                                 "(98 % alike).")
    again = Progress(progress.home)
    for known in (progress, again):
        assert known.states[after[2].id] == states[before[2].id]
        assert {id: known.states[id] for id in states if id != before[2].id} == {
            id: states[id] for id in states if id != before[2].id}
        assert before[2].id not in known.states and known.fresh(after) == []
    assert [review.card for review in again.reviews] == [one.id for one in after]
    assert progress.adopt(after) == []                       # said once


def test_a_history_goes_on_through_further_edits_and_back(progress):
    first, second, third = (card(name, question) for name, question in (
        ("one", "What is the bubble of a pipeline?"), ("two", "What is a bubble of a pipeline?"),
        ("three", "What is a bubble of the pipeline?")))
    other = card("other")
    progress.answer(first, Rating.EASY)
    state = progress.states["one"]
    for edited in (second, third, first):
        assert [adoption.new for adoption in progress.adopt([edited, other])] == [edited.id]
        assert dict(progress.states) == {edited.id: state}
    progress.answer(first, Rating.REMEMBERED)
    assert progress.states["one"].reviews == 2


def test_a_learner_may_say_no(progress):
    old, new, other = card("old", "What is a ring of ranks?"), card("new", "What is a ring of ranks??"), card("other")
    progress.answer(old, Rating.EASY)
    state = progress.states["old"]
    adoption, = progress.adopt([new, other])
    progress.reject(adoption)
    assert dict(progress.states) == {"old": state} and progress.fresh([new]) == [new]
    assert progress.adopt([new, other]) == []                # not asked again
    assert dict(Progress(progress.home).states) == {"old": state}


@pytest.mark.parametrize("now", [
    [card("new", "What is a ring of ranks??", deck="another")],                  # the old deck is not there
    [card("new", "Which link is slow?"), card("other")],                         # another question
    [card("old", "What is a ring of ranks?"), card("new", "What is a ring of ranks??")],     # the old card is there
    [card("n1", "What is a ring of ranks??"), card("n2", "What is the ring of ranks?")],     # which of the two?
    [Card(id="number", deck="deck", kind="number"), card("other")],
])
def test_what_is_not_surely_the_same_card_begins_anew(progress, now):
    progress.answer(card("old", "What is a ring of ranks?"), Rating.EASY)
    assert progress.adopt(now) == [] and set(progress.states) == {"old"}


def test_the_second_gap_takes_over_the_history_of_the_second_gap(progress):
    note = "#flashcards/a\n==Ring== and ==tree== are two wayz of an all-reduce.\n"
    before, after = cards(note), cards(note.replace("wayz", "ways"))
    progress.answer(before[1], Rating.EASY)
    adoption, = progress.adopt(after)
    assert (adoption.old, adoption.new) == (before[1].id, after[1].id)


def test_a_kernel_that_still_has_the_old_text_adds_to_the_same_history(progress):
    old, new, other = card("old", "What is a ring of ranks?"), card("new", "What is a ring of ranks??"), card("other")
    progress.answer(old, Rating.EASY)
    progress.adopt([new, other])
    progress.answer(old, Rating.EASY)
    assert {name: state.reviews for name, state in progress.states.items()} == {"new": 2}


def test_the_due_day_does_not_move_with_the_new_id(tmp_path):
    # Intervals are moved by the id a card had when it was asked.
    moment = [datetime(2026, 1, 31, 12, tzinfo=UTC)]
    progress = Progress(tmp_path, clock=lambda: moment[0], days=StudyDays(UTC))
    old = [card(f"old-{n}", f"Question {'abcdefghijklmnopqrst'[n] * 9}?") for n in range(20)]
    new = [Card(id=f"new-{n}", deck="deck", faces={"en": Face(one.faces["en"].question + "?", "")})
           for n, one in enumerate(old)]
    for one in old:
        progress.answer(one, Rating.EASY)
    moment[0] += timedelta(days=9)
    for one in old:
        progress.answer(one, Rating.EASY)
    days = [progress.states[one.id].due_day for one in old]
    assert len(set(days)) > 3 and len(progress.adopt(new)) == 20
    assert [progress.states[one.id].due_day for one in new] == days


def test_a_card_that_was_away_for_a_while_has_its_history_again(progress):
    """Its folder was not mounted, and a near card of another note took the history over meanwhile."""
    away, = cards("#flashcards/x\nWhat does a broadcast leave on every rank? :: A")
    other, = cards("#flashcards/x\nWhat does a broadcast leave on each rank? :: B")
    first = progress.answer(away, Rating.EASY)
    assert len(progress.adopt([other])) == 1
    second = progress.answer(other, Rating.FORGOT)
    assert progress.adopt([away, other]) == []
    assert {review.id: review.card for review in progress.reviews} == {first.id: away.id, second.id: other.id}
    assert progress.adopt([away, other]) == []


def test_a_history_that_came_back_may_go_on_again(progress):
    """A copy of the old note turned up beside the edited one, and went again."""
    old, = cards("#flashcards/x\nWhat does a broadcast leave on every rank? :: A")
    edited, = cards("#flashcards/x\nWhat does a broadcast leave on each rank? :: A")
    progress.answer(old, Rating.EASY)
    progress.adopt([edited])
    progress.adopt([old, edited])
    assert set(progress.states) == {old.id}
    assert len(progress.adopt([edited])) == 1 and set(Progress(progress.home).states) == {edited.id}


def test_a_history_comes_back_from_an_edit_of_an_edit(progress):
    first, second, third = (cards(f"#flashcards/x\nWhat does a broadcast leave on {word} rank? :: A")[0]
                            for word in ("every", "each", "each other"))
    for one in (first, second, third):
        progress.adopt([one])
        progress.answer(one, Rating.EASY)
    assert progress.states[third.id].reviews == 3
    progress.adopt([first, third])
    assert (progress.states[first.id].reviews, progress.states[third.id].reviews) == (1, 2)


def test_a_renamed_deck_keeps_its_histories(progress):
    before = cards(NOTE)
    for one in before:
        progress.answer(one, Rating.EASY)
    after = cards(NOTE.replace("#flashcards/ai-ml", "#flashcards/machine-learning"))
    made = progress.adopt([*after, card("other")])
    assert {(one.old, one.new) for one in made} == {(a.id, b.id) for a, b in zip(before, after, strict=True)}
    assert made[0].sentence == f'"{made[0].now}" goes on with its history in another deck.'
    assert progress.fresh(after) == [] and progress.adopt(after) == []


def test_no_means_no_also_where_two_kernels_have_asked(progress):
    old, = cards("#flashcards/x\nWhat does a broadcast leave on every rank? :: A")
    edited, = cards("#flashcards/x\nWhat does a broadcast leave on each rank? :: A")
    progress.answer(old, Rating.EASY)
    other = Progress(progress.home)
    (first,), (_,) = progress.adopt([edited]), other.adopt([edited])
    progress.reject(first)
    other.refresh()
    assert set(other.states) == set(Progress(progress.home).states) == {old.id}


def test_owners_by_hand():
    def adoption(old: str, new: str) -> Adoption:
        return Adoption("", old, new, 1.0, "", "")

    assert owners([adoption("a", "b"), adoption("b", "c")]) == {"a": "c", "b": "c", "c": "c"}
    assert owners([adoption("a", "b"), adoption("b", "a")]) == {"a": "a", "b": "a"}
    assert owners([adoption("a", "a")]) == {"a": "a"}
