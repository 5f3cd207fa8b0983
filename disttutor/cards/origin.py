"""Where a card comes from, in words: its place in the course, and its source."""

from disttutor.cards.card import Card


def origin(card: Card) -> tuple[str, str]:
    """Lesson and section, and the source (Markdown); each may be empty.

    What a source says of the card's own lesson is not told twice.
    """
    if card.lesson is None:
        return card.section, card.source
    lesson = f"Lesson {card.lesson:02}"
    place = f"{lesson}, {card.section}" if card.section else lesson
    source = card.source.removeprefix("Course, ")
    if not source.lower().startswith(lesson.lower()):
        return place, card.source
    first, _, more = source.partition(";")
    return max(place, lesson + first[len(lesson):], key=len), more.strip()
