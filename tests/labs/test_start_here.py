"""Lesson 00: ranks that meet, three ways to look at them, what is said of the machine, and the map of the course."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from disttutor import run
from disttutor.doctor import Finding
from disttutor.labs import course, start_here
from disttutor.traces import hidden_communication, operations

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def traces():
    measured = run(start_here.meet, False, ranks=3, record=True)
    slow = run(start_here.meet, False, ranks=3, slow_motion=start_here.PACE)
    assert list(measured) == list(slow) == [6.0] * 3
    return start_here.views(measured.trace, slow.trace)


def test_the_three_views_show_the_same_work(traces):
    assert [t.source for t in traces.values()] == ["measured", "replayed", "slow motion"]
    for trace in traces.values():
        for rank in range(3):
            assert (operations(trace, rank, "compute"), operations(trace, rank, "all_reduce")) == (3, 3)
            assert hidden_communication(trace, rank) < 0.05        # nobody computes while it meets


def test_slow_motion_stretches_each_share_as_it_was_given_out(traces):
    slow = traces[start_here.SLOW]
    for rank in range(3):
        lasted = {s.step: s.duration for s in slow.of(rank, "compute") if s.kind == "compute"}
        for step, seconds in lasted.items():
            assert seconds >= 0.040 * (1 + (rank + step) % 3) - 1e-4


def test_with_a_core_for_each_rank_nobody_works_on_before_the_meeting_is_over(traces):
    replayed = traces[start_here.CORE_EACH]
    for step in (1, 2):
        met = max(s.end for s in replayed.spans if s.kind == "all_reduce" and s.step == step - 1)
        assert all(s.start >= met - 1e-9 for s in replayed.spans if s.kind == "compute" and s.step == step)


def test_ranks_say_what_they_brought(capsys):
    run(start_here.meet, True, 1, ranks=2)
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "[rank 0] step 0: I brought 1, together we have 3", "[rank 1] step 0: I brought 2, together we have 3"]


def test_the_lab_shows_any_number_of_ranks_from_any_side(capsys):
    lab = start_here.lab().show()
    assert "4 ranks brought 1 + 2 + 3 + 4. After the meeting every rank holds 10." in capsys.readouterr().out
    lab.controls["ranks"].value = 1
    assert lab.wait()
    assert "One rank brought 1 and met nobody." in capsys.readouterr().out
    runs = lab.runs
    lab.controls["view"].value = start_here.WALL
    assert "as it ran" in capsys.readouterr().out and lab.runs == runs
    assert start_here.guess_all_reduce().right == "10, the sum of all"


# ------------------------------------------------------------------------------------------------- the machine


def test_what_is_said_of_the_machine_holds_no_path_of_it(monkeypatch):
    home = str(Path.home())
    found = [Finding("fine", f"Python 3.11 on Linux, {sys.prefix}."),
             Finding("wrong", f"{home}/lessons/torch.py hides torch.", f"Rename it; {sys.prefix}/bin is fine.")]
    monkeypatch.setattr(start_here, "examine", lambda: found)
    machine = start_here.this_machine()
    for shown in (repr(machine), machine.html()):
        assert sys.prefix not in shown and home not in shown
    assert repr(machine).startswith("✓ Python 3.11 on Linux.\n✗ ~/lessons/torch.py hides torch. Rename it;")
    assert "<b>~/lessons/torch.py" in machine.html()
    assert set(machine._repr_mimebundle_()) == {"text/html", "text/plain"}


@pytest.mark.parametrize(("cores", "gpus", "words"), [
    (1, 0, ["one core the ranks take turns", "not measured here"]),
    (2, 1, ["With 2 cores, 2 ranks really work side by side", "at least two"]),
    (16, 8, ["up to 16 ranks", "each of 8 ranks its own"])])
def test_what_a_machine_can_show_depends_on_its_cores_and_gpus(cores, gpus, words):
    said = " ".join(start_here.what_it_shows(cores, gpus))
    assert all(part in said for part in ["Everything about numbers is real", *words])


# ------------------------------------------------------------------------------------------------- the map


def test_the_course_has_seventeen_lessons_and_each_stands_once_on_the_map():
    assert [lesson.number for lesson in course.LESSONS] == list(range(17))
    assert sorted(n for _, numbers in course.BANDS for n in numbers) == list(range(17))
    assert all(before < lesson.number for lesson in course.LESSONS for before in lesson.after)


def test_lessons_that_are_there_are_links_and_the_others_are_to_come(tmp_path):
    for name in ("00_start_here.ipynb", "03_data_parallelism.ipynb", "03_data_parallelism.new.ipynb"):
        shutil.copy(ROOT / "notebooks/00_start_here.ipynb", tmp_path / name)
    shown = course.course_map(tmp_path)
    assert re.findall(r"href='([^']+)'", shown.html()) == ["00_start_here.ipynb", "03_data_parallelism.ipynb"]
    assert repr(shown).count("(to come)") == shown.html().count("<i>(to come)</i>") == 15
    drawing = shown.drawing()
    assert "03 Data parallelism, 04 Gradient accumulation (to come)" in drawing.alt
    assert drawing.svg.count(">to come<") == 15


def test_every_lesson_of_the_project_is_on_the_map():
    numbers = {int(path.name[:2]) for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")}
    assert numbers == {lesson.number for lesson in course.LESSONS if lesson.file(ROOT / "notebooks")}


def test_the_committed_map_links_to_the_lessons_that_there_are():
    notebook = json.loads((ROOT / "notebooks/00_start_here.ipynb").read_text())
    (cell,) = (cell for cell in notebook["cells"] if cell["id"] == "map-course")
    shown = "".join(cell["outputs"][0]["data"]["text/html"])
    assert re.findall(r"href='([^']+)'", shown) == sorted(p.name for p in (ROOT / "notebooks").glob("*.ipynb"))
