"""Guess first: the learner commits to an answer, and says how sure, before the experiment shows.

    guess = Guess("How many …?", ["two", "three"], right="three", why="Because …")
    guess                        # shows question, choices and confidence
    guess.reveal()               # later, below the picture: the guess beside the answer

Unattended it is a question with its choices as text, and `reveal` gives the answer.
"""

import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any

LEAST, MOST = 50, 100       # percent: how sure one can be
WIDTH = 88                  # letters in a line of the answer


class Guess:
    """One question with choices. `right` is one of them, `why` a sentence or two for everybody.

    choice: what the learner chose, None before; confidence: how sure, in percent. Raises ValueError if `right` is no
    choice.
    """

    def __init__(self, question: str, choices: Sequence[str], *, right: str, why: str):
        if right not in choices:
            raise ValueError(f"{right!r} is not among the choices {list(choices)}")
        self.question, self.choices, self.right, self.why = question, list(choices), right, why
        self.choice: str | None = None
        self.confidence = LEAST
        self._widget: Any = None

    def _build(self) -> Any:
        import ipywidgets as w

        self._options = w.RadioButtons(options=self.choices, value=None, layout=w.Layout(width="auto"))
        self._sure = w.IntSlider(70, LEAST, MOST, step=5, description="how sure are you, in %",
                                 style={"description_width": "initial"}, layout=w.Layout(width="420px"))
        button = w.Button(description="This is my guess", icon="check")
        self._said = w.HTML()
        button.on_click(self._commit)
        return w.VBox([w.HTML(f"<b>{escape(self.question)}</b>"), self._options, self._sure, button, self._said])

    def _commit(self, _: Any = None) -> None:
        if self._options.value is None:
            self._said.value = "<span role='status'>Choose one first: a wrong guess teaches more than none.</span>"
            return
        self.choice, self.confidence = self._options.value, self._sure.value
        self._said.value = (f"<span role='status'>Noted: {escape(self.choice)}, {self.confidence} % sure. "
                            "Now let us look.</span>")

    def __repr__(self) -> str:
        return "\n".join([self.question, *(f"  ( ) {choice}" for choice in self.choices)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        self._widget = self._widget or self._build()
        return {**self._widget._repr_mimebundle_(), "text/plain": repr(self)}

    def reveal(self) -> "Revealed":
        """The answer, beside what was guessed."""
        return Revealed(self)


class Revealed:
    """What a cell shows once the answer may be known."""

    def __init__(self, guess: Guess):
        if guess.choice is None:
            self.lines = [f"The answer: {guess.right}."]
        elif guess.choice == guess.right:
            self.lines = [f"You said: {guess.choice}, {guess.confidence} % sure. That is right."]
        else:
            self.lines = [f"You said: {guess.choice}, {guess.confidence} % sure. It is: {guess.right}."]
        self.lines.append(guess.why)

    def __repr__(self) -> str:
        return "\n".join(textwrap.fill(line, WIDTH) for line in self.lines)
