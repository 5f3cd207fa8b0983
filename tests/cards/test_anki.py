"""Anki's own engine opens what is exported: nothing lost, nothing twice, nothing forgotten."""

import random
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from anki.collection import (
    Collection,
    ImportAnkiPackageOptions,
    ImportAnkiPackageRequest,
    ImportCsvRequest,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from disttutor.cards import Card, DeckError, Drawn, Face, Option, our_cards
from disttutor.cards.anki import package as anki

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


@pytest.fixture
def collection(tmp_path) -> Iterator[Collection]:
    opened = Collection(str(tmp_path / "collection.anki2"))
    yield opened
    assert opened.fix_integrity()[1]
    opened.close()


@pytest.fixture
def bring(collection, tmp_path):
    """`bring(cards, when)` exports and imports, and says how many notes were (new, updated, neither)."""
    def bring(cards, when=MONDAY):
        path = tmp_path / "cards.apkg"
        anki.export(cards, path, timestamp=when)
        request = ImportAnkiPackageRequest(package_path=str(path), options=ImportAnkiPackageOptions())
        log = collection.import_anki_package(request).log
        assert not (log.conflicting or log.missing_notetype or log.missing_deck or log.first_field_match)
        return len(log.new), len(log.updated), len(log.duplicate)
    return bring


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


def test_every_card_comes_with_both_faces(collection, bring):
    assert bring(ALL) == (9, 0, 0)                                      # four of them examples of the number card
    ((question, answer),) = shown(collection, "dp-copied")
    assert words(question) == "What is copied? Hinglish: What is copied?"
    assert words(answer) == (words(question) + " The model. Hinglish: The model. Lesson 03, Why Li 2020, section 3")
    assert '<div class="face" lang="en"><p>What is copied?' in question
    assert '<div class="face second" lang="hi-Latn"><p>Hinglish: What' in question


def test_decks_are_a_tree_and_the_rest_is_tags(collection, bring):
    bring(ALL)
    assert {deck.name for deck in collection.decks.all_names_and_ids()} == {
        "Default", "disttutor", "disttutor::02 How ranks talk", "disttutor::03 Data parallelism", "disttutor::ai-ml"}
    note = collection.get_note(collection.find_notes("Id:dp-copied")[0])
    assert sorted(note.tags) == ["disttutor::concept::all-reduce", "disttutor::concept::data-parallelism",
                                 "disttutor::family::sync-async", "disttutor::kind::basic", "disttutor::lesson::03"]
    note = collection.get_note(collection.find_notes("Id:0f3a9c")[0])
    assert sorted(note.tags) == ["disttutor::deck::more-decks", "disttutor::kind::basic"]


def test_a_choice_shows_options_and_then_reasons(collection, bring):
    bring([CHOICE])
    ((question, answer),) = shown(collection, "dp-choice")
    options = re.findall(r"<li>(.*?)</li>", question)
    assert sorted(options[:3]) == ["all-reduce", "broadcast", "gather"]
    assert options[:3] == options[3:]                                   # Hinglish in the same order
    back = answer.split('<hr id="answer">')[1]
    assert back.count('<span class="right">✓ all-reduce</span>') == 2
    assert back.count('✗ broadcast<br><span class="remark">It only copies.</span>') == 2
    assert "It adds up." in back


def test_the_right_option_does_not_stand_where_the_deck_has_it(collection, bring):
    """Decks tend to name the right option first; drawn from 40 ids, it stands everywhere."""
    bring([replace(CHOICE, id=f"choice-{n}") for n in range(40)])
    fronts = [shown(collection, f"choice-{n}")[0][0] for n in range(40)]
    places = [re.findall(r"<li>(.*?)</li>", front).index("all-reduce") for front in fronts]
    assert min(places.count(place) for place in (0, 1, 2)) >= 5


def test_steps_are_shuffled_and_then_in_order(collection, bring):
    bring([replace(ORDER, id=f"order-{n}") for n in range(12)])
    for n in range(12):
        ((question, answer),) = shown(collection, f"order-{n}")
        steps = re.findall(r"<li>(.*?)</li>", question)[:3]
        assert sorted(steps) == ["backward", "forward", "update"] and steps != ["forward", "backward", "update"]
        assert "<ol><li>forward</li><li>backward</li><li>update</li></ol>" in answer.split("<hr")[1]


def test_a_cloze_has_a_gap_and_braces_stay(collection, bring):
    bring([CLOZE])
    ((question, answer),) = shown(collection, "dp-cloze")
    assert re.search(r'<span class="gap"[^>]*>\[...]</span> <code>}}</code> leaves the sum.', question)
    assert "All-reduce" not in question
    assert '<span class="gap">All-reduce</span>' in answer
    assert "All-reduce <code>}}</code> leaves the sum." in answer


def test_a_number_card_is_worked_examples_that_stay_the_same(collection, bring):
    assert bring([NUMBER]) == (4, 0, 0)
    examples = shown(collection, "ring-steps")
    drawn = [int(re.search(r"ring of (\d+)", question)[1]) for question, _ in examples]
    assert len(set(drawn)) == 4
    for number, (ranks, (question, answer)) in enumerate(zip(drawn, examples, strict=True), 1):
        assert f"Worked example {number} of 4" in question and f"Example {number} / 4" in question
        assert rf"\(2({ranks}-1) = {2 * ranks - 2}\)" in answer
    assert bring([NUMBER], MONDAY + 60) == (0, 4, 0)
    assert shown(collection, "ring-steps") == examples


def test_of_few_possible_numbers_no_example_comes_twice(bring):
    def coin(drawn: random.Random) -> Drawn:
        return Drawn({"en": Face(f"{drawn.randint(1, 2)}?", "so")}, 1)

    assert bring([replace(NUMBER, draw=coin)]) == (2, 0, 0)


def test_a_learners_note_keeps_its_letters_and_its_language(collection, bring):
    bring([NOTE])
    ((question, answer),) = shown(collection, "0f3a9c")
    assert question.strip() == '<div class="face" lang="hi"><p>नमस्ते <code>{{Front}}</code> &lt;rank&gt;?</p></div>'
    assert "दुनिया 🎉" in answer


LETTERS = st.one_of(st.characters(codec="utf-8"), st.sampled_from("<>&{}[]$`*_#|\\\n\x1f\x00:;\"'!-"))
NASTY = st.text(LETTERS, max_size=40)


@settings(max_examples=12)
@given(texts=st.lists(st.tuples(NASTY, NASTY, NASTY), min_size=1, max_size=40))
def test_whatever_is_written_arrives_as_one_note_a_card(texts, tmp_path_factory):
    """A letter must not end a field, a tag of HTML not swallow the rest, a mark not run as an order."""
    cards = [Card(id=f"c{n}", deck=f"flashcards/{deck}", also=(deck,), faces={"en": Face(f"Q {front}", f"A {back} Z")})
             for n, (deck, front, back) in enumerate(texts)]
    folder = tmp_path_factory.mktemp("any")
    with warnings.catch_warnings():
        warnings.simplefilter("error")                  # genanki warns of what is no HTML
        anki.export(cards, folder / "x.apkg", timestamp=MONDAY)
    opened = Collection(str(folder / "collection.anki2"))
    request = ImportAnkiPackageRequest(package_path=str(folder / "x.apkg"), options=ImportAnkiPackageOptions())
    assert len(opened.import_anki_package(request).log.new) == opened.card_count() == len(cards)
    for card in cards:
        ((question, answer),) = shown(opened, card.id)
        assert words(question).startswith("Q")
        assert words(answer.split('<hr id="answer">')[1]).startswith("A")
    assert opened.fix_integrity()[1]
    opened.close()


def test_an_edited_back_arrives_and_adds_no_note(collection, bring):
    bring(ALL)
    (note,) = collection.find_notes("Id:dp-copied")
    card = collection.get_card(collection.get_note(note).card_ids()[0])
    card.start_timer()
    collection.sched.answerCard(card, 3)
    learnt = collection.get_card(card.id)
    edited = replace(BASIC, faces=both("What is copied?", "The whole model."))
    assert bring([edited, *ALL[1:]], MONDAY + 1) == (0, 9, 0)
    assert collection.note_count() == 9 and collection.card_count() == 9
    ((_, answer),) = shown(collection, "dp-copied")
    assert "The whole model." in answer and "Hinglish: The whole model." in answer
    again = collection.get_card(card.id)
    assert (again.reps, again.type, again.queue, again.due) == (1, learnt.type, learnt.queue, learnt.due)
    assert len(collection.card_stats_data(card.id).revlog) == 1


def test_a_style_that_the_learner_changed_in_anki_stays(collection, bring):
    bring([BASIC])
    note_type = collection.models.by_name("disttutor")
    note_type["css"] = ".card { font-size: 40px; }"
    collection.models.update_dict(note_type)
    assert bring([BASIC], MONDAY + 100) == (0, 1, 0)
    assert collection.models.by_name("disttutor")["css"] == ".card { font-size: 40px; }"


def test_an_edited_question_does_not_make_a_second_note(collection, bring):
    bring([BASIC])
    assert bring([replace(BASIC, faces=both("What does every rank copy?", "The model."))], MONDAY + 1) == (0, 1, 0)


def test_the_same_package_again_changes_nothing(bring):
    bring(ALL)
    assert bring(ALL) == (0, 0, 9)


def test_some_decks_first_and_all_of_them_later(collection, bring):
    assert bring([BASIC, NOTE]) == (2, 0, 0)
    assert bring(ALL, MONDAY + 1) == (7, 2, 0)
    assert collection.note_count() == 9
    assert bring([BASIC], MONDAY + 2) == (0, 1, 0)                      # what is not in it, stays
    assert collection.note_count() == 9


def test_a_card_that_moved_to_another_deck_is_no_second_card(collection, bring):
    bring([BASIC])
    assert bring([replace(BASIC, deck="disttutor/04-gradient-accumulation")], MONDAY + 1) == (0, 1, 0)
    assert collection.card_count() == 1


def test_decks_that_differ_only_in_case_are_one(collection, bring):
    """For Anki they are: a package with both could not be opened."""
    bring([replace(NOTE, id=f"n{i}", deck=deck) for i, deck in enumerate(("x/AI/one", "X/ai/two", "x/ai/ONE", "x"))])
    names = {deck.name for deck in collection.decks.all_names_and_ids()}
    assert names == {"Default", "disttutor", "disttutor::x", "disttutor::x::AI", "disttutor::x::AI::one",
                     "disttutor::x::AI::two"}
    assert collection.card_count() == 4


@pytest.mark.parametrize(("deck", "name"), [
    ("flashcards", "disttutor::flashcards"), ("a::b/c", "disttutor::a::b::c"), ('say "x"/', "disttutor::say x"),
    ("/".join("abcdefghijklmn"), "disttutor::a::b::c::d::e::f::g::h::i - j - k - l - m - n"),
    ("disttutor", "disttutor"), ("2024-notes", "disttutor::2024-notes"), ("", "disttutor")])
def test_odd_deck_names_are_made_ankis(collection, bring, deck, name):
    bring([replace(NOTE, deck=deck)])
    (card,) = collection.find_cards("")
    assert collection.decks.name(collection.get_card(card).did) == name


def test_the_same_cards_at_the_same_time_are_the_same_bytes(tmp_path):
    paths = [tmp_path / "one.apkg", tmp_path / "two.apkg"]
    for path in paths:
        anki.export(ALL, path, timestamp=MONDAY)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert zipfile.ZipFile(paths[0]).namelist() == ["collection.anki2", "media"]


def test_by_default_it_is_dated_now(tmp_path, monkeypatch):
    monkeypatch.setattr(anki.time, "time", lambda: MONDAY)
    anki.export([BASIC], tmp_path / "now.apkg")
    anki.export([BASIC], tmp_path / "monday.apkg", timestamp=MONDAY)
    assert (tmp_path / "now.apkg").read_bytes() == (tmp_path / "monday.apkg").read_bytes()


# The first 8 bytes of SHA-256 of "disttutor__dp-copied" and "disttutor__ring-steps__example 1" to 4, in base 91.
GUIDS = ["yyHR~YL0x0", "Q5Yp-C,cMp", "Is%w$Bh4[V", "fUs?84-3?A", "u^0:Nq+9H1"]


def test_ids_are_those_of_packages_already_out(tmp_path):
    """Whoever has imported a package would get all cards a second time if one of these changed."""
    import sqlite3

    anki.export([BASIC, NUMBER], tmp_path / "x.apkg", timestamp=MONDAY)
    zipfile.ZipFile(tmp_path / "x.apkg").extract("collection.anki2", tmp_path)
    database = sqlite3.connect(tmp_path / "collection.anki2")
    notes = list(database.execute("select guid, mid from notes order by id"))
    database.close()
    assert notes[0] == (GUIDS[0], 1_764_892_713_405)
    assert [guid for guid, _ in notes[1:]] == GUIDS[1:]


def test_text_comes_with_the_same_ids(collection, bring, tmp_path):
    bring(ALL)
    path = tmp_path / "cards.tsv"

    def read(cards) -> tuple[int, int, int]:
        path.write_text(anki.tsv(cards), encoding="utf-8")
        request = ImportCsvRequest(path=str(path), metadata=collection.get_csv_metadata(str(path), None))
        log = collection.import_csv(request).log
        return len(log.new), len(log.updated), len(log.duplicate)

    assert read(ALL) == (0, 0, 9)
    edited = replace(BASIC, faces=both("What is copied?", 'The "whole"\tmodel:\n\n```\nweights\n\n# grads\n```'))
    more = [replace(NOTE, id=f"note-{n}") for n in range(200)]          # some of their guids begin with #
    assert read([edited, *ALL[1:], *more]) == (200, 1, 8)
    ((_, answer),) = shown(collection, "dp-copied")
    assert "<pre><code>weights\n\n# grads\n</code></pre>" in answer
    assert read([edited, *ALL[1:], *more]) == (0, 0, 209)
    (card,) = collection.find_cards("Id:note-7")
    assert collection.decks.name(collection.get_card(card).did) == "disttutor::ai-ml"


def test_text_without_the_note_type_still_has_front_and_back(collection, tmp_path):
    path = tmp_path / "cards.tsv"
    path.write_text(anki.tsv([BASIC]), encoding="utf-8")
    collection.import_csv(ImportCsvRequest(path=str(path), metadata=collection.get_csv_metadata(str(path), None)))
    (note,) = collection.find_notes("")
    assert collection.get_note(note).values() == ["<p>What is copied?</p>", "<p>The model.</p>"]


def test_all_of_the_course_comes_with_both_faces(collection, bring):
    cards = our_cards()
    new, updated, neither = bring(cards)
    assert (updated, neither) == (0, 0) and new == collection.card_count() == collection.note_count()
    for card in cards:
        notes = shown(collection, card.id)
        assert len(notes) >= 3 if card.kind == "number" else len(notes) == 1, card.id
        for question, answer in notes:
            asked = re.findall(r'<div class="face(?: second)?" lang="([^"]*)">', question)
            assert asked == ["en", "hi-Latn"], card.id
            told = re.split(r'<div class="face(?: second)?" lang="[^"]*">', answer.split('<hr id="answer">')[1])[1:]
            assert len(told) == 2 and all(words(part) for part in told), card.id


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'cards.zip' does not end in .apkg, .* call it 'cards.apkg'"):
        anki.export(ALL, tmp_path / "cards.zip")
    assert list(tmp_path.iterdir()) == []


def test_no_cards_and_two_with_one_id_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no card to export"):
        anki.export([], tmp_path / "x.apkg")
    with pytest.raises(DeckError, match="two cards have the id 'dp-copied'"):
        anki.export([BASIC, BASIC], tmp_path / "x.apkg")
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_package(tmp_path, monkeypatch):
    path = tmp_path / "cards.apkg"
    path.write_bytes(b"the old one")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        anki.export([BASIC], path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"cards.apkg": b"the old one"}


def test_nothing_is_left_among_temporary_files(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    anki.export(ALL, tmp_path / "x.apkg")
    assert list((tmp_path / "temporary").iterdir()) == []
