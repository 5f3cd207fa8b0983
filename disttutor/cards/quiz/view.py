"""What the quiz shows at a moment, as plain data for the browser. All texts of cards are HTML made by `rendering`.

The answer, and what is right and wrong about it, is in the data only once it may be seen.
"""

import re
from pathlib import Path
from typing import Any

from disttutor.cards.card import ENGLISH, HINGLISH, Card, Face
from disttutor.cards.origin import origin
from disttutor.cards.progress.reviews import CONFIDENCES
from disttutor.cards.progress.scheduling import Rating
from disttutor.cards.rendering import html
from disttutor.cards.sitting.review import TYPED, Phase, Review
from disttutor.cards.sitting.summary import put_off

LANGUAGES = {ENGLISH: "English", HINGLISH: "Hinglish", "hi": "हिन्दी"}
WORDS = {Rating.FORGOT: "Forgot", Rating.HARD: "Hard", Rating.REMEMBERED: "Remembered", Rating.EASY: "Easy"}


def view(review: Review, lesson: int | None = None) -> dict[str, Any]:
    """Everything about the sitting: where it stands, the card, and what can be done now. lesson: where the quiz is."""
    shown = {"phase": review.phase.value, "finished": review.finished, "total": review.total,
             "undo": bool(review.answered) or review.phase == Phase.SURE}
    return shown if review.phase == Phase.DONE else {**shown, **_card(review, lesson)}


def lesson_file(number: int | None, folder: Path) -> str:
    """The name of a lesson's notebook in the folder, or "" where it is not there."""
    names = [] if number is None else sorted(path.name for path in folder.glob(f"{number:02d}_*.ipynb"))
    return next((name for name in names if re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", name)), "")     # no copy of it


def _card(review: Review, lesson: int | None) -> dict[str, Any]:
    asked, face, shown = review.asked, review.face, review.phase == Phase.SHOWN
    language = asked.language(review.language)
    return {
        "kind": asked.card.kind,
        "card": f"{asked.card.id} {asked.seed}",
        "language": language,
        "languages": [[tag, LANGUAGES.get(tag, tag)] for tag in asked.faces],
        "question": html(face.question),
        "unit": asked.drawn.unit if asked.drawn else "",
        "typed": asked.card.kind in TYPED,
        "options": _options(review, face, shown),
        "steps": [[place, html(face.steps[place])] for place in asked.places] if asked.card.kind == "order" else [],
        "given": review.given,
        "confidences": list(CONFIDENCES) if review.asks_confidence else [],
        **(_answer(review, face) | _source(asked.card, lesson) if shown else {}),
    }


def _options(review: Review, face: Face, shown: bool) -> list[dict[str, Any]]:
    if review.asked.card.kind != "choice":
        return []
    options = [(place, face.options[place]) for place in review.asked.places]
    return [{"place": place, "text": html(option.text),
             **({"right": option.right, "why": html(option.why)} if shown else {})} for place, option in options]


def _answer(review: Review, face: Face) -> dict[str, Any]:
    verdict, intervals = review.verdict, review.intervals
    return {
        "answer": html(face.answer),
        "order": [html(step) for step in face.steps],
        "verdict": None if verdict is None else {"right": verdict.right, "words": html(verdict.feedback)},
        "confidence": review.confidence,
        "ratings": [[int(rating), WORDS[rating], put_off(rating, intervals[rating])] for rating in review.ratings],
        "suggested": review.suggested and put_off(review.suggested, intervals[review.suggested]),
        "overrule": review.may_overrule,
    }


def _source(card: Card, here: int | None) -> dict[str, Any]:
    place, source = origin(card)
    file = lesson_file(card.lesson, Path.cwd())
    return {"source": html(source), "place": place, "lesson": file, "section": card.section if file else "",
            "to_come": not file and card.lesson not in (None, here)}
