"""A sitting without any screen: what is asked when, what comes back, and how answers are taken back."""

import random
from datetime import UTC, timedelta

import pytest
from sittings import CHOICE, CLOZE, EASY, FORGOT, HARD, NUMBER, REMEMBERED, STEPS, Clock, basic, one, play

from disttutor.cards.card import ENGLISH, HINGLISH
from disttutor.cards.progress import Progress
from disttutor.cards.progress.days import StudyDays
from disttutor.cards.sitting.asking import put
from disttutor.cards.sitting.review import Phase, Review
from disttutor.cards.sitting.summary import length, summary


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def progress(tmp_path, clock):
    return Progress(tmp_path, clock=clock, days=StudyDays(UTC))


def test_new_cards_come_up_to_the_days_limit(progress):
    cards = [basic(f"card-{k:02d}") for k in range(30)]
    progress.set("new_per_day", 7)
    assert set(play(Review(cards, progress))) == {f"card-{k:02d}" for k in range(7)}
    assert Review(cards, progress).phase == Phase.DONE            # the limit is for the day, not for the sitting
    assert len(set(play(Review(cards, progress, new_limit=3)))) == 3


def test_the_limit_is_a_new_one_the_next_day(progress, clock):
    cards = [basic(f"card-{k:02d}") for k in range(30)]
    progress.set("new_per_day", 7)
    play(Review(cards, progress))
    clock.wait(days=1)
    assert len(set(play(Review(cards, progress))) & {f"card-{k:02d}" for k in range(7, 14)}) == 7


def test_due_cards_come_first_and_the_most_overdue_before_others(progress, clock):
    for name in ("a", "b", "c", "d"):
        progress.answer(basic(name), EASY)                        # each falls due 7 to 9 days after this
        clock.wait(days=5)
    clock.wait(days=30)
    cards = [basic("new"), *map(basic, "dcba")]
    assert play(Review(cards, progress))[:5] == ["a", "b", "c", "d", "new"]


def test_what_fell_due_on_the_same_day_comes_in_no_fixed_order(progress, clock):
    cards = [basic(name) for name in "abcdef"]
    play(Review(cards, progress))
    clock.wait(days=9)
    firsts = {Review(cards, progress, seed=seed).asked.card.id for seed in range(20)}
    assert len(firsts) > 2


def test_a_card_that_was_remembered_once_rests(progress):
    assert play(Review([basic("a"), basic("b"), basic("c")], progress)) == ["a", "b", "c"]


def test_a_card_that_is_forgotten_again_and_again_is_left_for_another_day(progress):
    review = Review([basic("a"), basic("b")], progress)
    assert play(review, FORGOT) == ["a", "b"] * 4
    assert review.finished == review.total == 2
    assert "2 cards would not stay: left for another time." in summary(review, [basic("a"), basic("b")])


def test_a_forgotten_card_comes_back_once_its_minutes_are_over(progress, clock):
    review = Review([basic(name) for name in "abcd"], progress)
    review.reveal()
    review.rate(FORGOT)
    assert review.asked.card.id == "b"
    clock.wait(minutes=10)
    review.reveal()
    review.rate(REMEMBERED)
    assert review.asked.card.id == "a"


def test_no_card_comes_twice_in_a_row_unless_it_is_the_last(progress, clock):
    dice = random.Random(7)
    review = Review([basic(name, "x") for name in "abcde"], progress, seed=3)
    before, more_than_one = None, 0
    while review.phase != Phase.DONE:
        if review.left > 1:
            more_than_one += 1
            assert review.asked.card.id != before
        before = review.asked.card.id
        review.reveal()
        review.rate(dice.choice([FORGOT, FORGOT, REMEMBERED]))
        clock.wait(seconds=dice.choice([5, 70, 700]))
    assert more_than_one > 8


def test_a_family_keeps_together_and_is_mixed(progress):
    cards = [basic(f"{family or 'alone'}-{k}", family) for k in range(6) for family in ("collectives", "", "zero")]
    orders = {tuple(play(Review(cards, progress, everything=True, seed=seed))[:18]) for seed in range(4)}
    assert len(orders) == 4                                      # not in a fixed order
    for order in orders:
        for family in ("collectives", "zero"):
            places = [place for place, name in enumerate(order) if name.startswith(family)]
            assert places[-1] - places[0] == 5                    # one after the other


def test_the_same_seed_gives_the_same_sitting(progress):
    cards = [basic(f"{k}", "x") for k in range(6)] + [NUMBER]
    one, other = (Review(cards, progress, seed=5) for _ in range(2))
    assert one.asked == other.asked


def test_practice_asks_what_is_not_due(progress, clock):
    cards = [basic(name) for name in "abc"]
    play(Review(cards, progress))
    assert Review(cards, progress).phase == Phase.DONE
    assert sorted(play(Review(cards, progress, everything=True))) == ["a", "b", "c"]


