"""What the README says is so: its table names the lessons that are there, its links and commands lead somewhere."""

import re
from pathlib import Path

from disttutor.labs.course import LESSONS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_table_names_the_lessons_that_are_there_as_the_course_does():
    rows = re.findall(r"^\| (\d\d) \| \[(.+?)\]\((.+?)\) \| (.+?) \| (.+?) \|$", README, flags=re.M)
    course = {f"{lesson.number:02d}": lesson for lesson in LESSONS}
    there = sorted(f"notebooks/{path.name}" for path in ROOT.glob("notebooks/*.ipynb"))
    assert [path for _, _, path, _, _ in rows] == there
    for number, title, path, question, runs in rows:
        lesson = course[number]
        assert (title, question, runs) == (lesson.title, lesson.question, lesson.runs)
        assert path.startswith(f"notebooks/{number}_")


def test_links_lead_to_files_that_are_there():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) >= 2
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_pictures_have_alt_text():
    assert re.findall(r"!\[\s*\]", README) == []
    assert re.findall(r"!\[.{40,}\]\(notebooks/.+\.svg\)", README)


def test_commands_are_the_makefiles():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"^make (\w+)", README, flags=re.M)) == {"lab", "demo", "test", "bench"}
    assert {"lab", "demo", "test", "bench", "clean"} <= targets
