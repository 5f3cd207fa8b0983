"""A clock that is moved by hand, cards of every kind, and a learner who answers all of them alike."""

from datetime import UTC, datetime, timedelta

from disttutor.cards.card import ENGLISH, HINGLISH, Card, Drawn, Face, Option
from disttutor.cards.progress import Progress
from disttutor.cards.progress.scheduling import Rating
from disttutor.cards.sitting.review import Phase, Review

FORGOT, HARD, REMEMBERED, EASY = Rating


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = datetime(2026, 1, 5, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, **time: float) -> None:
        self.now += timedelta(**time)


def basic(name: str, family: str = "") -> Card:
    faces = {ENGLISH: Face(f"{name}?", f"{name}!"), HINGLISH: Face(f"{name} kya?", f"{name} hai!")}
    return Card(id=name, deck="test", faces=faces, family=family)


CHOICE = Card(id="choice", deck="test", kind="choice", faces={ENGLISH: Face("Which?", "So.", options=(
    Option("one", why="Too few."), Option("two", True), Option("three", why="Too many."), Option("four", why="No.")))})
STEPS = Card(id="steps", deck="test", kind="order",
             faces={ENGLISH: Face("Order?", "So.", steps=("first", "second", "third", "fourth"))})
CLOZE = Card(id="cloze", deck="test", kind="cloze", faces={ENGLISH: Face("An [...].", "An all-reduce.",
                                                                       missing="all-reduce")})
NUMBER = Card(id="number", deck="test", kind="number", draw=lambda random: (
    lambda n: Drawn({ENGLISH: Face(f"Twice {n}?", f"{2 * n}")}, 2 * n, "steps", 0))(random.randrange(10, 10**6)))


def play(review: Review, rating: Rating = REMEMBERED) -> list[str]:
    """Answer everything alike; the ids of the cards in the order in which they were asked."""
    asked = []
    while review.phase != Phase.DONE:
        asked.append(review.asked.card.id)
        assert len(asked) < 500
        review.reveal()
        review.rate(rating)
    return asked


def one(progress: Progress, card: Card, seed: int = 1, **how: bool) -> Review:
    return Review([card], progress, seed=seed, **how)
