"""The concept map in a real JupyterLab: a concept opens its lesson at the place, keys stay in the widget, gaps are
filled in without a mouse."""

import json
import shutil
from pathlib import Path

from in_jupyterlab import KERNEL, PATIENCE, ROOT, cell, run_all, screenshot

from disttutor.labs.concept_gaps import gaps

CELLS = {
    "map": "from disttutor.labs.concept_map import concept_map, fill_in\nconcept_map()",
    "gaps": "fill_in(1, names=2, lines=1)",
    "after": "from disttutor.cards.progress.progress import here\nsorted(here().puzzles)",
}
SAVED = """() => { const notebook = window.jupyterapp.shell.currentWidget;
    const cells = notebook.content.model.sharedModel.cells.map(cell => [cell.id, cell.cell_type]);
    const dialog = !!document.querySelector('.jp-Dialog');
    return [notebook.context.path, JSON.stringify(cells), notebook.content.activeCellIndex, dialog]; }"""


def notebook(folder: Path) -> Path:
    """A notebook of these cells."""
    cells = [{"cell_type": "code", "id": name, "metadata": {}, "execution_count": None, "outputs": [],
              "source": source} for name, source in CELLS.items()]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = folder / "16_review.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_concepts_open_their_lessons_and_gaps_are_filled_in_by_keyboard(open_notebook, tmp_path):
    from playwright.sync_api import expect

    shutil.copy(ROOT / "notebooks" / "02_how_ranks_talk.ipynb", tmp_path / "lessons")
    page = open_notebook(notebook(tmp_path))
    run_all(page)

    # Walking through the map.
    shown = cell(page, "map")
    said = shown.get_by_role("status")
    shown.get_by_role("link", name="All-reduce, new, lesson 02, How ranks talk", exact=True).focus()
    expect(said).to_contain_text("Everybody brings numbers, and everybody goes home with their sum.", timeout=PATIENCE)
    expect(said).to_contain_text("Sab apne numbers laate hain")
    before = page.evaluate(SAVED)
    for key in ("x", "d", "d", "a", "b", "m", "0", "0", "j", "k", "Shift+Enter", "ArrowDown"):
        page.keyboard.press(key)
    expect(said).to_contain_text("Overlap (new)")              # the box below it; nothing else happened
    assert page.evaluate(SAVED) == before
    page.keyboard.press("ArrowUp")
    expect(said).to_contain_text("All-reduce (new)")
    page.keyboard.press("Tab")                                  # one stop of Tab for the whole map
    page.keyboard.press("Tab")
    expect(shown.get_by_role("button", name="Look again")).to_be_focused()

    # Gaps, with keys alone.
    asked = gaps(1, names=2, lines=1)
    filled = cell(page, "gaps")
    filled.get_by_role("combobox").first.focus()
    for gap in asked.gaps:
        for letter in gap.answer:                               # a list goes to what one types
            page.keyboard.press(letter if letter != " " else "Space")
        page.keyboard.press("Tab")
    expect(filled.get_by_role("button", name="Check")).to_be_focused()
    page.keyboard.press("Enter")
    expect(filled.get_by_role("status")).to_have_text("All 3 are right: map 1 is solved.", timeout=PATIENCE)
    expect(filled.locator(".drawing")).to_contain_text(asked.gaps[0].answer.split()[0])
    expect(filled).to_contain_text(asked.gaps[0].reasons["en"][0])
    for key in ("x", "d", "d", "m", "0", "0"):
        page.keyboard.press(key)
    assert page.evaluate(SAVED)[:2] == before[:2] and not page.evaluate(SAVED)[3]
    screenshot(page, "concept-map-in-jupyterlab")

    # It is written down.
    cell(page, "after")
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell') }")
    expect(cell(page, "after")).to_contain_text("['concept-map-1']", timeout=PATIENCE)

    # Without its kernel the map says so, and still leads to the lessons.
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_for_function(f"() => {KERNEL} === 'idle'")
    filled = cell(page, "gaps")
    filled.get_by_role("button", name="Check").click()
    expect(filled.get_by_role("status")).to_contain_text("The kernel of this map is gone")
    shown = cell(page, "map")
    shown.get_by_role("link", name="Memory, new, lesson 01, Why distribute (to come)", exact=True).focus()
    for _ in range(2):
        page.keyboard.press("Enter")
    expect(said.get_by_text("There is nothing to open yet")).to_have_count(1)

    # Enter opens the lesson, at its heading.
    shown.get_by_role("link", name="Interconnect, new, lesson 02, How ranks talk", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.context?.path === '02_how_ranks_talk.ipynb'")
    heading = page.locator(".jp-MainAreaWidget:not(.lm-mod-hidden) h2", has_text="Why").first
    expect(heading).to_be_in_viewport(timeout=PATIENCE)
    assert not page.locator(".jp-Dialog").count()               # nobody is asked whether the widget may do that
    # JupyterLab's debugger complains where a kernel is restarted soon after its start.
    assert [error for error in page.errors if "debugger" not in error] == []
