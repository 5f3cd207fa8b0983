"""The concept map as a widget and the map with gaps, without a browser."""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from disttutor.cards import our_cards
from disttutor.cards.concepts import BY_ID, CONCEPTS, EDGES
from disttutor.cards.progress import Progress
from disttutor.cards.progress.scheduling import Rating
from disttutor.labs.concept_gaps import gaps
from disttutor.labs.concept_map import ConceptMap, concept_map, fill_in
from disttutor.labs.fill_in import FillIn

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture
def progress(tmp_path):
    return Progress(tmp_path, clock=lambda: datetime(2026, 3, 18, 12, tzinfo=UTC))


@pytest.fixture
def card():
    """A card on one concept at least."""
    return next(card for card in our_cards() if card.concepts and card.kind == "basic")


def test_the_cards_of_the_course_name_concepts_of_the_map():
    named = Counter(concept for card in our_cards() for concept in card.concepts)
    assert set(named) <= set(BY_ID)


def test_the_map_follows_the_progress_when_it_is_looked_at_again(progress, card):
    shown = ConceptMap(NOTEBOOKS, progress)
    id = card.concepts[0]
    assert {detail["state"] for detail in shown.concepts.values()} == {"new"} and shown.seen == 1
    before = shown.svg
    progress.answer(card, Rating.REMEMBERED)
    assert shown.svg == before
    shown._answer(None, {"ask": "look again"}, None)
    assert shown.svg != before and shown.seen == 2
    assert shown.concepts[id]["state"] == "being learnt"
    assert "1 being learnt" in shown.concepts[id]["cards"]


def test_each_concept_has_its_sentences_and_its_lesson(progress):
    shown = ConceptMap(NOTEBOOKS, progress)
    assert shown.concepts["all-reduce"]["file"] == "02_how_ranks_talk.ipynb"
    assert shown.concepts["all-reduce"]["where"] == "lesson 02, How ranks talk"
    assert sum(len(detail["lines"]) for detail in shown.concepts.values()) == 2 * len(EDGES)
    elsewhere = ConceptMap(NOTEBOOKS / "nowhere", progress)
    assert elsewhere.concepts["all-reduce"]["file"] == ""
    assert elsewhere.concepts["all-reduce"]["where"] == "lesson 02, How ranks talk (to come)"
    json.dumps(shown.concepts)                                  # it travels to the browser


def test_what_a_notebook_keeps_is_readable_and_nobodys(progress, card):
    shown = ConceptMap(NOTEBOOKS, progress)
    bundle, _ = shown._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} == set(bundle)
    assert bundle["text/plain"] == "Concept map: 39 concepts and 39 new."
    html = bundle["text/html"]
    assert 'src="data:image/svg+xml;base64,' in html
    for concept in CONCEPTS:
        assert f"<b>{concept.en}</b>" in html
    assert "href='02_how_ranks_talk.ipynb#Question'" in html
    progress.answer(card, Rating.EASY)
    shown.look_again()
    assert shown._repr_mimebundle_()[0]["text/html"] == html


def test_the_browsers_code_is_one_module():
    for kind in (ConceptMap, FillIn):
        code = kind._esm if isinstance(kind._esm, str) else str(kind._esm)
        assert code.count("export default { render }") == 1 and "function openLesson(" in code
        names = re.findall(r"^(?:function|const) (\w+)", code, re.MULTILINE)
        assert len(names) == len(set(names))


@pytest.mark.parametrize("number", range(1, 30))
def test_each_gap_can_be_told_from_what_is_left(number):
    asked = gaps(number)
    assert len(asked.names) == 8 and len(asked.lines) == 4 and len(asked.gaps) == 12
    for edge in EDGES:
        ends = {edge.start, edge.end} & set(asked.names)
        assert len(ends) <= 1                                   # of a hidden concept all neighbours are seen
        assert not (ends and (edge.start, edge.end) in asked.lines)
    for gap in asked.gaps:
        assert gap.answer in gap.words and gap.words.count(gap.answer) == 1
        if gap.mark.startswith("gap"):
            others = [concept.en for concept in CONCEPTS if concept.en != gap.answer]
            assert gap.answer not in re.sub("|".join(map(re.escape, others)), "", gap.ask)
            assert gap.answer.lower() not in gap.hint.lower()


