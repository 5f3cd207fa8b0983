"""Events on the disk, read whatever happened to their file."""

import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cards.progress.events import DamagedEvent, decode, encode, home_folder, make, order_of, plain
from disttutor.cards.progress.reader import Reader
from disttutor.cards.progress.writer import Writer

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def event(number: int) -> dict:
    return make("review", NOON + timedelta(minutes=number), date(2026, 1, 31), NOON, card=f"card-{number}", rating=3)


def ids(events) -> list[str]:
    return sorted(event["id"] for event in events)


def written(folder: Path, count: int) -> list[dict]:
    writer, made = Writer(folder), [event(number) for number in range(count)]
    for one in made:
        writer.append(one)
    writer.close()
    return made


def file_of(folder: Path) -> Path:
    return next(folder.iterdir())


def test_an_event_says_when_and_by_what_it_was_written():
    made = make("puzzle", NOON, date(2026, 1, 31), NOON - timedelta(hours=1), puzzle="p", nothing=None)
    assert {name: made[name] for name in ("type", "schema", "time", "day", "puzzle")} == {
        "type": "puzzle", "schema": 1, "time": "2026-01-31T12:00:00.000000+00:00", "day": "2026-01-31", "puzzle": "p"}
    assert set(made) == {"id", "type", "schema", "program", "time", "day", "puzzle"}
    assert decode(encode(made)) == made and encode(made).count(b"\n") == 1


def test_after_a_clock_was_set_back_the_order_is_written():
    made = make("puzzle", NOON - timedelta(days=1500), date(2021, 12, 24), NOON, puzzle="p")
    assert order_of(made) == NOON + timedelta(microseconds=1)
    assert made["time"] == "2021-12-23T12:00:00.000000+00:00"


@pytest.mark.parametrize("line", [
    b'{"id":"a","type":"review"', b"[]", b"3", b"\xff\xfe", b"nonsense", b"[" * 10**5,
    b'{"id":"a","type":"review","schema":1}', b'{"id":"","type":"review","schema":1,"time":"2026-01-31T12:00:00Z"}',
    b'{"id":"a","type":"review","schema":"1","time":"2026-01-31T12:00:00Z"}',
    b'{"id":"a","type":"review","schema":1,"time":"2026-01-31T12:00:00"}',
    b'{"id":"a","type":"review","schema":1,"time":"9999-12-31T23:59:59Z"}',
    b'{"id":"a","type":"review","schema":1,"time":3}',
])
def test_what_is_no_event_is_damaged(line):
    with pytest.raises(DamagedEvent):
        decode(line)


@given(st.binary(max_size=200))
def test_any_line_is_an_event_or_nothing_or_damaged(line):
    try:
        assert decode(line) is None
    except DamagedEvent as error:
        assert str(error)


@pytest.mark.parametrize(("given", "kept"), [
    ("7", "7"), (7, 7), (0.5, 0.5), (float("nan"), "nan"), (True, True), (None, None), ((1, ("a",)), [1, ["a"]]),
    (1j, "1j")])
def test_an_answer_is_kept_as_json_can_hold_it(given, kept):
    assert plain(given) == kept
    json.dumps(plain(given), allow_nan=False)


def test_reading_goes_on_where_it_stopped(tmp_path):
    made = written(tmp_path, 3)
    reader = Reader(tmp_path)
    first = reader.read()
    assert (ids(first.events), first.whole) == (ids(made), True)
    later = written(tmp_path, 2)
    second = reader.read()
    assert (ids(second.events), second.whole) == (ids(later), False)
    assert reader.read().events == []


def test_a_file_cut_at_any_byte_gives_every_whole_line_before(tmp_path):
    made = written(tmp_path, 3)
    path = file_of(tmp_path)
    data = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        reader = Reader(tmp_path)
        found = ids(reader.read().events)
        whole = sum(cut >= end - 1 for end in ends)         # a line that lacks only its end is whole
        assert found == ids(made[:whole]), cut
        torn = cut not in {0, *ends, *(end - 1 for end in ends)}
        assert len(reader.warnings) == torn, (cut, reader.warnings)


