"""Cards of every kind for Anki, and what Anki shows of them."""

import random
import re

from anki.collection import Collection

from disttutor.cards import Card, Drawn, Face, Option

MONDAY = 1_800_000_000.0


def draw(drawn: random.Random) -> Drawn:
    ranks = drawn.randint(2, 99)
    return Drawn({"en": Face(f"Steps of a ring of {ranks}?", f"$2({ranks}-1) = {2 * (ranks - 1)}$"),
                  "hi-Latn": Face(f"{ranks} ranks ki ring mein kitne steps?", f"{2 * (ranks - 1)}")}, 2 * (ranks - 1))


def both(question: str, answer: str, **more) -> dict[str, Face]:
    hinglish = Face(f"Hinglish: {question}", f"Hinglish: {answer}", **more)
    return {"en": Face(question, answer, **more), "hi-Latn": hinglish}


COURSE = "disttutor/03-data-parallelism"
BASIC = Card(id="dp-copied", deck=COURSE, faces=both("What is copied?", "The model."), lesson=3, section="Why",
             source="Li 2020, section 3", concepts=("data-parallelism", "all-reduce"), family="sync-async")
CHOICE = Card(id="dp-choice", deck=COURSE, kind="choice", faces=both("Which?", "It adds up.", options=(
    Option("all-reduce", right=True), Option("broadcast", why="It only copies."), Option("gather", why="One has it."))))
CLOZE = Card(id="dp-cloze", deck=COURSE, kind="cloze",
             faces=both("[...] `}}` leaves the sum.", "All-reduce `}}` leaves the sum.", missing="All-reduce"))
ORDER = Card(id="dp-order", deck=COURSE, kind="order",
             faces=both("In which order?", "So.", steps=("forward", "backward", "update")))
NUMBER = Card(id="ring-steps", deck="disttutor/02-how-ranks-talk", kind="number", draw=draw, lesson=2)
NOTE = Card(id="0f3a9c", deck="flashcards/ai-ml", faces={"hi": Face("नमस्ते `{{Front}}` <rank>?", "दुनिया 🎉")},
            also=("flashcards/more decks",))
ALL = [BASIC, CHOICE, CLOZE, ORDER, NUMBER, NOTE]


def shown(collection: Collection, id: str) -> list[tuple[str, str]]:
    """The questions and answers that Anki draws for the notes of one card, without style."""
    found = []
    for note_id in collection.find_notes(f"Id:{id}"):
        (card,) = collection.get_note(note_id).cards()
        output = card.render_output()
        found.append((output.question_text, output.answer_text))
    return found


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())