def test_the_same_number_gives_the_same_gaps():
    assert gaps(3) == gaps(3) and gaps(3) != gaps(4)
    assert gaps(3).puzzle == "concept-map-3"
    assert list(gaps(1, names=0, lines=2).lines.values()) == ["A", "B"]


@pytest.mark.parametrize("names, lines, why", [
    (0, 0, "0 names and 0 lines make no map with gaps"), (-1, 3, "-1 names"), (39, 0, "can be hidden in this map"),
    (0, 400, f"there are {len(EDGES)} lines to ask about, not 400")])
def test_a_map_has_room_for_so_many_gaps(names, lines, why):
    with pytest.raises(ValueError, match=why):
        gaps(1, names=names, lines=lines)


def answers(asked):
    return {gap.mark: gap.answer for gap in asked.gaps}


def test_checking_says_what_is_right_and_why(progress):
    map_ = FillIn(1, names=3, lines=2, folder=NOTEBOOKS, progress=progress)
    asked = gaps(1, names=3, lines=2)
    right = answers(asked)
    wrong = next(word for word in asked.gaps[1].words if word != right["gap 2"])
    map_._answer(None, {"ask": "check", "given": {"gap 1": right["gap 1"], "gap 2": wrong}}, None)
    states = {mark: result["state"] for mark, result in map_.results.items()}
    assert states == {"gap 1": "right", "gap 2": "wrong", "gap 3": "empty", "(A)": "empty", "(B)": "empty"}
    assert map_.said == "1 of 5 are right. 3 are still empty."
    id = next(id for id, number in asked.names.items() if number == 1)
    assert map_.results["gap 1"]["en"] == [e.meaning["en"] for e in EDGES if id in (e.start, e.end)]
    assert map_.results["gap 2"]["words"].startswith(f"Not “{wrong}”. Look for: ")
    assert right["gap 2"] not in map_.results["gap 2"]["words"]
    assert [result["given"] for result in map_.results.values()] == [right["gap 1"], wrong, "", "", ""]
    assert ">gap 1<" not in map_.svg and ">gap 2<" in map_.svg and ">(A)<" in map_.svg
    assert progress.puzzles == set()


def test_when_all_are_right_the_puzzle_is_solved(progress):
    map_ = FillIn(2, names=3, lines=2, folder=NOTEBOOKS, progress=progress)
    map_.check(answers(gaps(2, names=3, lines=2)))
    assert map_.said == "All 5 are right: map 2 is solved." and progress.puzzles == {"concept-map-2"}
    assert not re.search(r">gap \d<|>\([A-Z]\)<", map_.svg)


def test_who_looks_at_the_answers_has_not_solved_it(progress):
    map_ = FillIn(1, names=2, lines=1, folder=NOTEBOOKS, progress=progress)
    map_._answer(None, {"ask": "show"}, None)
    assert {result["state"] for result in map_.results.values()} == {"right"}
    map_.check(answers(gaps(1, names=2, lines=1)))
    assert progress.puzzles == set() and map_.said.startswith("These are the answers.")
    map_.check({**answers(gaps(1, names=2, lines=1)), "gap 1": ""})
    assert map_.said == "2 of 3 are right. 1 is still empty."
    map_._answer(None, {"ask": "another"}, None)
    assert map_.number == 2 and map_.results == {} and map_.said == ""
    map_.check(answers(gaps(2, names=2, lines=1)))
    assert progress.puzzles == {"concept-map-2"}


def test_the_gaps_can_be_read_without_a_kernel():
    map_ = fill_in(1, names=3, lines=2)
    bundle, _ = map_._repr_mimebundle_()
    asked = gaps(1, names=3, lines=2)
    assert bundle["text/plain"].splitlines()[1:] == [f"{gap.mark}: {gap.ask}" for gap in asked.gaps]
    questions, folded = bundle["text/html"].split("<details>")
    assert all(gap.mark in questions and gap.answer in folded for gap in asked.gaps)
    assert "Words: " in questions and isinstance(concept_map(), ConceptMap)
