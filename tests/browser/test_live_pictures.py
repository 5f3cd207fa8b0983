"""What one can point at, click and drag in a pipeline's lab, in a real JupyterLab."""

import json
from pathlib import Path

from in_jupyterlab import PATIENCE, cell, run_all, screenshot

CELLS = {
    "look": "from disttutor.labs.pipelines import pipeline\npipeline(ranks=2, microbatches=3)",
    "edit": "from disttutor.labs.schedule_editor import editor\neditor(ranks=2, microbatches=2, schedule='GPipe')",
}


def notebook(folder: Path) -> Path:
    """A notebook of these cells."""
    cells = [{"cell_type": "code", "id": name, "metadata": {}, "execution_count": None, "outputs": [],
              "source": source} for name, source in CELLS.items()]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = folder / "live.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_boxes_tell_what_they_are_and_orders_can_be_changed(open_notebook, tmp_path):
    from playwright.sync_api import expect

    page = open_notebook(notebook(tmp_path))
    run_all(page)

    look = cell(page, "look")
    said = look.locator(".disttutor-live [role=status]").first
    box = look.locator(".disttutor-live svg rect", has=page.locator("title", has_text="backward stage 1 microbatch 2"))
    box.first.hover()
    expect(said).to_contain_text("rank 1: backward stage 1 microbatch 2", timeout=PATIENCE)
    box.first.click()
    look.locator(".disttutor-live svg rect", has=page.locator("title", has_text="forward stage 0 microbatch 0")
                 ).first.hover()
    expect(said).to_contain_text("backward stage 1 microbatch 2")              # what was clicked stays
    with page.expect_download() as download:
        look.get_by_role("button", name="Save the trace").click()
    trace = json.loads(Path(download.value.path()).read_text())
    assert {"s", "f", "X", "C"} <= {event["ph"] for event in trace["traceEvents"]}
    screenshot(page, "pipeline-lab-in-jupyterlab")

    edit = cell(page, "edit")
    orders = edit.locator(".disttutor-orders")
    cells_before = page.locator(".jp-Cell").count()
    third = orders.get_by_role("button", name="backward B0, place 3 of 4 of rank 0")
    third.focus()
    third.press("ArrowLeft")                            # F0 B0 F1 B1 on rank 0: rank 1 wants F1 first
    alert = edit.locator("[role=alert]")
    expect(alert).to_contain_text("a cycle: rank 0's recv boundary 0 microbatch 0 from rank 1", timeout=PATIENCE)
    orders.get_by_role("button", name="backward B0, place 2 of 4 of rank 0").press("x")     # JupyterLab's key for cut
    assert page.locator(".jp-Cell").count() == cells_before
    orders.get_by_role("textbox", name="order of rank 1 as text").fill("F0 B0 F1 B1")
    orders.get_by_role("textbox", name="order of rank 1 as text").press("Enter")
    edit.get_by_text("done in").wait_for()
    expect(alert).to_have_count(0, timeout=PATIENCE)
    orders.get_by_role("button", name="forward F1, place 3 of 4 of rank 1").drag_to(
        orders.get_by_role("button", name="backward B0, place 2 of 4 of rank 1"))
    expect(orders.get_by_role("textbox", name="order of rank 1 as text")).to_have_value("F0 F1 B0 B1", timeout=PATIENCE)
    orders.get_by_role("button", name="Undo").click()
    expect(orders.get_by_role("textbox", name="order of rank 1 as text")).to_have_value("F0 B0 F1 B1", timeout=PATIENCE)
    screenshot(page, "schedule-editor-in-jupyterlab")
    assert page.errors == []
