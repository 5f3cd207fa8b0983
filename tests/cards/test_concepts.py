"""The concepts of the course: which there are, that all that is said of them is there, and what is not taken."""

import json
import re
from pathlib import Path

import pytest

from disttutor.cards import ENGLISH, HINGLISH
from disttutor.cards.concepts import BY_ID, CONCEPTS, EDGES, GROUPS, ConceptError, concept, neighbours, read_concepts

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

OWN = """distributed-training computation memory data data-parallelism model-parallelism tensor-parallelism
    pipeline-parallelism micro-batches bubble hybrid-parallelism mesh zero activation-checkpointing long-sequences
    experts collectives all-reduce ring-all-reduce interconnect overlap communication-overhead speedup efficiency
    scaling-wall
    gradient-accumulation batch-size synchronous asynchronous choosing fault-tolerance frameworks reproducibility"""
CONNECTIONS = {"neural-network-basics", "batch-normalization", "optimizers", "transformers", "gpu-acceleration",
               "training-at-scale"}

GOOD = """
[groups]
one = "One"

[[concept]]
id = "a"
en = ["A", "The first letter."]
hi = ["pehla", "Pehla letter."]
lesson = 1
section = "Why"
group = "one"
place = [0, 0]

[[concept]]
id = "b"
en = ["B", "The second letter."]
hi = ["doosra", "Doosra letter."]
lesson = 2
section = "Why"
group = "one"
place = [1, 0]

[[edge]]
between = ["a", "b"]
label = "before"
en = "A comes before B."
hi = "A B se pehle aata hai."
"""


def test_the_concepts_are_those_of_the_note_and_its_six_connections():
    assert set(BY_ID) == set(OWN.split()) | CONNECTIONS and len(CONCEPTS) == 39
    assert {c.id for c in CONCEPTS if c.group == "neighbours"} == CONNECTIONS
    assert set(GROUPS) == {c.group for c in CONCEPTS}


def test_all_hang_together():
    """From distributed training one comes to every concept along the lines."""
    reached, new = set(), {"distributed-training"}
    while new:
        reached |= new
        new = {end for id in new for edge in neighbours(id) for end in (edge.start, edge.end)} - reached
    assert reached == set(BY_ID)


def test_each_is_told_in_both_languages_and_no_name_is_told_twice():
    assert len({c.en for c in CONCEPTS}) == len({c.hi for c in CONCEPTS}) == 39
    for thing in [*CONCEPTS, *EDGES]:
        english, hinglish = thing.meaning[ENGLISH], thing.meaning[HINGLISH]
        assert english.endswith(".") and hinglish.endswith(".") and english != hinglish
        assert hinglish.isascii() and len(english) < 160


def test_a_meaning_does_not_give_its_name_away():
    """It is the hint in the map with gaps."""
    for c in CONCEPTS:
        assert c.en.lower() not in c.meaning[ENGLISH].lower()


def test_hinglish_is_spelt_as_in_all_of_the_course():
    odd = re.compile(r"\b(nahi|nai|hei|mai|kyu|kyonki|jyada|pahle|woh|yeh|toh|sath|zyaada|pura)\b", re.IGNORECASE)
    texts = [c.hi for c in CONCEPTS] + [thing.meaning[HINGLISH] for thing in [*CONCEPTS, *EDGES]]
    assert [text for text in texts if odd.search(text)] == []


def test_a_section_is_a_heading_of_its_lesson():
    arc = {"Question", "Guess first", "Run it", "Look", "Why", "Break it", "Scale it", "Puzzles", "Recall", "Next"}
    for c in CONCEPTS:
        found = list(NOTEBOOKS.glob(f"{c.lesson:02d}_*.ipynb"))
        cells = json.loads(found[0].read_text())["cells"] if found else []
        text = "".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "markdown")
        headings = set(re.findall(r"^#+ (.*)$", text, re.MULTILINE)) if found else arc
        assert c.section in headings, c.id


def test_they_are_read_as_they_are_written():
    read = read_concepts(GOOD)
    assert [(c.id, c.en, c.hi, c.lesson, c.place) for c in read.concepts] == [("a", "A", "pehla", 1, (0, 0)),
                                                                             ("b", "B", "doosra", 2, (1, 0))]
    (edge,) = read.edges
    assert (edge.start, edge.end, edge.label) == ("a", "b", "before")
    assert edge.meaning == {"en": "A comes before B.", "hi-Latn": "A B se pehle aata hai."}


@pytest.mark.parametrize("old, new, why", [
    ("[groups]", "[groups", "is not TOML"),
    ('one = "One"', 'two = "Two"', r"concept 1 \(a\): unknown group 'one'; there are two"),
    ('id = "b"', 'id = "B!"', "concept 2: its id 'B!' must be small letters"),
    ('id = "b"', 'id = "a"', "two concepts have the id 'a'"),
    ("place = [1, 0]", "place = [0, 0]", r"two concepts have the place \(0, 0\)"),
    ("place = [1, 0]", "place = [1, -1]", r"concept 2 \(b\): place must be \[column, row\].*\[1, -1\]"),
    ("place = [1, 0]", "", r"concept 2 \(b\): place must be"),
    ("lesson = 2", "lesson = 17", r"concept 2 \(b\): lesson 17 is none of 0 to 16"),
    ('section = "Why"\n', "", r"concept 1 \(a\): it has no text in section"),
    ('en = ["B", "The second letter."]', 'en = ["B"]', r"concept 2 \(b\): en must be two texts"),
    ("lesson = 1", "lesson = 1\ncolour = 3", "concept 1: unknown colour; what can stand here: en, group"),
    ('["a", "b"]', '["a", "c"]', "edge 1: there is no concept 'c'"),
    ('["a", "b"]', '["a", "a"]', "edge 1: between must be two different concepts"),
    ('label = "before"', 'label = ""', r"edge 1 \(a - b\): it has no text in label"),
    (GOOD[GOOD.index("[[edge]]"):], "", "no edge joins a, b to the others"),
    (GOOD[GOOD.index("[[edge]]"):], GOOD[GOOD.index("[[edge]]"):] * 2, r"two edges join \('a', 'b'\)"),
])
def test_what_cannot_be_read_is_named(old, new, why):
    assert old in GOOD
    with pytest.raises(ConceptError, match=why):
        read_concepts(GOOD.replace(old, new))


def test_an_unknown_concept_is_answered_with_the_known_ones():
    assert concept("zero").en == "ZeRO (FSDP)"
    with pytest.raises(ConceptError, match="there is no concept 'one'; there are distributed-training"):
        concept("one")
