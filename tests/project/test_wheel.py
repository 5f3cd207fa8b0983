"""What pip installs: the code, the typing marker, the command, and the lessons."""

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
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "disttutor").rglob("*.py")}
    assert lessons | modules | {"disttutor/py.typed"} <= held


def test_the_wheel_holds_nothing_else(wheel):
    outside = [name for name in ZipFile(wheel).namelist() if not name.startswith(("disttutor/", "disttutor-"))]
    kinds = {Path(name).suffix for name in ZipFile(wheel).namelist() if name.startswith("disttutor/")}
    assert outside == []
    assert kinds <= {".py", ".typed", ".ipynb", ".md"}


def test_the_wheel_installs_the_command(wheel):
    with ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "disttutor = disttutor.cli:main" in archive.read(entry_points).decode()
