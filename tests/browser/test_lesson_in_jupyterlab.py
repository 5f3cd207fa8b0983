"""A learner opens lesson 03 in JupyterLab, runs it and moves a slider. A real browser and a real server; no mouse.

A screenshot is kept in artifacts/ (ignored by git).
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LESSON = ROOT / "notebooks" / "03_data_parallelism.ipynb"
ARTIFACTS = ROOT / "artifacts"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
# The toolbar says idle before there is a kernel, and running a cell then opens a dialog: ask the session itself.
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status"
PATIENCE = 200_000          # milliseconds, for a machine that does other things too

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (on Debian: apt install chromium), "
                                                         "so no real browser can open the lesson")


@contextlib.contextmanager
def jupyterlab(folder: Path, home: Path) -> Iterator[str]:
    """The address of a JupyterLab that knows nothing of the user's own settings, workspaces and running servers."""
    env = {**os.environ, **{f"JUPYTER_{kind}_DIR": str(home / kind) for kind in ("CONFIG", "RUNTIME", "DATA")},
           "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
           "IPYTHONDIR": str(home / "ipython"), "DISTTUTOR_HOME": str(home / "progress"),
           "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
    news = home / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}')        # else a pop-up lies over the notebook
    with open(home / "log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
             "--IdentityProvider.token=", "--expose-app-in-browser", f"--ServerApp.root_dir={folder}"],
            env=env, stdout=log, stderr=log)
    try:
        yield _address(server, home)
    finally:
        server.terminate()
        server.wait(30)


def _address(server: subprocess.Popen, home: Path) -> str:
    end = time.monotonic() + 120
    while time.monotonic() < end and server.poll() is None:
        for info in (home / "RUNTIME").glob("jpserver-*.json"):
            if info.stat().st_size:
                return json.loads(info.read_text())["url"]
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{(home / 'log').read_text()}")


@pytest.fixture
def page(tmp_path):
    from playwright.sync_api import sync_playwright

    folder, home = tmp_path / "lessons", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    shutil.copy(LESSON, folder)
    with jupyterlab(folder, home) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1300, "height": 1500})
        page.set_default_timeout(PATIENCE)
        page.errors = []
        page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: page.errors.append(str(e)))
        page.on("requestfailed", lambda r: page.errors.append(f"request failed: {r.url}"))
        page.goto(f"{url}lab/tree/{LESSON.name}?reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_function(f"() => {KERNEL} === 'idle'")
        yield page
        browser.close()


def cell(page, id: str):
    """The cell with this id, scrolled to (JupyterLab draws only what is near)."""
    index = page.evaluate("""id => {
        const notebook = window.jupyterapp.shell.currentWidget.content;
        const index = notebook.widgets.findIndex(cell => cell.model.sharedModel.id === id);
        notebook.activeCellIndex = index;
        notebook.scrollToItem(index, 'start');
        return index; }""", id)
    found = page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')
    found.wait_for(state="attached")
    return found


def test_a_learner_runs_lesson_03_and_moves_a_slider(page):
    from playwright.sync_api import expect

    assert not page.locator("text=Error displaying widget").count()          # before anything is run
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    page.wait_for_function("""() => {
        const code = window.jupyterapp.shell.currentWidget.content.widgets.filter(c => c.model.type === 'code');
        return code.every(c => c.model.executionCount !== null && c.model.executionState === 'idle')
               && code.at(-1).model.executionCount === code.length; }""")
    failed = page.evaluate("""() => window.jupyterapp.shell.currentWidget.content.widgets
        .filter(c => c.model.type === 'code' && c.model.outputs.toJSON().some(o => o.output_type === 'error'
                     || (o.output_type === 'stream' && o.name === 'stderr')))
        .map(c => c.model.sharedModel.id)""")
    assert failed == []

    lab = cell(page, "run-lab")
    picture = lab.locator("img").first
    picture.wait_for()
    before = picture.get_attribute("src")
    assert "4 ranks" in picture.get_attribute("alt") or "rank 3" in picture.get_attribute("alt")
    slider = lab.locator(".noUi-handle").first
    slider.focus()
    slider.press("ArrowLeft")                                                  # from 4 ranks to 3
    lab.get_by_text("ranks 3, exchange overlapped").first.wait_for()
    lab.get_by_text("done in").wait_for()
    assert picture.get_attribute("src") != before
    assert not lab.locator("[role=alert]").count()

    redrawn = picture.get_attribute("src")
    lab.get_by_role("button", name="predicted").click()                        # drawn from the same run
    expect(picture).not_to_have_attribute("src", redrawn, timeout=PATIENCE)    # a new element stands in its place

    ring = cell(page, "ring-lab")
    ring.locator("img").wait_for()
    message = ring.locator(".noUi-handle").nth(1)
    message.focus()
    message.press("ArrowRight")
    ring.get_by_text("Each rank passes one chunk on").wait_for()

    cell(page, "run-lab")
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / "lesson-03-in-jupyterlab.png")
    assert page.errors == []
