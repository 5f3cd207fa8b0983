"""The command line: what is said, with which exit status, and what is started."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from disttutor import __version__, cli, demo, doctor, lessons
from disttutor.cluster import RankError
from disttutor.plans import Op
from disttutor.traces import Span, Trace


@pytest.fixture
def started(monkeypatch) -> list[list[str]]:
    """The commands that would have become JupyterLab."""
    commands: list[list[str]] = []
    monkeypatch.setattr(lessons, "start", commands.append)
    return commands


@pytest.fixture
def course(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "course"
    folder.mkdir()
    (folder / "00_start.ipynb").write_text("zero")
    monkeypatch.setattr(lessons, "shipped", lambda name: folder)
    return folder


def call(*arguments: str):
    return CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "200"})


def test_lab_copies_and_opens(course, started, tmp_path):
    mine = tmp_path / "mine"
    result = call("lab", str(mine), "--no-browser", "--port", "8899")
    assert result.exit_code == 0, result.output
    assert "00_start.ipynb is new." in result.output
    assert (mine / "00_start.ipynb").read_text() == "zero"
    (command,) = started
    assert f"--ServerApp.root_dir={mine}" in command
    assert {"--no-browser", "--port=8899", "--LabApp.default_url=/lab/tree/00_start.ipynb"} <= set(command)


def test_lab_says_only_what_changed(course, started, tmp_path):
    mine = tmp_path / "mine"
    call("lab", str(mine))
    assert "00_start" not in call("lab", str(mine)).output
    (mine / "00_start.ipynb").write_text("my notes")
    (course / "00_start.ipynb").write_text("zero, new")
    assert "the course's new version lies beside it: 00_start.new.ipynb" in call("lab", str(mine)).output
    assert (mine / "00_start.ipynb").read_text() == "my notes"


def test_lab_hands_further_arguments_on(course, started, tmp_path):
    call("lab", str(tmp_path / "mine"), "--IdentityProvider.token=x", "--debug")
    assert started[0][-2:] == ["--IdentityProvider.token=x", "--debug"]


def test_lab_keeps_its_copies_at_home_by_default(course, started, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert call("lab").exit_code == 0
    assert (tmp_path / "disttutor-lessons" / "00_start.ipynb").exists()


def test_lab_in_the_courses_own_folder_copies_nothing(course, started):
    assert call("lab", str(course)).exit_code == 0
    assert {path.name for path in course.iterdir()} == {"00_start.ipynb"}
    assert f"--ServerApp.root_dir={course}" in started[0]


def test_lab_says_when_it_cannot_write(course, started, tmp_path):
    (tmp_path / "mine").write_text("a file")
    result = call("lab", str(tmp_path / "mine"))
    assert result.exit_code == 2
    assert "cannot be copied" in result.output
    assert "Name a folder that you can write to" in result.output
    assert started == []


@pytest.mark.parametrize(
    ("states", "status", "last"),
    [
        (["fine", "note"], 0, "Everything that the lessons need is here."),
        (["fine", "wrong"], 1, "One thing is wrong; what to do is said above."),
        (["wrong", "wrong"], 1, "2 things are wrong; what to do is said above."),
    ],
)
def test_doctor_ends_with_a_verdict(monkeypatch, states, status, last):
    findings = [doctor.Finding(state, f"I am {state} [x].", "" if state == "fine" else "Do this.") for state in states]
    monkeypatch.setattr(doctor, "examine", lambda: iter(findings))
    result = call("doctor")
    assert result.exit_code == status
    assert result.output.splitlines()[-1] == last
    assert all(f"I am {state} [x]." in result.output for state in states)
    assert result.output.count("Do this.") == len(states) - states.count("fine")


def test_demo_ends_with_a_table_and_a_picture(monkeypatch, tmp_path):
    spans = tuple(Span(Op(kind="forward", rank=rank), 0.0, 0.01, cpu=0.01) for rank in range(4))
    rows = [demo.Row(1, 0.25, 0.955, 0.0, 0, 2.0), demo.Row(4, 0.25, 0.955, 2.8e-16, 12_345_678, 8.04)]
    monkeypatch.setattr(demo, "compare", lambda **settings: (rows, Trace(spans, 4)))
    result = call("demo", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    cells = [cell.strip() for line in result.output.splitlines() for cell in line.split("│") if "│" in line]
    assert ["1", "0.250000", "95.5%", "0.0e+00", "nothing", "2.0"] == cells[1:7]
    assert ["4", "0.250000", "95.5%", "2.8e-16", "12.35 MB", "8.0"] == cells[9:15]
    assert str(tmp_path / "out" / "timeline.svg") in result.output
    assert (tmp_path / "out" / "timeline.svg").exists()


def test_demo_that_fails_says_why_and_whom_to_ask(monkeypatch):
    def fail(**settings):
        raise RankError(1, "died", "rank 1 died: killed by SIGKILL")

    monkeypatch.setattr(demo, "compare", fail)
    result = call("demo")
    assert result.exit_code == 1
    assert "rank 1 died: killed by SIGKILL" in result.output
    assert "disttutor doctor" in result.output


@pytest.mark.parametrize("where", ["a file", "below a file", "no folder to write to", "a folder in its place"])
def test_demo_looks_first_whether_there_is_a_place_for_its_picture(where, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "full" / "timeline.svg").mkdir(parents=True)
    folder = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "new" / "folder",
              "no folder to write to": Path("/proc/nothing-here"), "a folder in its place": tmp_path / "full"}[where]
    monkeypatch.setattr(demo, "compare", lambda **settings: pytest.fail("it has trained"))
    result = call("demo", str(folder))
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    first, advice = result.output.splitlines()
    assert first.startswith(f"The picture cannot be put into the folder {folder}: ") and first.endswith(".")
    assert advice == "Name a folder that you can write to, for example: disttutor demo ~/disttutor-demo"
    assert (tmp_path / "file").read_text() == "kept"


def test_demo_says_so_if_the_place_is_gone_afterwards(monkeypatch, tmp_path):
    spans = tuple(Span(Op(kind="forward", rank=rank), 0.0, 0.01, cpu=0.01) for rank in range(4))
    rows = [demo.Row(1, 0.25, 0.955, 0.0, 0, 2.0)]

    def compare(**settings):
        (tmp_path / "out").write_text("a file now")
        return rows, Trace(spans, 4)

    monkeypatch.setattr(demo, "compare", compare)
    result = call("demo", str(tmp_path / "out"))
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert "95.5%" in result.output
    assert f"The picture cannot be put into the folder {tmp_path / 'out'}: File exists." in result.output


def test_looking_for_a_place_leaves_nothing_behind(tmp_path):
    demo.check_folder(tmp_path / "new" / "folder")
    demo.check_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "timeline.svg").write_text("of the last time")
    demo.check_folder(tmp_path)
    assert (tmp_path / "timeline.svg").read_text() == "of the last time"


def test_the_version_is_said():
    assert call("--version").output.strip() == f"disttutor {__version__}"


def test_help_names_the_commands():
    assert all(command in call("--help").output for command in ("lab", "doctor", "demo"))
