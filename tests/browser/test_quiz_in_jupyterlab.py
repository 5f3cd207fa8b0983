"""The quiz in a real JupyterLab: by keyboard only, without a key that leaks, with progress that stays."""

import json
import re
from pathlib import Path

from in_jupyterlab import KERNEL, PATIENCE, cell, run_all, screenshot
from quiz_learner import ROOT, TOO_WIDE, Learner

DECK = r'''
deck = "disttutor/03-data-parallelism"
lesson = 3
[[card]]
id = "ring-bytes"
en = ["How many bytes of $S = WIDE$ does each of $N$ ranks send?", "$\\frac{2(N-1)}{N} S$, a `vector<int>` or not."]
hi = ["$N$ ranks mein har rank $S$ ke kitne bytes bhejta hai?", "$\\frac{2(N-1)}{N} S$."]
section = "Why it adds up"
source = "Patarasuk and Yuan 2009, section 3"
[[card]]
id = "kept-whole"
kind = "choice"
en = ["What does every rank keep whole?", "It does forward and backward by itself."]
hi = ["Har rank kya poora rakhta hai?", "Forward aur backward akele karta hai."]
[[card.option]]
en = "The data set"
hi = "Data set"
why = ["The data are what is split.", "Data hi to banta hai."]
[[card.option]]
en = "The model"
hi = "Model"
right = true
[[card.option]]
en = "Nothing"
hi = "Kuch nahin"
why = ["That is ZeRO stage 3.", "Wo ZeRO stage 3 hai."]
[[card]]
id = "averaged-by"
kind = "cloze"
en = ["Gradients are averaged by an ==all-reduce==.", "So all updates are the same."]
hi = ["Gradients ka average ==all-reduce== se hota hai.", "Isliye sab updates ek jaise hain."]
[[card]]
id = "one-step"
kind = "order"
en = ["Bring one step into order.", "The exchange comes before the update."]
hi = ["Ek step ko order mein lagao.", "Exchange update se pehle aata hai."]
[[card.step]]
en = "1 forward"
hi = "1 forward"
[[card.step]]
en = "2 backward"
hi = "2 backward"
[[card.step]]
en = "3 update"
hi = "3 update"
'''.replace("WIDE", " + ".join(f"s_{{{n}}}" for n in range(60)))
CODE = {
    "quiz": f"""from disttutor.cards import Card, Drawn, Face, read_deck
from disttutor.cards.quiz import widget as room
def draw(random):
    n = random.randrange(2, 99)
    face = Face(f"Twice {{n}} ranks are how many?", f"$2 \\\\cdot {{n}} = {{2 * n}}$")
    return Drawn({{"en": face}}, 2 * n, "ranks", 0)
cards = (*read_deck({DECK!r}), Card(id="twice", deck="disttutor/03", kind="number", lesson=3, draw=draw))
room.our_cards = lambda: cards
room.quiz(3)""",
    "count": """from disttutor.cards.progress import here
print(len(here().reviews), "reviews,", len(here().states), "cards")""",
}
HEADINGS = ["# Lesson", *[f"Words {n}.\n\n" * 30 for n in range(4)], "## Why it adds up\n\n" + "Because.\n\n" * 80]
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(
    (c) => [c.model.sharedModel.id, c.model.type, c.model.sharedModel.source.length])"""


def notebook(path: Path, cells: list[tuple[str, str, str]]) -> Path:
    """A notebook of cells (type, id, source)."""
    made = [{"cell_type": kind, "id": id, "metadata": {}, "source": source,
             **({"execution_count": None, "outputs": []} if kind == "code" else {})} for kind, id, source in cells]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_a_learner_with_only_a_keyboard(open_notebook, tmp_path):
    from playwright.sync_api import expect

    lessons = tmp_path / "lessons"
    notebook(lessons / "03_other_lesson.ipynb",
             [*(("markdown", f"m{n}", source) for n, source in enumerate(HEADINGS)), ("code", "last", "1")])
    page = open_notebook(notebook(tmp_path / "recall.ipynb", [
        ("markdown", "title", "# Recall"), *(("code", name, source) for name, source in CODE.items())]))
    page.set_default_timeout(30_000)
    run_all(page)
    cell(page, "quiz")
    learner, root = Learner(page), page.locator(ROOT)
    root.focus()
    keys_stay_in_the_quiz(page, learner)
    roles_and_languages(page, learner)
    themes(page, learner)
    narrow(page, learner)

    while learner.task() == "answer in your head":
        learner.card()
    learner.press("u")                                          # back to the basic card, as it was
    assert learner.task() == "answer in your head"
    for _ in range(30):
        if not learner.task():
            break
        learner.card()
    expect(root).to_contain_text("5 of 5 done")
    expect(root).to_contain_text("5 cards: 5 remembered at once.")
    learner.look()
    assert learner.pale == []                                   # nowhere in the whole review
    screenshot(page, "quiz-at-the-end")

    explained(page, learner)
    leaving(page, learner)
    after_a_restart(page, learner)
    without_a_kernel(page, lessons / "recall.ipynb")
    # JupyterLab's debugger complains where a kernel is restarted soon after its start.
    assert [error for error in page.errors if "debugger" not in error] == []


def keys_stay_in_the_quiz(page, learner) -> None:
    active = "window.jupyterapp.shell.currentWidget.content.activeCellIndex"
    before, active_before = page.evaluate(CELLS), page.evaluate(active)
    for key in ("x", "d", "d", "a", "b", "m", "0", "0", "j", "k", "ArrowDown", "ArrowUp", "y", "z", "Shift+M", "r"):
        page.keyboard.press(key)
    page.wait_for_timeout(300)                                  # a key that leaks acts a little later
    assert page.evaluate(CELLS) == before
    assert page.evaluate(active) == active_before
    assert page.locator(".jp-Dialog").count() == 0
    saved = "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"
    page.keyboard.press("Control+s")                            # but saving works as everywhere
    page.wait_for_function(saved)
    assert learner.focus()["inside"] and learner.task() == "answer in your head"
    for held in (False, True):                                  # a Tab that is held goes on too
        learner.root.focus()
        presses = 0
        while learner.focus()["inside"] and presses < 40:
            page.keyboard.down("Tab")
            if not held:
                page.keyboard.up("Tab")
            presses += 1
        page.keyboard.up("Tab")
        assert 3 < presses < 40
    learner.root.focus()


def roles_and_languages(page, learner) -> None:
    from playwright.sync_api import expect

    root = learner.root
    expect(root).to_have_attribute("aria-roledescription", "flashcard")
    expect(root).to_have_attribute("aria-label", "Card 1 of 5")
    question = root.locator(".dq-question")
    expect(question).to_have_attribute("lang", "en")
    learner.press("h")
    expect(question).to_have_attribute("lang", "hi-Latn")
    expect(question).to_contain_text("har rank")
    learner.press("h", "3")                                     # English again; 75 % sure
    expect(root.locator("[role=status] .dq-answer")).to_contain_text("vector<int>")
    assert root.locator(".dq-answer math").get_attribute("aria-label") == r"\frac{2(N-1)}{N} S"
    assert learner.focus()["label"] == "Did you know it?"       # the focus has gone to the rating
    learner.press("1")
    learner.press("u")
    assert learner.task() == "answer in your head" and not root.locator(".dq-answer").count()


def themes(page, learner) -> None:
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        page.wait_for_timeout(500)                              # the style sheet comes after the name
        learner.root.focus()
        learner.press("3")
        learner.look()
        screenshot(page, f"quiz-{theme.split()[-1].lower()}")
        learner.press("1", "u")


def narrow(page, learner) -> None:
    size = page.viewport_size
    page.evaluate("window.jupyterapp.shell.collapseLeft()")
    page.set_viewport_size({"width": 500, "height": 900})
    page.wait_for_timeout(300)
    for _ in range(2):
        assert page.evaluate(TOO_WIDE) == []
        learner.press("?")
    screenshot(page, "quiz-narrow")
    page.set_viewport_size(size)
    page.evaluate("window.jupyterapp.shell.expandLeft()")


def explained(page, learner) -> None:
    """E opens the lesson at the heading."""
    learner.press("p")
    while learner.task() != "answer in your head":
        learner.card()
    learner.press("Space")
    page.keyboard.press("e")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.context?.path === '03_other_lesson.ipynb'")
    page.wait_for_function("""() => {
        const heading = [...document.querySelectorAll('h2')].find((h) => h.innerText.includes('Why it adds up'));
        const top = heading?.getBoundingClientRect().top;
        return top > 0 && top < innerHeight - 50; }""")
    screenshot(page, "quiz-explains")
    page.evaluate("window.jupyterapp.shell.currentWidget.dispose()")
    page.evaluate("window.jupyterapp.commands.execute('docmanager:open', { path: 'recall.ipynb' })")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.context?.path === 'recall.ipynb'")


def leaving(page, learner) -> None:
    """Escape gives the focus back to the notebook, whose own keys act again."""
    learner.root.focus()
    page.keyboard.press("Escape")
    assert not learner.focus()["inside"]
    before = len(page.evaluate(CELLS))
    page.keyboard.press("b")
    page.wait_for_function(f"() => ({CELLS})().length === {before + 1}")
    page.keyboard.press("d")
    page.keyboard.press("d")
    page.wait_for_function(f"() => ({CELLS})().length === {before}")


def after_a_restart(page, learner) -> None:
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_for_function(f"() => {KERNEL} === 'idle'")
    run_all(page)
    cell(page, "quiz")
    learner.root.get_by_text("Nothing is due now").wait_for()
    assert re.match("[5-9] reviews, 5 cards", cell(page, "count").locator(".jp-OutputArea-output").inner_text())


def without_a_kernel(page, path: Path) -> None:
    """What nbconvert makes of the notebook shows every card, with no kernel and no network."""
    from nbconvert import HTMLExporter
    from playwright.sync_api import expect

    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    assert "widgets" not in json.loads(path.read_text())["metadata"]
    html = path.with_suffix(".html")
    html.write_text(HTMLExporter().from_filename(str(path))[0])
    static = page.context.browser.new_page(java_script_enabled=False)
    static.context.set_offline(True)
    static.goto(html.as_uri())
    boxes = static.locator(".disttutor-cards details")
    expect(boxes).to_have_count(5, timeout=PATIENCE)
    for question in ("How many bytes of", "every rank keep whole?", "averaged by an", "into order", "are how many?"):
        expect(boxes.locator("summary", has_text=question)).to_be_visible()
    boxes.nth(1).locator("summary").click()
    expect(boxes.nth(1)).to_contain_text("That is ZeRO stage 3.")
    expect(boxes.nth(1).locator("[lang=hi-Latn]")).to_contain_text("Data hi to banta hai.")
    static.close()
