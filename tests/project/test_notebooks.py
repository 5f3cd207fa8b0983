"""What nbval cannot see in a lesson: how it is stored, and whether it can be read without being run."""

import ast
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
MACHINE_PATH = re.compile(r"(?<![\w.~/])/(?:tmp|work|root|home|Users|mnt)/[\w.-]+|[A-Z]:\\\\?Users")
LARGEST = 2_000_000  # bytes


def source(cell: dict) -> str:
    return "".join(cell["source"])


def text_of(output: dict) -> Iterator[str]:
    """The parts of an output that are text (a picture's data are not)."""
    yield "".join(output.get("text", ""))
    for kind, data in output.get("data", {}).items():
        if not kind.startswith("image/"):
            text = data if isinstance(data, str) else "".join(data) if isinstance(data, list) else json.dumps(data)
            yield re.sub(r"data:[\w/+;=-]+;base64,[\w+/=]+", "", text)


def without_alt(text: str) -> bool:
    tags = re.findall(r"<img\b[^>]*>", text, flags=re.S)
    named = re.compile(r"""\balt=(["'])\s*[^"'\s]""")
    return any(not named.search(tag) for tag in tags) or bool(re.search(r"!\[\s*\]\(", text))


def problems(notebook: dict) -> Iterator[str]:
    """Say, one sentence each, what is wrong with a lesson as it is stored."""
    metadata = notebook["metadata"]
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if "widgets" in metadata:
        yield "widget state is stored"
    if metadata.get("kernelspec", {}).get("name") != "python3":
        yield "the kernel is not python3: JupyterLab would ask which one to start"
    if (notebook["nbformat"], notebook["nbformat_minor"]) < (4, 5):
        yield "older than nbformat 4.5: cells have no ids"
    if len({cell.get("id") for cell in notebook["cells"]}) < len(notebook["cells"]):
        yield "two cells have the same id"
    if [cell["execution_count"] for cell in code] != list(range(1, len(code) + 1)):
        yield "not run from top to bottom in one go"
    if not any("# NBVAL_CHECK_OUTPUT" in source(cell) for cell in code):
        yield "no number in it is checked: no cell has # NBVAL_CHECK_OUTPUT"
    if not any(kind.startswith("image/") or "<img" in text for cell in code for kind, text in shown(cell)):
        yield "no picture in it can be seen without running it"
    for number, cell in enumerate(notebook["cells"], 1):
        where = f"cell {number}: "
        if MACHINE_PATH.search(source(cell)):
            yield where + f"a path of one machine: {MACHINE_PATH.search(source(cell))[0]}"
        if cell["cell_type"] == "code":
            yield from (where + problem for problem in problems_of_code(cell))
        elif without_alt(source(cell)):
            yield where + "an image without alt text"


def shown(cell: dict) -> Iterator[tuple[str, str]]:
    for output in cell["outputs"]:
        for kind, data in output.get("data", {}).items():
            yield kind, "".join(data) if isinstance(data, list | str) else ""


def problems_of_code(cell: dict) -> Iterator[str]:
    plain = re.sub(r"^%matplotlib inline$", "", source(cell), flags=re.M)
    try:
        ast.parse(plain)
    except SyntaxError as error:
        yield f"not plain Python (a magic that fails goes unseen in the tests): {error.text or error.msg}".strip()
    if re.search(r"# *NBVAL_(SKIP|IGNORE_OUTPUT|RAISES_EXCEPTION)", source(cell)):
        yield "a lesson's cell may not be kept from being tested"
    if "# NBVAL_CHECK_OUTPUT" in source(cell) and not cell["outputs"]:
        yield "its output is to be checked, but none is stored"
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            yield f"it ended with {output['ename']}"
        if output.get("name") == "stderr":
            yield "it wrote to stderr: " + "".join(output["text"])[:60]
        data = output.get("data", {})
        html = "".join(data.get("text/html", ""))
        if "<svg" in html or ("image/svg+xml" in data and "image/png" not in data):
            yield "inline SVG, which is blank until the reader trusts the notebook: put it into an <img>"
        if without_alt(html):
            yield "an image without alt text"
        pictures = [kind for kind in data if kind.startswith("image/")]
        if any(not output.get("metadata", {}).get(kind, {}).get("alt") for kind in pictures) and "alt=" not in html:
            yield "an image without alt text"
        if found := next((m[0] for text in text_of(output) if (m := MACHINE_PATH.search(text))), None):
            yield f"a path of one machine in its output: {found}"