def test_a_line_that_is_still_being_written_is_read_when_it_is_there(tmp_path):
    made = written(tmp_path, 2)
    path = file_of(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    reader = Reader(tmp_path)
    assert ids(reader.read().events) == ids(made[:1]) and "not written to its end" in reader.warnings[0]
    with path.open("ab") as file:
        file.write(data[-30:])
    assert ids(reader.read().events) == ids(made[1:]) and reader.warnings == []


@pytest.mark.parametrize("junk", [b"\0" * 4096, b"junk\n", b"\xff\xfe\n{}\n", b"\n\n \r\n", b"\0\0\n", b"[" * 10**5])
@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_junk_hides_no_event(tmp_path, junk, place):
    made = written(tmp_path, 2)
    path = file_of(tmp_path)
    first, second = path.read_bytes().splitlines(keepends=True)
    if place != "after" and not junk.endswith(b"\n") and junk.strip(b"\0"):
        junk += b"\n"
    path.write_bytes({"before": junk + first + second, "between": first + junk + second,
                      "after": first + second + junk}[place])
    reader = Reader(tmp_path)
    assert ids(reader.read().events) == ids(made)
    assert bool(reader.warnings) == bool(junk.strip(b"\0 \r\n"))


def test_an_event_that_is_in_two_files_counts_once(tmp_path):
    made = written(tmp_path, 3)
    path = file_of(tmp_path)
    (tmp_path / "copy (conflict).jsonl").write_bytes(path.read_bytes())
    (tmp_path / "notes.txt").write_text("not ours")
    assert ids(Reader(tmp_path).read().events) == ids(made)


def test_what_is_no_readable_file_is_named(tmp_path):
    made = written(tmp_path, 1)
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "nowhere.jsonl").symlink_to(tmp_path / "missing")
    with open(tmp_path / "huge.jsonl", "wb") as file:
        file.truncate(2**40)
    reader = Reader(tmp_path)
    assert ids(reader.read().events) == ids(made)
    assert sorted(warning.split(":")[0] for warning in reader.warnings) == ["folder.jsonl", "huge.jsonl", "pipe.jsonl"]


def test_a_file_that_was_cut_or_removed_makes_all_be_read_anew(tmp_path):
    made, reader = written(tmp_path, 3), Reader(tmp_path)
    reader.read()
    path = file_of(tmp_path)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    reading = reader.read()
    assert (ids(reading.events), reading.whole) == (ids(made[:1]), True)
    path.unlink()
    assert reader.read() == type(reading)([], True)


def test_a_folder_that_cannot_be_read_forgets_nothing(tmp_path):
    folder = tmp_path / "events"
    written(folder, 1)
    reader = Reader(folder)
    reader.read()
    folder.rename(tmp_path / "aside")
    folder.write_text("a file")
    assert reader.read().whole is False and "cannot be read" in reader.warnings[0]


def test_a_folder_that_may_be_listed_but_not_entered_is_named_and_forgets_nothing(tmp_path, monkeypatch):
    written(tmp_path, 1)
    reader, look = Reader(tmp_path), os.stat
    assert len(reader.read().events) == 1

    def refusing(path, **options):
        if str(path).endswith(".jsonl"):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, **options)

    monkeypatch.setattr(os, "stat", refusing)
    reading = reader.read()
    assert (reading.events, reading.whole) == ([], False) and "Permission denied" in reader.warnings[0]


def test_where_progress_lives(monkeypatch, tmp_path):
    monkeypatch.setenv("DISTTUTOR_HOME", str(tmp_path))
    assert home_folder() == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DISTTUTOR_HOME", "~/mine")
    assert home_folder() == tmp_path / "mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISTTUTOR_HOME", "here")
    assert home_folder() == tmp_path / "here"
    monkeypatch.setenv("DISTTUTOR_HOME", " ")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert home_folder() == tmp_path / "data" / "disttutor"
