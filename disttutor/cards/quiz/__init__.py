"""The quiz in a notebook."""

from disttutor.cards.quiz.widget import Quiz, quiz, review

__all__ = ["Quiz", "quiz", "review"]
