"""A learner's folder of notes: all of it is read, nothing of it is written, nothing in it raises."""

import os

import pytest

from disttutor.cards.notes import folder as notes_folder
from disttutor.cards.notes.folder import read_folder


@pytest.fixture
def folder(tmp_path):
    def of(**notes):
        for name, text in notes.items():
            file = tmp_path / f"{name.replace('__', '/')}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path

    return of


def questions(cards):
    return [card.face("en").question for card in cards]


def test_notes_are_read_in_the_order_of_their_names_with_those_below(folder):
    path = folder(b="#flashcards\nQ2 :: A", a="#flashcards\nQ1 :: A", c__d="#flashcards\nQ3 :: A ^x",
                  **{".trash__old": "#flashcards\nQ4 :: A"})
    (path / "picture.png").write_bytes(b"\x89PNG")
    cards, diagnostics = read_folder(path)
    assert questions(cards) == ["Q1", "Q2", "Q3"] and diagnostics == {}
    assert questions(read_folder(path / "a.md").cards) == ["Q1"]


def test_nothing_is_written(folder):
    path = folder(a="#flashcards\nQ :: A", b="Q :: A")
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.iterdir()}
    read_folder(path)
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.iterdir()} == before


def test_a_card_in_two_notes_is_one_card_and_a_warning(folder):
    path = folder(a="#flashcards/x\nQ :: A", b="#flashcards/x\n\nQ  ::  A", c="#flashcards/y\nQ :: A")
    cards, diagnostics = read_folder(path)
    assert [(card.deck, card.face("en").question) for card in cards] == [("flashcards/x", "Q"), ("flashcards/y", "Q")]
    assert {name: [(one.line, one.kind) for one in found] for name, found in diagnostics.items()} == {
        "b.md": [(3, "duplicate")]}
    assert "a.md" in diagnostics["b.md"][0].reason


def test_ids_stay_unique_and_the_same_whatever_else_lies_there(folder):
    def ids(path):
        return {card.face("en").answer: card.id for card in read_folder(path).cards}

    first = ids(folder(a="#flashcards\nQ :: A\nR :: B ^x", b="#flashcards\nQ :: C\nS :: D ^x"))
    assert len(set(first.values())) == 4 and first["B"] == "^x"
    assert ids(folder(c="#flashcards\nT :: E")) == first | {"E": ids(folder())["E"]}


def test_what_cannot_be_read_is_a_diagnostic(folder, monkeypatch):
    path = folder(bad=b"\xff\xff", good="#flashcards\nQ :: A", large=b"x" * 3_000_000)
    os.mkfifo(path / "pipe.md")
    (path / "gone.md").symlink_to(path / "nowhere")
    (path / "loop").symlink_to(path)
    cards, diagnostics = read_folder(path)
    assert questions(cards) == ["Q"]
    assert {name: found[0].kind for name, found in diagnostics.items()} == {
        "bad.md": "unreadable", "large.md": "too large", "pipe.md": "unreadable", "gone.md": "unreadable"}
    assert all(found[0].lost for found in diagnostics.values())
    monkeypatch.setattr(notes_folder, "MOST_FILES", 1)
    assert "more than 1 notes" in read_folder(path).diagnostics["."][0].reason


def test_links_to_folders_outside_are_followed_and_no_link_leads_round(tmp_path):
    vault, outside = tmp_path / "vault", tmp_path / "outside"
    (vault / "below").mkdir(parents=True)
    (outside / "deep").mkdir(parents=True)
    (vault / "below" / "a.md").write_text("#flashcards\nQ1 :: A")
    (outside / "deep" / "b.md").write_text("#flashcards\nQ2 :: A")
    targets = {"up": tmp_path, "again": vault / "below", "linked": outside, "twice": outside / "deep"}
    for link, target in targets.items():
        (vault / link).symlink_to(target)
    (outside / "round").symlink_to(vault)
    cards, diagnostics = read_folder(vault)
    assert (questions(cards), diagnostics) == (["Q1", "Q2"], {})


def test_a_folder_below_that_may_not_be_read_is_named(folder, monkeypatch):
    path, scandir = folder(a="#flashcards\nQ :: A", locked__b="#flashcards\nR :: A"), os.scandir

    def refusing(place):
        if os.path.basename(place) == "locked":
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refusing)
    cards, diagnostics = read_folder(path)
    assert questions(cards) == ["Q"] and "Permission denied" in diagnostics["locked"][0].reason


def test_no_folder(tmp_path):
    cards, diagnostics = read_folder(tmp_path / "missing")
    assert cards == [] and diagnostics["missing"][0].reason == "there is no such file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(folder):
    path = folder(a="#flashcards\nQ :: A")
    path.chmod(0)
    try:
        assert "cannot be read" in read_folder(path).diagnostics["."][0].reason
    finally:
        path.chmod(0o700)
