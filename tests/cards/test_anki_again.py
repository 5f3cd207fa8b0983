"""What is exported to Anki again: nothing twice, nothing forgotten, ids for ever; and what is refused."""

import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from anki.collection import (
    ImportCsvRequest,
)
from anki_cards import ALL, BASIC, MONDAY, NOTE, NUMBER, both, shown, words

from disttutor.cards import DeckError, our_cards
from disttutor.cards.anki import package as anki


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
