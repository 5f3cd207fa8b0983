"""Events are written whole, or kept until they can be."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from disttutor.cards.progress.reader import Reader
from disttutor.cards.progress.writer import Writer
from tests.cards.test_events import event, ids, written


def test_files_are_private_and_of_one_process(tmp_path):
    folder = tmp_path / "home" / "events"
    writer = Writer(folder)
    assert not folder.exists()                               # nothing is made before there is something to keep
    writer.append(event(0))
    writer.append(event(1))
    other = Writer(folder)
    other.append(event(2))
    assert len(list(folder.iterdir())) == 2
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)} == {0o700}


def test_a_fork_begins_a_file_of_its_own(tmp_path):
    writer = Writer(tmp_path / "events")
    writer.append(event(0))
    if not (child := os.fork()):
        writer.append(event(1))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    writer.append(event(2))
    lines = sorted(len(path.read_bytes().splitlines()) for path in writer.folder.iterdir())
    assert lines == [1, 2]


def test_a_file_that_was_moved_away_is_not_written_to(tmp_path):
    writer = Writer(tmp_path / "events")
    writer.append(event(0))
    writer.folder.rename(tmp_path / "aside")
    writer.append(late := event(1))
    assert ids(Reader(writer.folder).read().events) == [late["id"]]


def test_after_half_a_line_on_a_full_disk_the_next_event_is_whole(tmp_path, monkeypatch):
    writer, made = Writer(tmp_path), [event(number) for number in range(4)]
    writer.append(made[0])
    write, left = os.write, [200]

    def full(file: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count, left[0] = min(len(data), left[0]), max(0, left[0] - len(data))
        return write(file, data[:count])

    monkeypatch.setattr(os, "write", full)
    left[0] = 50                                             # bytes that are free
    writer.append(made[1])
    writer.append(made[2])
    assert "kept in memory only" in writer.notice and "No space left on device" in writer.notice
    assert [one["id"] for one in writer.unsaved] == [made[1]["id"], made[2]["id"]]
    monkeypatch.setattr(os, "write", write)
    writer.append(made[3])
    assert (writer.notice, writer.unsaved) == ("", [])
    reader = Reader(tmp_path)
    assert ids(reader.read().events) == ids(made) and len(list(tmp_path.iterdir())) == 1
    assert len(reader.warnings) == 1 and "line 2 is damaged" in reader.warnings[0]


def test_a_failed_fsync_begins_a_new_file(tmp_path, monkeypatch):
    # After it the system may have dropped what was written and call the next fsync a success.
    writer, made, fsync = Writer(tmp_path), [event(0), event(1)], os.fsync
    writer.append(made[0])
    failing = [True]
    monkeypatch.setattr(os, "fsync", lambda file: fsync(file) if not failing.pop() else _fail(errno.EIO))
    writer.append(made[1])
    assert "Input/output error" in writer.notice and len(writer.unsaved) == 1
    monkeypatch.setattr(os, "fsync", fsync)
    writer.flush()
    assert writer.notice == "" and len(list(tmp_path.iterdir())) == 2
    assert ids(Reader(tmp_path).read().events) == ids(made)


def _fail(number: int) -> None:
    raise OSError(number, os.strerror(number))


def test_a_limit_on_the_size_of_files(tmp_path):
    code = f"""
import resource
from pathlib import Path
from tests.cards.test_events import event
from disttutor.cards.progress.writer import Writer
writer = Writer(Path({str(tmp_path)!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
for number in range(3):
    writer.append(event(number))
assert "File too large" in writer.notice and len(writer.unsaved) == 3, (writer.notice, writer.unsaved)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.append(event(3))
assert not writer.notice and not writer.unsaved
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
    found = Reader(tmp_path).read().events
    assert sorted(one["card"] for one in found) == ["card-0", "card-1", "card-2", "card-3"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator can become somebody who may not write")
def test_a_folder_of_somebody_else(tmp_path):
    made = written(tmp_path / "events", 1)
    os.chmod(tmp_path, 0o755)
    if not (child := os.fork()):
        os.setuid(65534)
        reader, writer = Reader(tmp_path / "events"), Writer(tmp_path / "events")
        nothing, _ = reader.read(), writer.append(event(1))
        told = "Permission denied" in writer.notice and "Permission denied" in reader.warnings[0]
        os._exit(0 if told and nothing.events == [] and len(writer.unsaved) == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ids(Reader(tmp_path / "events").read().events) == ids(made)


def test_a_home_below_a_file_is_said_and_tried_again(tmp_path):
    (tmp_path / "file").write_text("")
    writer = Writer(tmp_path / "file" / "events")
    writer.append(event(0))
    assert f"(File exists: {tmp_path / 'file'})" in writer.notice
    (tmp_path / "file").unlink()
    writer.append(event(1))
    assert writer.notice == "" and len(Reader(writer.folder).read().events) == 2
