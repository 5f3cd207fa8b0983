"""A sitting: confidence before the answer, and how answers are rated."""

from datetime import UTC

import pytest
from sittings import CHOICE, CLOZE, FORGOT, HARD, NUMBER, REMEMBERED, Clock, basic, one

from disttutor.cards.progress import Progress
from disttutor.cards.progress.days import StudyDays
from disttutor.cards.sitting.answers import AnswerError
from disttutor.cards.sitting.review import Phase


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def progress(tmp_path, clock):
    return Progress(tmp_path, clock=clock, days=StudyDays(UTC))


def test_confidence_comes_before_the_answer(progress):
    review = one(progress, CHOICE)
    review.answer(1)
    assert review.phase == Phase.SURE
    review.sure(75)
    assert (review.phase, review.confidence) == (Phase.SHOWN, 75)
    with pytest.raises(ValueError, match="the card is shown"):
        review.sure(95)                                           # too late
    review.rate()
    assert (progress.reviews[-1].confidence, progress.reviews[-1].right) == (75, True)


def test_confidence_is_one_of_four_or_left_out(progress):
    review = one(progress, basic("a"))
    with pytest.raises(ValueError, match="60 is no confidence"):
        review.sure(60)
    review.sure(None)
    review.rate(REMEMBERED)
    assert progress.reviews[-1].confidence is None


def test_who_wants_no_confidence_is_not_asked(progress):
    progress.set("confidence", False)
    review = one(progress, CHOICE)
    review.answer(1)
    assert review.phase == Phase.SHOWN


@pytest.mark.parametrize(("given", "confidence", "rating"), [
    (1, None, REMEMBERED), (1, 95, REMEMBERED), (1, 75, REMEMBERED), (1, 50, HARD), (1, 25, HARD), (0, 95, FORGOT)])
def test_checked_answers_are_rated_by_themselves(progress, given, confidence, rating):
    review = one(progress, CHOICE)
    review.answer(given)
    review.sure(confidence)
    assert review.suggested == rating
    review.rate()
    assert progress.reviews[-1].rating == rating


def test_a_typed_answer_may_be_overruled_and_a_choice_not(progress):
    review = one(progress, CLOZE)
    review.answer("ring sum")
    review.sure(95)
    assert review.suggested == FORGOT and review.may_overrule
    review.rate(REMEMBERED)
    assert (progress.reviews[-1].right, progress.reviews[-1].given) == (True, "ring sum")
    review = one(progress, CHOICE)
    review.answer(0)
    review.sure(None)
    assert not review.may_overrule
    with pytest.raises(ValueError, match="cannot be overruled"):
        review.rate(REMEMBERED)


def test_what_cannot_be_decided_is_rated_by_the_learner(progress):
    review = one(progress, CLOZE)
    review.answer("all-redcue")
    review.sure(None)
    with pytest.raises(ValueError, match="give a rating"):
        review.rate()
    review.rate(REMEMBERED)
    assert progress.reviews[-1].right is None


def test_no_answer_keeps_the_question(progress):
    review = one(progress, NUMBER)
    with pytest.raises(AnswerError):
        review.answer("many")
    assert review.phase == Phase.ASKED