def test_a_number_is_drawn_anew_each_time_and_its_seed_is_kept(progress):
    review = one(progress, NUMBER)
    first = review.asked
    review.answer(f"{first.drawn.value:.0f} steps")
    review.sure(None)
    review.rate()
    kept = progress.reviews[-1]
    assert (kept.seed, kept.given, kept.right) == (first.seed, f"{first.drawn.value:.0f} steps", True)
    assert put(NUMBER, kept.seed).faces == first.faces
    assert one(progress, NUMBER, everything=True, seed=2).asked.faces != first.faces


def test_steps_never_lie_in_order_already():
    places = [put(STEPS, seed).places for seed in range(200)]
    assert len(set(places)) == 23                                 # all orders of 4 but the right one
    assert {put(CHOICE, seed).places[0] for seed in range(50)} == {0, 1, 2, 3}


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_undo_brings_back_the_sitting_as_it_was(progress, clock, steps):
    dice = random.Random(steps)
    review = Review([*(basic(name, "x") for name in "abcdefghijk"), NUMBER], progress, seed=2)
    for _ in range(3):
        review.reveal()
        review.rate(dice.choice([FORGOT, REMEMBERED]))
    table = review.asked, review.left, review.finished, review.answered, dict(progress.states), len(progress.reviews)
    for _ in range(steps):
        review.reveal()
        review.rate(dice.choice([FORGOT, REMEMBERED]))
        clock.wait(seconds=20)
    for _ in range(steps):
        assert review.undo()
    assert (review.asked, review.left, review.finished, review.answered, dict(progress.states),
            len(progress.reviews)) == table
    assert review.phase == Phase.ASKED and not review.verdict


def test_undo_goes_back_to_the_beginning_and_no_further(progress):
    review = one(progress, basic("a"))
    assert not review.undo()
    play(review)
    while review.undo():
        pass
    assert review.asked.card.id == "a" and progress.reviews == [] and dict(progress.states) == {}


def test_an_answer_that_is_not_shown_yet_is_taken_back_first(progress):
    review = one(progress, CHOICE)
    review.answer(0)
    assert review.undo() and review.phase == Phase.ASKED and review.given is None


def test_undo_takes_back_its_own_answer_and_not_another_quizzes(progress):
    first, second = one(progress, basic("a")), one(progress, basic("b"))
    for review in (first, second):
        review.reveal()
        review.rate(REMEMBERED)
    first.undo()
    assert [review.card for review in progress.reviews] == ["b"]


def test_what_was_answered_in_another_notebook_is_not_asked_again(tmp_path, clock):
    here, there = (Progress(tmp_path, clock=clock, days=StudyDays(UTC)) for _ in range(2))
    cards = [basic("a"), basic("b"), basic("c")]
    review = Review(cards, here)
    assert set(play(Review(cards[1:2], there))) == {"b"}
    here.refresh()
    assert play(review) == ["a", "c"]


def test_language_turns_and_stays(progress):
    review = Review([basic("a"), basic("b")], progress)
    assert review.face.question == "a?"
    assert review.turn() and review.face.question == "a kya?"
    review.reveal()
    review.rate(REMEMBERED)
    assert review.face.question == "b kya?"
    assert Review([basic("a")], progress).language == HINGLISH
    assert review.turn() and review.language == ENGLISH
    assert not one(progress, CLOZE).turn()


def test_two_buttons_or_four(progress):
    review = one(progress, basic("a"))
    assert review.ratings == (FORGOT, REMEMBERED)
    progress.set("buttons", 4)
    assert review.ratings == (FORGOT, HARD, REMEMBERED, EASY)
    assert review.intervals[FORGOT] == timedelta(minutes=10) and review.intervals[EASY] >= timedelta(days=1)


def test_how_far_the_sitting_is(progress):
    review = Review([basic(name) for name in "abc"], progress)
    seen = []
    while review.phase != Phase.DONE:
        seen.append((review.finished, review.left, review.total))
        review.reveal()
        review.rate(FORGOT if len(seen) == 2 else REMEMBERED)
    assert seen == [(0, 3, 3), (1, 2, 3), (1, 2, 3), (2, 1, 3)]


def test_the_end_says_what_was_done_and_what_comes(progress):
    cards = [basic("a"), basic("b")]
    review = Review(cards, progress)
    review.sure(95)
    review.rate(FORGOT)
    play(review)
    assert summary(review, cards) == ["2 cards: 1 remembered at once, 1 met again.", "95 % sure once, and wrong.",
                                      "They come back: 1 card tomorrow, 1 card in 2 days (7 January)."]


@pytest.mark.parametrize(("time", "words"), [
    (timedelta(seconds=20), "1 min"), (timedelta(minutes=10), "10 min"), (timedelta(hours=1), "1 hour"),
    (timedelta(days=1), "1 day"), (timedelta(days=46), "46 days"), (timedelta(days=91), "3 months"),
    (timedelta(days=800), "2 years")])
def test_a_time_in_one_unit(time, words):
    assert length(time) == words
