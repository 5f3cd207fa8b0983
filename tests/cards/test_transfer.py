"""Progress taken along: there and back, twice, damaged, and begun anew."""

import json
import os
import stat

import pytest

from disttutor.cards.progress import Progress
from disttutor.cards.progress.scheduling import Rating
from disttutor.cards.progress.transfer import TransferError, export, reset, take_in
from tests.cards.kernels import card


@pytest.fixture
def progress(tmp_path):
    made = Progress(tmp_path / "home")
    made.answer(card("a"), Rating.EASY, given="naïve ≠ \ud800")
    made.answer(card("b"), Rating.FORGOT)
    made.undo()
    made.solved("ring")
    made.set("buttons", 4)
    return made


def test_all_of_it_arrives_on_another_computer(progress, tmp_path):
    strange = {"id": "s", "type": "dance", "schema": 7, "time": "2026-01-31T12:00:00Z", "steps": [1, {"x": None}]}
    (progress.folder / "strange.jsonl").write_text(json.dumps(strange))
    assert export(progress, tmp_path / "mine.json") == 6
    assert stat.S_IMODE((tmp_path / "mine.json").stat().st_mode) == 0o600
    other = Progress(tmp_path / "other")
    assert take_in(other, tmp_path / "mine.json") == 6
    for there in (other, Progress(tmp_path / "other")):
        assert dict(there.states) == dict(progress.states) and there.reviews == progress.reviews
        assert there.puzzles == {"ring"} and there.setting("buttons") == 4
        assert there.all_events() == progress.all_events() and strange in there.all_events()
    assert {stat.S_IMODE(path.stat().st_mode) for path in other.folder.iterdir()} == {0o600}


def test_a_second_time_changes_nothing_and_new_answers_are_added(progress, tmp_path):
    export(progress, tmp_path / "mine.json")
    assert take_in(progress, tmp_path / "mine.json") == 0
    other = Progress(tmp_path / "other")
    other.answer(card("c"), Rating.EASY)
    take_in(other, tmp_path / "mine.json")
    export(other, tmp_path / "mine.json")                    # over the first
    assert take_in(progress, str(tmp_path / "mine.json")) == 1
    assert set(progress.states) == {"a", "c"} and dict(progress.states) == dict(other.states)
    assert len(os.listdir(progress.folder)) == 2 and not list(tmp_path.glob(".*"))


def test_what_is_in_memory_only_is_exported_too(tmp_path):
    (tmp_path / "file").write_text("")
    progress = Progress(tmp_path / "file" / "home")
    progress.answer(card("a"), Rating.EASY)
    assert export(progress, tmp_path / "mine.json") == 1


GOOD = {"id": "x", "type": "puzzle", "schema": 1, "time": "2026-01-31T12:00:00Z", "day": "2026-01-31", "puzzle": "p"}


@pytest.mark.parametrize(("content", "words"), [
    (b"", "not JSON"), (b"\xff", "not JSON"), (b"[" * 10**5, "not JSON"), (b"[]", "no progress that disttutor"),
    (b'{"format": "apkg"}', "no progress that disttutor"),
    ({"format": "disttutor progress", "version": 2, "events": []}, "reads up to 1"),
    ({"format": "disttutor progress", "version": 1}, "no list of events"),
    ({"format": "disttutor progress", "version": 1, "events": [GOOD, 3]}, "event 2, it is not a JSON object"),
    ({"format": "disttutor progress", "version": 1, "events": [GOOD, {"id": "y"}]}, "event 2, it has no type"),
    ({"format": "disttutor progress", "version": 1, "events": [GOOD | {"time": "noon"}]}, "'noon' is no time"),
])
def test_a_damaged_file_says_why_and_changes_nothing(progress, tmp_path, content, words):
    path = tmp_path / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    before = sorted((file.name, file.read_bytes()) for file in progress.folder.iterdir())
    with pytest.raises(TransferError, match=words):
        take_in(progress, path)
    assert sorted((file.name, file.read_bytes()) for file in progress.folder.iterdir()) == before


def test_an_export_cut_anywhere_changes_nothing(progress, tmp_path):
    export(progress, tmp_path / "mine.json")
    data = (tmp_path / "mine.json").read_bytes()
    other = Progress(tmp_path / "other")
    for cut in range(0, len(data), 7):
        (tmp_path / "cut.json").write_bytes(data[:cut])
        with pytest.raises(TransferError):
            take_in(other, tmp_path / "cut.json")
    assert not other.folder.exists()


def test_a_place_that_cannot_be_written_leaves_what_was_there(progress, tmp_path, monkeypatch):
    path = tmp_path / "mine.json"
    export(progress, path)
    before = path.read_bytes()

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        export(progress, path)
    other = Progress(tmp_path / "other")
    with pytest.raises(OSError, match="No space"):
        take_in(other, path)
    assert path.read_bytes() == before and not other.states and os.listdir(other.folder) == []
    with pytest.raises(FileNotFoundError):
        take_in(other, tmp_path / "nowhere.json")


def test_a_fresh_start_deletes_nothing(progress, tmp_path):
    other, events = Progress(progress.home), progress.all_events()
    aside = reset(progress)
    assert not progress.states and not progress.puzzles and progress.setting("buttons") == 2 and not progress.undo()
    assert not Progress(progress.home).states
    other.refresh()
    assert not other.states
    other.answer(card("c"), Rating.EASY)                     # goes into the new folder
    progress.answer(card("d"), Rating.EASY)
    assert set(Progress(progress.home).states) == {"c", "d"}
    (tmp_path / "second").mkdir()
    aside.rename(tmp_path / "second" / "events")
    assert Progress(tmp_path / "second").all_events() == events


def test_a_fresh_start_where_nothing_was(tmp_path):
    assert reset(Progress(tmp_path / "none")) is None and not (tmp_path / "none").exists()


def test_another_computers_folders_of_notes_do_not_replace_those_here(tmp_path):
    there, here, fresh = (Progress(tmp_path / name) for name in ("there", "here", "fresh"))
    here.set("notes_folders", ["/home/me/vault"])
    there.set("notes_folders", ["C:/vault"])
    there.set("buttons", 4)
    export(there, tmp_path / "p.json")
    assert [take_in(here, tmp_path / "p.json") for _ in range(2)] == [1, 0]
    assert (here.setting("notes_folders"), here.setting("buttons")) == (["/home/me/vault"], 4)
    assert take_in(fresh, tmp_path / "p.json") == 2 and fresh.setting("notes_folders") == ["C:/vault"]
