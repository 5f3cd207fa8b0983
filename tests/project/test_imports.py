"""The house's rule: imports run downward only, and importing the package is cheap."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import disttutor

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "disttutor"

# room: the rooms below it that it may know
KNOWS = {
    "plans": set(),
    "models": set(),
    "traces": {"plans"},
    "cluster": {"traces"},
    "strategies": {"plans", "traces", "models"},
    "cost": {"plans", "traces"},
    "cards": {"plans", "cost"},
    "figures": {"plans", "traces", "cost"},
}
TOP = {"labs", "terminal"}  # these, and the files beside the rooms, may know all rooms
TOOLS = {"files"}  # files beside the rooms that know nothing of the house, so that all rooms may know them

# These come with a declared dependency that would not be itself without them.
COMES_WITH = dict.fromkeys(("IPython", "ipykernel", "jupyter_client", "traitlets"), "jupyterlab")
IMPORTED_AS = {"markdown-it-py": "markdown_it", "mdit-py-plugins": "mdit_py_plugins", "pyyaml": "yaml",
               "scikit-learn": "sklearn"}
STARTED_AS_A_PROGRAM = {"jupyterlab"}


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, anywhere in it, by its full name, with the line."""
    package = file.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            if module == "disttutor":  # `from disttutor import run` is an import of the room where run lives
                for alias in node.names:
                    yield f"disttutor.{disttutor._ROOM_OF.get(alias.name, alias.name)}", node.lineno
            else:
                yield module, node.lineno


def room_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def files() -> list[Path]:
    return [file for file in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in file.parts]


def test_every_room_has_its_place():
    rooms = {file.name for file in PACKAGE.iterdir() if (file / "__init__.py").exists()}
    assert rooms <= {*KNOWS, *TOP}
    assert rooms <= set(disttutor._ROOMS)


def test_imports_run_downward_only():
    upward = []
    for file in files():
        room = room_of(file)
        if room in KNOWS:
            for module, line in imports(file):
                other = module.split(".")[1] if module.startswith("disttutor.") else room
                if other not in {room, "__version__"} | KNOWS[room] | TOOLS:
                    upward.append(f"{file.relative_to(ROOT)}:{line}: {room} must not import {module}")
    assert upward == []


def test_tools_know_nothing_of_the_house():
    assert all(module in sys.stdlib_module_names for name in TOOLS for module, _ in imports(PACKAGE / f"{name}.py"))


def test_plans_are_plain_data():
    foreign = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for file in files()
        if room_of(file) == "plans"
        for module, line in imports(file)
        if module.split(".")[0] not in {*sys.stdlib_module_names, "disttutor"}
    ]
    assert foreign == []


def test_figures_hold_no_widgets():
    widgets = [file for file in files() if room_of(file) == "figures" for m, _ in imports(file) if "widget" in m]
    assert widgets == []


def test_what_is_imported_is_declared_and_what_is_declared_is_used():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.match(r"[\w-]+", text)[0] for text in project["dependencies"]}
    names = {IMPORTED_AS.get(name, name) for name in declared}
    used = {module.split(".")[0] for file in files() for module, _ in imports(file)}
    third_party = used - set(sys.stdlib_module_names) - {"disttutor"}
    assert third_party - names - set(COMES_WITH) == set()
    assert set(COMES_WITH.values()) <= declared
    assert names - third_party - STARTED_AS_A_PROGRAM == set()


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout.splitlines()[-1]))


HEAVY = {"torch", "numpy", "matplotlib", "IPython", "ipywidgets", "sklearn", "rich", "typer", "tqdm", "cloudpickle"}


def test_importing_the_package_loads_nothing_heavy():
    loaded = loaded_by("import disttutor")
    assert loaded & HEAVY == set()
    assert {name for name in loaded if name.startswith("disttutor.")} == set()


def test_plans_load_without_torch():
    assert loaded_by("import disttutor.plans") & HEAVY == set()


def test_cards_load_nothing_heavy_until_they_are_asked():
    assert loaded_by("import disttutor.cards") & {*HEAVY, "anywidget", "genanki", "fsrs"} == set()


@pytest.mark.parametrize("name", disttutor.__all__)
def test_every_public_name_is_there(name):
    assert getattr(disttutor, name) is not None
    assert name in dir(disttutor)


def test_a_wrong_name_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match="'disttutor' has no attribute 'klaster'"):
        _ = disttutor.klaster


IN_A_KERNEL = """
import types
calls = []
shell = types.SimpleNamespace(kernel={kernel})
sys.modules["ipykernel"] = types.ModuleType("ipykernel")
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
sys.modules["disttutor.cluster"] = types.SimpleNamespace(prewarm=lambda: calls.append("started"))
import disttutor
print(calls)
"""


@pytest.mark.parametrize(("kernel", "calls"), [("object()", ["started"]), ("None", [])])
def test_ranks_are_prepared_when_the_package_is_imported_in_a_notebook_only(kernel, calls):
    code = "import sys\n" + IN_A_KERNEL.format(kernel=kernel)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == repr(calls)


def test_the_command_is_installed():
    (command,) = (e for e in metadata.entry_points(group="console_scripts") if e.name == "disttutor")
    assert command.value == "disttutor.cli:main"
