"""The concepts of the course as a drawing and as a list with links: what the map and the map with gaps share."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from disttutor.cards import ENGLISH, HINGLISH, our_cards
from disttutor.cards.concepts import CONCEPTS, EDGES, GROUPS, Concept, neighbours
from disttutor.cards.knowledge import Knowledge, knowledge
from disttutor.cards.progress import Progress
from disttutor.labs.course import LESSONS

OUTSIDE = "neighbours"                      # the group of topics beside the course, which is not drawn as one
NOTHING: Mapping[str, Knowledge] = {concept.id: Knowledge() for concept in CONCEPTS}


def known_by(progress: Progress) -> dict[str, Knowledge]:
    """What the learner knows of each concept now."""
    cards = our_cards()
    return knowledge(NOTHING, cards, progress.states, progress.today, {card.id for card in progress.due(cards)})


def lesson_file(concept: Concept, folder: Path) -> str:
    """The name of the notebook that explains the concept, or "" while it is to come."""
    file = LESSONS[concept.lesson].file(folder)
    return file.name if file else ""


def draw(known: Mapping[str, Knowledge] | None, folder: Path, *, gaps: Mapping[str, int] | None = None,
         asked: Mapping[tuple[str, str], str] | None = None, title: str = "Concept map") -> Any:
    """The map as an Svg. known: None where it does not matter what is known. gaps: numbers of the concepts whose names
    are to be found; asked: letters of the lines (from, to) whose words are."""
    from disttutor.figures.concept_map import Join, Node, concept_map

    gaps, asked = gaps or {}, asked or {}
    nodes = [Node(c.id, c.en, c.group, c.place, known[c.id].state if known else "", known[c.id].share if known else 0,
                  to_come=not lesson_file(c, folder), gap=gaps.get(c.id, 0)) for c in CONCEPTS]
    joins = [Join(e.start, e.end, e.label, asked.get((e.start, e.end), "")) for e in EDGES]
    return concept_map(nodes, joins, {key: name for key, name in GROUPS.items() if key != OUTSIDE}, title=title)


def where(concept: Concept, folder: Path) -> str:
    """In which lesson the concept is explained, in words."""
    lesson = f"lesson {concept.lesson:02d}, {LESSONS[concept.lesson].title}"
    return lesson if lesson_file(concept, folder) else f"{lesson} (to come)"


def state_words(known: Knowledge) -> str:
    """How much of a concept is known, as a sentence."""
    if not known.cards:
        return "No card asks about it yet."
    new = known.cards - known.known - known.learning
    counts = [f"{count} {word}" for count, word in
              ((known.known, "known"), (known.learning, "being learnt"), (new, "new")) if count]
    due = "" if not known.due else " 1 is due now." if known.due == 1 else f" {known.due} are due now."
    return f"{known.cards} card{'s' * (known.cards > 1)}: {', '.join(counts)}.{due}"


def details(known: Mapping[str, Knowledge], folder: Path) -> dict[str, dict[str, Any]]:
    """What the map says of each concept where one points at it, by its id."""
    from disttutor.figures.concept_map import STATES

    return {concept.id: {
        "name": concept.en, "hinglish": concept.hi, "en": concept.meaning[ENGLISH], "hi": concept.meaning[HINGLISH],
        "state": STATES[known[concept.id].state][0], "cards": state_words(known[concept.id]),
        "where": where(concept, folder), "file": lesson_file(concept, folder), "section": concept.section,
        "lines": [edge.meaning[ENGLISH] for edge in neighbours(concept.id)],
    } for concept in CONCEPTS}


def listed(folder: Path) -> str:
    """The concepts as an HTML list by groups, each with its sentence and a link to its lesson."""
    def rows(group: str) -> str:
        return "".join(_row(concept, folder) for concept in CONCEPTS if concept.group == group)

    return "".join(f"<p><b>{escape(name)}</b></p><ul>{rows(group)}</ul>" for group, name in GROUPS.items())


def _row(concept: Concept, folder: Path) -> str:
    file, place = lesson_file(concept, folder), escape(where(concept, folder))
    if file:
        place = f"<a href='{escape(file)}#{escape(concept.section.replace(' ', '-'))}'>{place}</a>"
    return (f"<li><b>{escape(concept.en)}</b>: {escape(concept.meaning[ENGLISH])} "
            f"<i lang='{HINGLISH}'>{escape(concept.hi)}.</i> Explained in {place}.</li>")
