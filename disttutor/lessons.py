"""The lessons as files: where they lie, how they get into the learner's own folder, and JupyterLab on top of them.

A copy that the learner has changed is never written over. What was copied is remembered by its hash in a hidden file
beside the copies, so an unchanged copy can follow when the course does.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from disttutor.files import write_whole

FOLDER = Path("~/disttutor-lessons")
MANIFEST = ".disttutor-lessons.json"

_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Copied:
    """What became of one lesson. `state`: new, updated, current, kept, beside, held back or restored."""

    name: str
    state: str

    def __str__(self) -> str:
        beside = _beside(self.name)
        return {
            "new": f"{self.name} is new.",
            "updated": f"{self.name} has a new version; you had not changed yours, so it is the new one now.",
            "restored": f"{self.name} was gone and is here again.",
            "current": f"{self.name} is up to date.",
            "kept": f"{self.name} is yours, with your changes.",
            "beside": f"{self.name} is yours, with your changes; the course's new version lies beside it: {beside}",
            "held back": f"{self.name} has a new version, but {beside} has changes of yours too: rename it to get it.",
        }[self.state]


def shipped(name: str) -> Path:
    """The path of a file or folder that comes with the package: in a clone beside it, in an installed wheel within it.

    Raises FileNotFoundError if it is in neither place.
    """
    clone = _PACKAGE.parent
    places = [clone / name] if (clone / "pyproject.toml").exists() else []
    for path in [*places, _PACKAGE / name]:
        if path.exists():
            return path
    raise FileNotFoundError(f"{name} is missing from this installation of disttutor: install it again")


def copy_lessons(folder: Path) -> list[Copied]:
    """Bring every lesson into `folder` (made if it is not there) and say what became of each, in their order.

    Into the folder that the course itself is kept in, nothing is copied. Raises OSError where it cannot write.
    """
    source = shipped("notebooks")
    folder.mkdir(parents=True, exist_ok=True)
    if folder.samefile(source):
        return []
    remembered = _read_manifest(folder)
    outcomes = []
    for lesson in sorted(source.glob("*.ipynb")):
        outcomes.append(Copied(lesson.name, _bring(lesson.read_bytes(), folder / lesson.name, remembered)))
        # After each lesson: a copy that is cut short must not forget what it did.
        write_whole(folder / MANIFEST, json.dumps(remembered, indent=1, sort_keys=True).encode())
    return outcomes


def _bring(lesson: bytes, path: Path, remembered: dict[str, str]) -> str:
    """Copy one lesson if nothing of the learner's is lost by it. Updates `remembered`."""
    new, copied = _hash(lesson), remembered.get(path.name)
    here = _hash(path.read_bytes()) if path.exists() else None
    if here is None or (here == copied != new):
        write_whole(path, lesson)
        remembered[path.name] = new
        return "updated" if here else "restored" if copied else "new"
    if here == new:
        remembered[path.name] = new
        return "current"
    if copied == new:
        return "kept"
    beside = path.with_name(_beside(path.name))
    there = _hash(beside.read_bytes()) if beside.exists() else None
    if there not in (None, new, remembered.get(beside.name)):
        return "held back"
    if there != new:
        write_whole(beside, lesson)
        remembered[beside.name] = new
    return "beside"


def _beside(name: str) -> str:
    return name.removesuffix(".ipynb") + ".new.ipynb"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}  # whatever differs then counts as changed by the learner
    return found if isinstance(found, dict) else {}


def lab_command(folder: Path, *, browser: bool, port: int | None, more: Sequence[str] = ()) -> list[str]:
    """The command that opens JupyterLab in `folder` at its first lesson."""
    lessons = sorted(path.name for path in folder.glob("*.ipynb"))
    start = f"/lab/tree/{lessons[0]}" if lessons else "/lab"
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder.resolve()}"]
    command += [f"--LabApp.default_url={start}"]
    command += [] if browser else ["--no-browser"]
    command += [] if port is None else [f"--port={port}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in more:
        command += ["--allow-root"]  # in a container one often is root, and JupyterLab would refuse to start
    return [*command, *more]


def start(command: Sequence[str]) -> None:
    """Become this command (its Ctrl-C and its signals are its own); where a process cannot, run it and exit with it."""
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while True:
        try:
            sys.exit(process.wait())
        except KeyboardInterrupt:
            continue  # JupyterLab has heard it too, and asks whether it shall end
