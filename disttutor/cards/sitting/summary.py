"""What a sitting came to, in words: how many cards, how sure and how right, and when they come back."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta

from disttutor.cards.card import Card
from disttutor.cards.progress.scheduling import NEW, Rating, State
from disttutor.cards.sitting.review import Answered, Review

SOME_DAYS = 5       # how many coming days are named one by one


def summary(review: Review, cards: Iterable[Card]) -> list[str]:
    """Sentences about the sitting and the coming days of `cards`, all those it might have asked."""
    coming = next_due(cards, review.progress.states)
    answered = review.answered
    return [*_done(answered), *_left(answered), *_sureness(answered), _coming(coming, review.progress.today)]


def next_due(cards: Iterable[Card], states: Mapping[str, State]) -> Counter[date | None]:
    """How many of the cards fall due on each study day; under None those that come back within minutes."""
    seen = (state for card in cards if not (state := states.get(card.id, NEW)).is_new)
    return Counter(state.due_day for state in seen)


def put_off(rating: Rating, time: timedelta) -> str:
    """When a rating brings a card back, as it stands on its button. What comes back within minutes does so in the
    sitting if it was forgotten, else whenever the learner sits down again."""
    if time >= timedelta(days=1):
        return length(time)
    return "again soon" if rating == Rating.FORGOT else "later today"


def length(time: timedelta) -> str:
    """A time in one unit, as it stands on a button: 10 min, 3 days, 2 months."""
    minutes = time / timedelta(minutes=1)
    for unit, size in (("year", 365.25 * 1440), ("month", 30.4375 * 1440), ("day", 1440), ("hour", 60)):
        if minutes >= size * (2 if unit in {"year", "month"} else 1):
            return counted(round(minutes / size), unit)
    return f"{max(1, round(minutes))} min"


def counted(number: int, thing: str) -> str:
    """1 card, 2 cards."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _done(answered: Iterable[Answered]) -> list[str]:
    first = _first(answered)
    if not first:
        return []
    known = sum(answer.remembered for answer in first)
    words = f"{counted(len(first), 'card')}: {known} remembered at once"
    return [f"{words}, {len(first) - known} met again." if known < len(first) else f"{words}."]


def _first(answered: Iterable[Answered]) -> list[Answered]:
    """The first answer to each card: only that one was asked before its answer was seen."""
    first: dict[str, Answered] = {}
    for answer in answered:
        first.setdefault(answer.card.id, answer)
    return list(first.values())


def _left(answered: Iterable[Answered]) -> list[str]:
    """A kind word about cards that would not stay."""
    last = {answer.card.id: answer for answer in answered}
    left = sum(not answer.remembered for answer in last.values())
    return [f"{counted(left, 'card')} would not stay: left for another time."] if left else []


def _sureness(answered: Iterable[Answered]) -> list[str]:
    """One sentence where the learner was sure, and how that went; confident errors are worth a second look."""
    sure = [answer.remembered for answer in _first(answered) if answer.confidence == 95]
    if not sure:
        return []
    return [f"95 % sure {counted(len(sure), 'time')}, right {sum(sure)} of them." if len(sure) > 1 else
            f"95 % sure once, and {'right' if sure[0] else 'wrong'}."]


def _coming(coming: Mapping[date | None, int], today: date) -> str:
    if not coming:
        return "Nothing is planned for the coming days: there is nothing to repeat yet."
    soon = coming.get(None, 0) + sum(count for day, count in coming.items() if day is not None and day <= today)
    later = sorted((day, count) for day, count in coming.items() if day is not None and day > today)
    parts = [f"{counted(soon, 'card')} later today"] * bool(soon)
    parts += [f"{counted(count, 'card')} {_when(day, today)}" for day, count in later[:SOME_DAYS]]
    if rest := sum(count for _, count in later[SOME_DAYS:]):
        parts.append(f"{counted(rest, 'card')} after that")
    return f"They come back: {', '.join(parts)}."


def _when(day: date, today: date) -> str:
    days = (day - today).days
    return "tomorrow" if days == 1 else f"in {length(timedelta(days))} ({day.day} {day:%B})"
