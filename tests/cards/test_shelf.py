"""All cards of a learner: those of the course, and of several folders of notes."""

import pytest

from disttutor.cards.card import Card, Face
from disttutor.cards.notes.writing import as_markdown
from disttutor.cards.progress import Progress
from disttutor.cards.shelf import every_card

OURS = (Card(id="ring-bytes", deck="disttutor/03-rings", faces={
    "en": Face("What does a ring send?", "Nearly twice the data."),
    "hi-Latn": Face("Ring kitna bhejta hai?", "Data ka lagbhag do guna.")}),)


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Writes notes, given by their paths, and reads the folders of the first parts of these."""
    monkeypatch.setattr("disttutor.cards.shelf.our_cards", lambda: OURS)

    def read(**notes):
        for name, text in notes.items():
            file = tmp_path / f"{name.replace('__', '/')}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        progress = Progress(tmp_path / "home")
        folders = dict.fromkeys(str(tmp_path / name.split("__")[0]) for name in notes)
        progress.set("notes_folders", [*folders, *progress.setting("notes_folders")])
        cards, remarks = every_card(progress)
        assert len({card.id for card in cards}) == len(cards) and remarks == []
        return [next(iter(card.faces.values())).answer for card in cards[len(OURS):]]

    return read


def test_two_folders_with_the_same_ids_lose_no_card(read):
    assert read(a__x="#flashcards\nQ1 :: A1 ^one\nSame? :: 1", b__x="#flashcards\nQ2 :: A2 ^one\nSame? :: 2") == [
        "A1", "1", "A2", "2"]


def test_a_folder_inside_another_one_gives_nothing_twice(read, tmp_path):
    inside = "#flashcards\nSame? :: 1", "#flashcards\nSame? :: 2"
    assert read(a__b__x=inside[0], a__b__y=inside[1]) == ["1", "2"]
    (tmp_path / "b").symlink_to(tmp_path / "a" / "b")
    assert read(b__x=inside[0]) == ["1", "2"]


@pytest.mark.parametrize("language", ["en", "hi-Latn"])
def test_the_course_written_to_a_note_is_not_asked_twice(read, language):
    assert read(a__course=as_markdown(OURS, language)) == []


def test_a_question_of_the_course_in_another_deck_is_the_learners_own(read):
    assert read(a__x="#flashcards/mine\nWhat does a ring send? :: Much.") == ["Much."]