def test_every_lesson_is_stored_as_it_should_be():
    found = [f"{path.name}: {problem}" for path in LESSONS for problem in problems(json.loads(path.read_text()))]
    assert found == []


def test_every_lesson_has_a_number_and_a_name_and_is_not_heavy():
    assert [path.name for path in LESSONS if not re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", path.name)] == []
    assert [path.name for path in LESSONS if path.stat().st_size > LARGEST] == []
    numbers = [path.name[:2] for path in LESSONS]
    assert len(set(numbers)) == len(numbers)


GOOD = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3"}},
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# A lesson\n", "![a ring](ring.png)"]},
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "execution_count": 1,
            "source": ["%matplotlib inline\n", "# NBVAL_CHECK_OUTPUT\n", "print(7)"],
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["7\n"]},
                {"output_type": "display_data", "metadata": {}, "data": {"text/html": ['<img alt="seven" src="x">']}},
            ],
        },
    ],
}


def changed(**of_code) -> dict:
    notebook = copy.deepcopy(GOOD)
    notebook["cells"][1].update(of_code)
    return notebook


def with_output(output: dict) -> dict:
    return changed(outputs=[*GOOD["cells"][1]["outputs"], output])


def display(metadata: dict | None = None, **data) -> dict:
    kinds = {"html": "text/html", "png": "image/png", "svg": "image/svg+xml"}
    data = {kinds[kind]: value for kind, value in data.items()}
    return with_output({"output_type": "display_data", "metadata": metadata or {}, "data": data})


BAD = {
    "widget state": {**GOOD, "metadata": {**GOOD["metadata"], "widgets": {}}},
    "not python3": {**GOOD, "metadata": {}},
    "same id": {**GOOD, "cells": [{**cell, "id": "a"} for cell in GOOD["cells"]]},
    "top to bottom": changed(execution_count=3),
    "no number": changed(source="print(7)"),
    "no picture": changed(outputs=GOOD["cells"][1]["outputs"][:1]),
    "not plain Python": changed(source="# NBVAL_CHECK_OUTPUT\n%matplotlob inline\nprint(7)"),
    "kept from being tested": changed(source="# NBVAL_CHECK_OUTPUT\n# NBVAL_SKIP\nprint(7)"),
    "none is stored": changed(outputs=[]),
    "ended with ValueError": with_output({"output_type": "error", "ename": "ValueError"}),
    "wrote to stderr": with_output({"output_type": "stream", "name": "stderr", "text": ["a warning"]}),
    "inline SVG": display(html='<svg role="img"></svg>'),
    "blank until": display(svg="<svg></svg>"),
    "image without alt": display(html='<img src="x">'),
    "without alt text": display(html='<img src="x" alt="">'),
    "an image without": display(png="iVBO"),
    "in its output": with_output({"output_type": "stream", "name": "stdout", "text": ["saved to /home/ann/picture"]}),
    "a path of one machine: /tmp/x": changed(source="# NBVAL_CHECK_OUTPUT\nopen('/tmp/x.py')"),
}


def test_the_rules_pass_a_good_lesson():
    assert list(problems(GOOD)) == []
    assert list(problems(display(png="iVBO", metadata={"image/png": {"alt": "a ring"}}))) == []
    assert list(problems(display(html='<img alt="a ring" src="data:image/svg+xml;base64,/tmp/abc/root/x==">'))) == []
    assert list(problems(changed(source="# NBVAL_CHECK_OUTPUT\nratio = 'a/home/b', 1/2"))) == []


@pytest.mark.parametrize("sentence", BAD)
def test_the_rules_find(sentence):
    assert any(sentence in problem for problem in problems(BAD[sentence])), list(problems(BAD[sentence]))
