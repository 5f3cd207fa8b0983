"""A real JupyterLab and a real browser for tests, and what a learner does in them."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "artifacts"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
# The toolbar says idle before there is a kernel, and running a cell then opens a dialog: ask the session itself.
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status"
PATIENCE = 200_000          # milliseconds, for a machine that does other things too

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


def run_all(page) -> None:
    """Run the notebook from top to bottom; no cell may fail or write to stderr."""
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


def screenshot(page, name: str) -> None:
    """Keep a picture of the page in artifacts/ (ignored by git)."""
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")
