"""Copying lessons: the learner's changes survive whatever the course does."""

import json
import os
import sys

import pytest

from disttutor import lessons
from disttutor.lessons import MANIFEST, copy_lessons, lab_command


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two lessons, in a folder where it can be changed."""
    folder = tmp_path / "course"
    folder.mkdir()
    (folder / "00_start.ipynb").write_text("zero, version 1")
    (folder / "03_data.ipynb").write_text("three, version 1")
    (folder / "README.md").write_text("not a lesson")
    monkeypatch.setattr(lessons, "shipped", lambda name: folder)
    return folder


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "deep" / "mine"


def states(outcomes) -> dict[str, str]:
    return {outcome.name[:2]: outcome.state for outcome in outcomes}


def files(folder) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != MANIFEST}


def test_the_first_time_every_lesson_is_copied(course, mine):
    assert states(copy_lessons(mine)) == {"00": "new", "03": "new"}
    assert files(mine) == {"00_start.ipynb": "zero, version 1", "03_data.ipynb": "three, version 1"}


def test_the_second_time_nothing_happens(course, mine):
    copy_lessons(mine)
    before = {path.name: path.stat().st_mtime_ns for path in mine.glob("*.ipynb")}
    assert states(copy_lessons(mine)) == {"00": "current", "03": "current"}
    assert {path.name: path.stat().st_mtime_ns for path in mine.glob("*.ipynb")} == before


def test_an_unchanged_copy_follows_the_course(course, mine):
    copy_lessons(mine)
    (course / "03_data.ipynb").write_text("three, version 2")
    assert states(copy_lessons(mine)) == {"00": "current", "03": "updated"}
    assert files(mine) == {"00_start.ipynb": "zero, version 1", "03_data.ipynb": "three, version 2"}
    (course / "03_data.ipynb").write_text("three, version 3")
    assert states(copy_lessons(mine))["03"] == "updated"


def test_a_changed_copy_is_kept(course, mine):
    copy_lessons(mine)
    (mine / "03_data.ipynb").write_text("my notes")
    assert states(copy_lessons(mine)) == {"00": "current", "03": "kept"}
    assert files(mine) == {"00_start.ipynb": "zero, version 1", "03_data.ipynb": "my notes"}


def test_the_new_version_lies_beside_a_changed_copy(course, mine):
    copy_lessons(mine)
    (mine / "03_data.ipynb").write_text("my notes")
    for version in ("three, version 2", "three, version 3"):
        (course / "03_data.ipynb").write_text(version)
        for _ in range(2):  # the second time it is there already
            (outcome,) = (outcome for outcome in copy_lessons(mine) if outcome.name == "03_data.ipynb")
            assert outcome.state == "beside"
            assert "03_data.new.ipynb" in str(outcome)
            assert files(mine)["03_data.ipynb"] == "my notes"
            assert files(mine)["03_data.new.ipynb"] == version


def test_a_changed_new_version_is_kept_too(course, mine):
    copy_lessons(mine)
    (mine / "03_data.ipynb").write_text("my notes")
    (course / "03_data.ipynb").write_text("three, version 2")
    copy_lessons(mine)
    (mine / "03_data.new.ipynb").write_text("my notes on version 2")
    (course / "03_data.ipynb").write_text("three, version 3")
    (outcome,) = (outcome for outcome in copy_lessons(mine) if outcome.name == "03_data.ipynb")
    assert outcome.state == "held back"
    assert "rename it" in str(outcome)
    assert files(mine)["03_data.ipynb"] == "my notes"
    assert files(mine)["03_data.new.ipynb"] == "my notes on version 2"
    (mine / "03_data.new.ipynb").rename(mine / "03_mine.ipynb")
    assert states(copy_lessons(mine))["03"] == "beside"
    assert files(mine)["03_data.new.ipynb"] == "three, version 3"


def test_taking_the_new_version_by_hand_makes_it_follow_again(course, mine):
    copy_lessons(mine)
    (mine / "03_data.ipynb").write_text("my notes")
    (course / "03_data.ipynb").write_text("three, version 2")
    copy_lessons(mine)
    (mine / "03_data.new.ipynb").replace(mine / "03_data.ipynb")
    assert states(copy_lessons(mine))["03"] == "current"
    (course / "03_data.ipynb").write_text("three, version 3")
    assert states(copy_lessons(mine))["03"] == "updated"


def test_a_deleted_copy_comes_back_as_the_course_has_it(course, mine):
    copy_lessons(mine)
    (mine / "03_data.ipynb").unlink()
    (course / "03_data.ipynb").write_text("three, version 2")
    assert states(copy_lessons(mine)) == {"00": "current", "03": "restored"}
    assert files(mine)["03_data.ipynb"] == "three, version 2"


@pytest.mark.parametrize("manifest", [None, "", "[1]", '{"03_data.ipynb": '])
def test_a_file_of_unknown_origin_counts_as_the_learners(course, mine, manifest):
    mine.mkdir(parents=True)
    (mine / "03_data.ipynb").write_text("from somewhere")
    if manifest is not None:
        (mine / MANIFEST).write_text(manifest)
    assert states(copy_lessons(mine)) == {"00": "new", "03": "beside"}
    assert files(mine)["03_data.ipynb"] == "from somewhere"
    assert files(mine)["03_data.new.ipynb"] == "three, version 1"


def test_a_new_lesson_of_the_course_arrives(course, mine):
    copy_lessons(mine)
    (course / "04_batch.ipynb").write_text("four")
    assert states(copy_lessons(mine)) == {"00": "current", "03": "current", "04": "new"}


def test_a_lesson_that_left_the_course_stays_with_the_learner(course, mine):
    copy_lessons(mine)
    (course / "03_data.ipynb").unlink()
    assert states(copy_lessons(mine)) == {"00": "current"}
    assert files(mine)["03_data.ipynb"] == "three, version 1"


def test_nothing_is_copied_into_the_courses_own_folder(course):
    before = files(course)
    assert copy_lessons(course.parent / "deep" / ".." / "course") == []
    assert files(course) == before
    assert not (course / MANIFEST).exists()


def test_a_write_that_fails_leaves_the_old_copy_whole(course, mine, monkeypatch):
    copy_lessons(mine)
    (course / "03_data.ipynb").write_text("three, version 2")

    def no_space(self, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr("pathlib.Path.replace", no_space)
        copy_lessons(mine)
    assert files(mine) == {"00_start.ipynb": "zero, version 1", "03_data.ipynb": "three, version 1"}
    assert states(copy_lessons(mine))["03"] == "updated"


def test_the_manifest_holds_hashes_by_name(course, mine):
    copy_lessons(mine)
    manifest = json.loads((mine / MANIFEST).read_text())
    assert set(manifest) == {"00_start.ipynb", "03_data.ipynb"}
    assert {len(digest) for digest in manifest.values()} == {64}


def test_jupyterlab_opens_at_the_first_lesson(course):
    command = lab_command(course, browser=False, port=8899, more=["--IdentityProvider.token=x"])
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={course}" in command
    assert "--LabApp.default_url=/lab/tree/00_start.ipynb" in command
    assert {"--no-browser", "--port=8899"} <= set(command)
    assert command[-1] == "--IdentityProvider.token=x"


def test_jupyterlab_chooses_port_and_browser_itself_unless_told(course, tmp_path):
    command = lab_command(course, browser=True, port=None)
    assert not any(argument.startswith(("--port", "--no-browser")) for argument in command)
    assert "--LabApp.default_url=/lab" in lab_command(tmp_path, browser=True, port=None)


@pytest.mark.parametrize(("user", "times"), [(0, 1), (1000, 0)])
def test_root_is_allowed_once(course, monkeypatch, user, times):
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    assert lab_command(course, browser=True, port=None).count("--allow-root") == times
    assert lab_command(course, browser=True, port=None, more=["--allow-root"]).count("--allow-root") == 1


def test_the_lessons_of_this_clone_are_found():
    assert (lessons.shipped("notebooks") / "README.md").exists()
    with pytest.raises(FileNotFoundError, match="recipes is missing from this installation"):
        lessons.shipped("recipes")
