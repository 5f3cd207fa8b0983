"""A sitting in the terminal: one card after the other, by keys, or by lines where the answers come from a pipe."""

import re
from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console

from disttutor.cards.card import ENGLISH, HINGLISH
from disttutor.cards.progress import Progress
from disttutor.cards.progress.adoptions import Adoption
from disttutor.cards.progress.reviews import CONFIDENCES
from disttutor.cards.progress.scheduling import Rating
from disttutor.cards.sitting.answers import AnswerError
from disttutor.cards.sitting.review import TYPED, Phase, Review
from disttutor.cards.sitting.summary import counted, put_off
from disttutor.terminal import screen
from disttutor.terminal.keyboard import Keyboard

ONE_BY_ONE = 5      # how many edited cards are asked about one by one
LANGUAGES = {ENGLISH: "English", HINGLISH: "Hinglish", "hi": "Hindi"}

Keys = dict[str, tuple[str, Callable[[], object]]]      # for each key what it does, in words and as a function


class _Left(Exception):
    """The learner has had enough for now."""


def sit(review: Review, console: Console, keyboard: Keyboard) -> None:
    """Ask until no card is left, or the learner leaves with q, Ctrl-C or Ctrl-D.

    Each rating is kept at once, so nothing is lost by leaving.
    """
    try:
        _Sitting(review, console, keyboard).go_on()
    except (_Left, EOFError, KeyboardInterrupt):
        console.print()


def confirm(progress: Progress, adoptions: Sequence[Adoption], console: Console, keyboard: Keyboard) -> None:
    """Say which edited cards went on with the history of older ones, and undo what the learner does not want.

    The first few are asked one by one, all others together: a deck that was renamed may have hundreds.
    """
    groups = [[adoption] for adoption in adoptions[:ONE_BY_ONE]]
    if more := list(adoptions[ONE_BY_ONE:]):
        groups.append(more)
    for group in groups:
        screen.said(console, group[0].sentence)
        if len(group) > 1:
            screen.said(console, f"So do {counted(len(group) - 1, 'more card')} with theirs.")
        what = "Are they one card?" if len(group) == 1 else "Is each of them one card?"
        screen.keys(console, what, {"Enter": "yes", "n": "no, begin anew"}, {})
        try:
            if keyboard.key() == "n":
                for adoption in group:
                    progress.reject(adoption)
        except (EOFError, KeyboardInterrupt):
            return


class _Sitting:
    def __init__(self, review: Review, console: Console, keyboard: Keyboard):
        self.review, self.console, self.keyboard = review, console, keyboard

    def go_on(self) -> None:
        while self.review.phase != Phase.DONE:
            if self.review.phase == Phase.ASKED:
                screen.question(self.console, self.review)
                self._ask()
            elif self.review.phase == Phase.SURE:
                self._press("How sure are you?", self._sureness())
            else:
                screen.answer(self.console, self.review)
                self._press("", self._ratings())

    def _ask(self) -> None:
        review, kind = self.review, self.review.asked.card.kind
        show: Keys = {"Enter": ("show", review.reveal)}
        if kind == "choice":
            options = {str(n): ("", partial(review.answer, place)) for n, place in enumerate(review.asked.places, 1)}
            self._press("Which one?", options | show)
        elif kind == "order":
            self._type("The order, such as 2 1 3", lambda text: review.answer(self._places(text)))
        elif kind in TYPED:
            unit = review.asked.drawn.unit if review.asked.drawn else ""
            self._type(f"Your answer in {unit}" if unit else "Your answer", review.answer)
        elif review.asks_confidence:
            self._press("How sure are you?", self._sureness())
        else:
            self._press("", show)

    def _sureness(self) -> Keys:
        sure = {str(number): (f"{percent} %", partial(self.review.sure, percent))
                for number, percent in enumerate(CONFIDENCES, 1)}
        return {**sure, "Enter": ("show", self.review.reveal)}

    def _ratings(self) -> Keys:
        """Where the answer was checked, Enter goes on; a typed one may have been judged wrongly."""
        review, suggested = self.review, self.review.suggested
        every: Keys = {str(n): self._rating(rating) for n, rating in enumerate(review.ratings, 1)}
        if suggested is None:
            return every
        words, rate = self._rating(suggested)
        keys: Keys = {"Enter": (f"go on ({words})", rate)}
        if suggested != Rating.FORGOT and len(every) == len(Rating):
            keys |= {key: does for key, does in every.items() if key != "1"}
        if review.may_overrule:
            wrong = suggested == Rating.FORGOT
            other = Rating.REMEMBERED if wrong else Rating.FORGOT
            keys["o"] = ("I was right" if wrong else "I was wrong", partial(review.rate, other))
        return keys

    def _rating(self, rating: Rating) -> tuple[str, Callable[[], object]]:
        words = f"{rating.name.lower()}: {put_off(rating, self.review.intervals[rating])}"
        return words, partial(self.review.rate, rating)

    def _always(self) -> Keys:
        """What can be done at any time, as far as there is something to do."""
        review, keys = self.review, {}
        tags = list(review.asked.faces)
        if len(tags) > 1:
            following = tags[(tags.index(review.asked.language(review.language)) + 1) % len(tags)]
            keys["h"] = (LANGUAGES.get(following, following), self._turn)
        if review.answered or review.phase == Phase.SURE:
            keys["u"] = ("undo", review.undo)
        return {**keys, "q": ("quit", self._leave)}

    def _turn(self) -> None:
        self.review.turn()
        if self.review.phase != Phase.ASKED:            # else it is asked anew anyway
            screen.question(self.console, self.review)

    def _leave(self) -> None:
        raise _Left

    def _press(self, what: str, keys: Keys) -> None:
        """Wait for one of the keys, and do what it does."""
        always = self._always()
        screen.keys(self.console, what, _words(keys), _words(always))
        keys = keys | always
        while (key := self.keyboard.key() or "Enter") not in keys:
            screen.said(self.console, f"Press one of: {', '.join(keys)}", "yellow")
        keys[key][1]()

    def _type(self, what: str, answer: Callable[[str], None]) -> None:
        """Read an answer until there is one that can be checked; nothing typed means that it shall be shown."""
        always = {f":{key}": does for key, does in self._always().items()}
        keys: Keys = {"Enter": ("show", self.review.reveal)}
        screen.keys(self.console, f"{what}:", _words(keys), _words(always))
        keys = keys | always
        while True:
            self.console.print("  > ", end="")
            typed = self.keyboard.line().strip()
            if (typed.lower() or "Enter") in keys:
                return keys[typed.lower() or "Enter"][1]()
            try:
                return answer(typed)
            except AnswerError as error:
                screen.said(self.console, str(error), "yellow")

    def _places(self, text: str) -> list[int]:
        """What was typed, as places in the card; digits may stand together. Raises AnswerError."""
        numbers = re.findall(r"\d+", text)
        if len(numbers) == 1:
            numbers = list(numbers[0])
        places = {str(number): place for number, place in enumerate(self.review.asked.places, 1)}
        if not places.keys() >= set(numbers):
            raise AnswerError(f"the steps are numbered from 1 to {len(places)}")
        return [places[number] for number in numbers]


def _words(keys: Keys) -> dict[str, str]:
    return {key: words for key, (words, _) in keys.items()}
