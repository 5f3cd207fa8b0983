"""Run lessons from top to bottom and store what each cell gave, in the form in which lessons are committed.

    python .ci/run_lessons.py [notebooks/03_data_parallelism.ipynb …]      (default: all of them)

Controls are stored as their text only: a widget without its kernel is an empty box. Times of cells and the version of
Python are not stored, and the progress of whoever runs this is not looked at, so that a second run changes only what
really came out differently.
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

WIDGET = "application/vnd.jupyter.widget-view+json"
LESSONS = Path(__file__).resolve().parent.parent / "notebooks"


def run(path: Path) -> None:
    """Execute a notebook in place. Raises nbclient's CellExecutionError at a cell that fails; stores nothing then."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}},
                            store_widget_state=False, record_timing=False)
    client.execute()
    notebook, _ = CoalesceStreamsPreprocessor().preprocess(notebook, {})
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="disttutor-progress-") as nobody:
        os.environ["DISTTUTOR_HOME"] = nobody
        for lesson in map(Path, sys.argv[1:] or sorted(LESSONS.glob("[0-9]*.ipynb"))):
            print(f"running {lesson.name}", flush=True)
            run(lesson)
