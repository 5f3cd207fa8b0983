"""One answer to one card, read from its event."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from disttutor.cards.progress.events import DamagedEvent, Event, day_of, moment_of, number_of, order_of
from disttutor.cards.progress.preferences import PREFERENCES
from disttutor.cards.progress.scheduling import RETENTION, Rating, Reviewed

CONFIDENCES = (25, 50, 75, 95)      # percent


@dataclass(frozen=True, slots=True)
class Review:
    """One answer to one card.

    id: of the event. card: the card's id now; asked: the id it had then, another one if an edited card has taken the
    history over since. moment (UTC), day: when, and on which study day. order: its place among all events. confidence:
    how sure the learner was, in percent. given: the answer; right: whether it is, None where nobody knows. seconds: how
    long it took. seed: of a number card. retention: the one wished for then.
    """

    id: str
    card: str
    asked: str
    rating: Rating
    moment: datetime
    day: date
    order: datetime
    confidence: int | None = None
    given: Any = None
    right: bool | None = None
    seconds: float | None = None
    seed: int | None = None
    retention: float = RETENTION

    @property
    def place(self) -> tuple[datetime, str]:
        """What reviews are sorted by."""
        return self.order, self.id

    @property
    def memory(self) -> Reviewed:
        """The part of it that the schedule depends on."""
        return Reviewed(self.rating, self.moment, self.day, self.asked, self.retention)


def review_of(event: Event) -> Review:
    """Reads a review event. Raises DamagedEvent without card, rating, time or day; what else is damaged is left out."""
    card, rating = event.get("card"), event.get("rating")
    if not isinstance(card, str) or not card:
        raise DamagedEvent("it has no card")
    if type(rating) is not int or not 1 <= rating <= 4:
        raise DamagedEvent(f"its rating is {rating!r}, not 1 to 4")
    confidence, right, seed = event.get("confidence"), event.get("right"), event.get("seed")
    retention = event.get("retention")
    return Review(
        id=event["id"], card=card, asked=card, rating=Rating(rating), moment=moment_of(event["time"]),
        day=day_of(event.get("day")), order=order_of(event), given=event.get("given"),
        confidence=confidence if type(confidence) is int and confidence in CONFIDENCES else None,
        right=right if type(right) is bool else None,
        seconds=number_of(event.get("seconds")),
        seed=seed if type(seed) is int else None,
        retention=float(retention) if PREFERENCES["retention"].allows(retention) else RETENTION,
    )
