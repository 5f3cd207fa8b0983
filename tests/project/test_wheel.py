"""What pip installs: the code, the typing marker, the command, and the lessons."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (file,) = folder.glob("*.whl")
    return file


def test_the_wheel_holds_every_lesson_and_every_module(wheel):
    held = set(ZipFile(wheel).namelist())
    lessons = {f"disttutor/notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    modules = {path.relative_to(ROOT).as_posix() for kind in ("py", "js", "css", "toml")
               for path in (ROOT / "disttutor").rglob(f"*.{kind}")}
    assert lessons | modules | {"disttutor/py.typed", "disttutor/constraints.txt"} <= held


def test_the_wheel_holds_nothing_else(wheel):
    outside = [name for name in ZipFile(wheel).namelist() if not name.startswith(("disttutor/", "disttutor-"))]
    kinds = {Path(name).suffix for name in ZipFile(wheel).namelist() if name.startswith("disttutor/")}
    assert outside == []
    assert kinds <= {".py", ".js", ".css", ".toml", ".typed", ".ipynb", ".md", ".svg", ".txt"}


def test_the_wheel_installs_the_command(wheel):
    with ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "disttutor = disttutor.cli:main" in archive.read(entry_points).decode()


USE = """
import sys
from pathlib import Path
import disttutor.doctor, disttutor.lessons
assert Path(disttutor.__file__).is_relative_to(sys.argv[1]), disttutor.__file__
print([copied.name for copied in disttutor.lessons.copy_lessons(Path(sys.argv[2]))])
print([finding.text.split()[0] for finding in disttutor.doctor.versions()])
"""


def test_an_installed_wheel_brings_its_lessons_and_knows_what_was_tested(wheel, tmp_path):
    installed, mine = tmp_path / "site-packages", tmp_path / "mine"
    ZipFile(wheel).extractall(installed)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    use = [sys.executable, "-c", USE, str(installed), str(mine)]
    done = subprocess.run(use, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert done.stdout.splitlines() == [str(names), "['torch', 'jupyterlab', 'ipywidgets']"]
    assert sorted(path.name for path in mine.glob("*.ipynb")) == names
