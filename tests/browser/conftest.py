"""`open_notebook`: a notebook in a real JupyterLab, seen by a real browser."""

import shutil
from pathlib import Path

import pytest
from in_jupyterlab import CHROMIUM, KERNEL, PATIENCE, QUIET, jupyterlab


@pytest.fixture
def open_notebook(tmp_path):
    """`open_notebook(path)`: a browser's page with a copy of the notebook in JupyterLab, its kernel idle.

    `page.errors` gathers what the browser complains of.
    """
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (on Debian: apt install chromium), so no real browser can open a lesson")
    from playwright.sync_api import sync_playwright

    folder, home = tmp_path / "lessons", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    with jupyterlab(folder, home) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)

        def open_it(notebook: Path):
            shutil.copy(notebook, folder)
            page = browser.new_page(viewport={"width": 1300, "height": 1500})
            page.set_default_timeout(PATIENCE)
            page.errors = []
            page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
            page.on("pageerror", lambda e: page.errors.append(str(e)))
            page.on("requestfailed", lambda r: page.errors.append(f"request failed: {r.url}"))
            page.goto(f"{url}lab/tree/{notebook.name}?reset")
            page.wait_for_selector(".jp-Notebook .jp-Cell")
            page.wait_for_function(f"() => {KERNEL} === 'idle'")
            return page

        yield open_it
        browser.close()
