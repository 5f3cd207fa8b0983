"""A learner opens lesson 03 in JupyterLab, runs it and moves a slider. No mouse. A screenshot is kept in artifacts/."""

from in_jupyterlab import PATIENCE, ROOT, cell, run_all, screenshot


def test_a_learner_runs_lesson_03_and_moves_a_slider(open_notebook):
    from playwright.sync_api import expect

    page = open_notebook(ROOT / "notebooks" / "03_data_parallelism.ipynb")
    assert not page.locator("text=Error displaying widget").count()          # before anything is run
    run_all(page)

    lab = cell(page, "run-lab")
    picture = lab.locator(".disttutor-live svg").first                        # the image, made live
    picture.wait_for()
    before = picture.get_attribute("aria-label")
    assert "4 ranks" in before
    slider = lab.locator(".noUi-handle").first
    slider.focus()
    slider.press("ArrowLeft")                                                  # from 4 ranks to 3
    lab.get_by_text("ranks 3, exchange overlapped").first.wait_for()
    lab.get_by_text("done in").wait_for()
    expect(picture).not_to_have_attribute("aria-label", before, timeout=PATIENCE)
    assert not lab.locator("[role=alert]").count()

    redrawn = picture.get_attribute("aria-label")
    lab.get_by_role("button", name="predicted").click()                        # drawn from the same run
    expect(picture).not_to_have_attribute("aria-label", redrawn, timeout=PATIENCE)

    ring = cell(page, "ring-lab")
    ring.locator(".disttutor-live svg").wait_for()
    message = ring.locator(".noUi-handle").nth(1)
    message.focus()
    message.press("ArrowRight")
    ring.get_by_text("Each rank passes one chunk on").wait_for()

    cell(page, "run-lab")
    screenshot(page, "lesson-03-in-jupyterlab")
    assert page.errors == []
