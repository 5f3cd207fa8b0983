"""The quiz in a notebook: `quiz(3)` asks the cards of lesson 3, `review()` all that is due, the learner's notes too.

Without a kernel the same output is a page of cards to unfold, and plain text. No state of the widget is kept in the
notebook: what was learnt is in the learner's progress.
"""

import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import anywidget
import traitlets

from disttutor.cards.card import Card
from disttutor.cards.decks import our_cards
from disttutor.cards.progress import progress
from disttutor.cards.progress.adoptions import Adoption
from disttutor.cards.progress.scheduling import Rating
from disttutor.cards.quiz import fallback
from disttutor.cards.quiz.view import view
from disttutor.cards.shelf import every_card
from disttutor.cards.sitting.answers import AnswerError
from disttutor.cards.sitting.asking import mingled
from disttutor.cards.sitting.review import Phase, Review
from disttutor.cards.sitting.summary import summary

AT_ONCE = 12            # so many new cards of a lesson are asked in one sitting; more would not stay
PARTS = ("open_lesson.js", "quiz/parts.js", "quiz/quiz.js")      # one after the other they are the browser's side
ALONE = "Run the cell to be asked these cards. Without a kernel, unfold one to see its answer."
DUE = ("Run the cell to be asked what is due, of all lessons and of your notes. "
       "Without a kernel the cards can be read in the Recall section of each lesson.")


class Quiz(anywidget.AnyWidget):
    """Asks cards and takes answers.

    cards: all that can be asked; title: of the quiz; lesson: whose cards they are, None for a review. new_limit: see
    `Review`. adoptions: histories that edited cards took over, to be shown; remarks: sentences to show once.
    """

    _esm = "\n".join(resources.files("disttutor.cards").joinpath(name).read_text(encoding="utf-8") for name in PARTS)
    _css = resources.files("disttutor.cards").joinpath("quiz/quiz.css").read_text(encoding="utf-8")
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, cards: Sequence[Card], title: str, *, lesson: int | None = None, new_limit: int | None = None,
                 adoptions: Sequence[Adoption] = (), remarks: Sequence[str] = ()):
        super().__init__()
        self.cards, self.title, self.lesson = list(cards), title, lesson
        self.adoptions, self.remarks = list(adoptions), list(remarks)
        self._progress, self._new_limit, self._tick = progress.here(), new_limit, 0
        self.review = Review(self.cards, self._progress, new_limit=new_limit)
        self.on_msg(lambda _, message, buffers: self.receive(message))
        self._show()

    def receive(self, message: dict[str, Any]) -> None:
        """Do what the browser asks for, and show what came of it; also an error.

        What was pressed where an older state was still shown, as while the kernel was busy, is not done: the learner
        did not mean the card that is there now.
        """
        if message.get("tick", self._tick) != self._tick:
            return
        hint = error = ""
        try:
            self._progress.refresh()
            self._DO[message["do"]](self, message)
        except AnswerError as problem:
            hint = str(problem)
        except Exception as problem:        # what is raised in a callback ends in a log that nobody reads
            error = "".join(traceback.format_exception(problem))
        self._show(hint=hint, error=error)

    def _show(self, *, hint: str = "", error: str = "") -> None:
        self._tick += 1             # the browser hears of it even where all else is as before
        self.shown = {
            "tick": self._tick, "title": self.title, "hint": hint, "error": error, "notice": self._progress.notice,
            "adoptions": [adoption.sentence for adoption in self.adoptions], "remarks": self.remarks,
            "summary": summary(self.review, self.cards) if self.review.phase == Phase.DONE else [],
            "more": len(self._progress.fresh(self.cards)),
            **view(self.review, self.lesson),
        }

    def _answer(self, message: dict[str, Any]) -> None:
        if self.review.phase == Phase.SURE:         # another option, before the answer shows
            self.review.undo()
        self.review.answer(message["given"])

    def _sure(self, message: dict[str, Any]) -> None:
        if "given" in message:                      # words that were typed, without Enter after them
            self.review.answer(message["given"])
        if self.review.phase != Phase.SHOWN:        # who is not asked how sure they are sees the answer at once
            self.review.sure(message["percent"])

    def _rate(self, message: dict[str, Any]) -> None:
        rating = message.get("rating")
        self.review.rate(None if rating is None else Rating(rating))
        self.remarks = []
        if self.lesson is not None:
            self._progress.visited(self.lesson)

    def _overrule(self, message: dict[str, Any]) -> None:
        if not self.review.may_overrule:
            raise ValueError("only the verdict on a typed answer can be overruled")
        self.review.rate(Rating.REMEMBERED if self.review.suggested == Rating.FORGOT else Rating.FORGOT)

    def _practise(self, message: dict[str, Any]) -> None:
        self.review = Review(self.cards, self._progress, everything=True)

    def _more(self, message: dict[str, Any]) -> None:
        limit = self._progress.setting("new_per_day") if self._new_limit is None else self._new_limit
        self.review = Review(self.cards, self._progress, new_limit=limit)

    def _reject(self, message: dict[str, Any]) -> None:
        self._progress.reject(self.adoptions.pop(message["place"]))

    _DO: dict[str, Callable[["Quiz", dict[str, Any]], object]] = {
        "answer": _answer, "sure": _sure, "rate": _rate, "overrule": _overrule, "practise": _practise, "more": _more,
        "reject": _reject,
        "undo": lambda self, message: self.review.undo(),
        "language": lambda self, message: self.review.turn(),
    }

    def __repr__(self) -> str:
        return _pages(self.lesson)[1]

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**options)
        page, text = _pages(self.lesson)
        return {**data, "text/html": page, "text/plain": text}, metadata


def quiz(lesson: int) -> Quiz:
    """A quiz over a lesson's cards: those that are due, and some that are new. Raises ValueError if it has none."""
    cards = [card for card in our_cards() if card.lesson == lesson and not isinstance(lesson, bool)]
    if not cards:
        there = sorted({card.lesson for card in our_cards() if card.lesson is not None})
        raise ValueError(f"there is no lesson {lesson!r} with cards; there are {', '.join(map(str, there))}")
    own = [card for card in cards if card.deck.startswith(f"disttutor/{lesson:02d}-")]
    cards = [*mingled(own), *(card for card in cards if card not in own)]       # guests of other decks come last
    return Quiz(cards, f"Recall: lesson {lesson:02d}", lesson=lesson, new_limit=AT_ONCE)


def review() -> Quiz:
    """A quiz over everything that is due, then some new cards: the course's cards, and those of the learner's notes."""
    here = progress.here()
    cards, remarks = every_card(here)
    return Quiz(cards, "Review", adoptions=here.adopt(cards), remarks=remarks)


@cache
def _pages(lesson: int | None) -> tuple[str, str]:
    """HTML and text for where no quiz can run; of a review, which is another one every day, a sentence."""
    if lesson is None:
        return fallback.page((), "Review.", DUE), fallback.text((), "Review.", DUE)
    cards = [card for card in our_cards() if card.lesson == lesson]
    title = f"Cards of lesson {lesson:02d}: {len(cards)}."
    return fallback.page(cards, title, ALONE), fallback.text(cards, title, ALONE)
