"""Where a card comes from, in words: its place in the course, and its source."""

from disttutor.cards.card import Card


def origin(card: Card) -> tuple[str, str]:
    """Lesson and section, and the source (Markdown); each may be empty.

    A source that only names the card's own lesson again is not told twice.
    """
    if card.lesson is None:
        return card.section, card.source
    lesson = f"Lesson {card.lesson:02}"
    place = f"{lesson}, {card.section}" if card.section else lesson
    source = card.source.removeprefix("Course, ")
    if source.lower().startswith(lesson.lower()) and ";" not in source:
        return max(place, lesson + source[len(lesson):], key=len), ""
    return place, card.source
