"""Someone who uses the quiz with the keyboard, and what can be measured of how it looks."""

import re

ROOT = ".disttutor-quiz"
# All that is shown but the line that says that a busy kernel does not answer yet.
SHOWN = f"() => [...document.querySelectorAll('{ROOT} > :not(.dq-hint)')].map((part) => part.outerHTML).join()"
# Contrast of every text in the quiz with what lies behind it, as WCAG 2 defines it; opacity counts.
CONTRASTS = """() => {
  const root = document.querySelector('.disttutor-quiz'), canvas = new OffscreenCanvas(1, 1).getContext('2d');
  const known = {}, rgba = (colour) => known[colour] ??= (() => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; })();
  const over = (top, below) => { const a = top[3]; return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)); };
  const light = (c) => c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { const own = rgba(getComputedStyle(e).backgroundColor);
                          return own[3] === 1 ? own.slice(0, 3) : over(own, behind(e.parentElement)); };
  const opacity = (e) => e === root ? 1 : getComputedStyle(e).opacity * opacity(e.parentElement);
  const found = [], walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, words = walker.currentNode.textContent.trim();
    if (!words || e.closest(':disabled, .dq-unseen')) continue;
    const ground = behind(e), ink = rgba(getComputedStyle(e).color);
    const [one, other] = [light(over([...ink.slice(0, 3), ink[3] * opacity(e)], ground)), light(ground)].sort();
    found.push([(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), words]);
  }
  return found; }"""
# What sticks out of its place; a text that is too wide scrolls there.
TOO_WIDE = f"""() => [...document.querySelectorAll('{ROOT}, {ROOT} *:not(.dq-unseen *, .dq-text *)')]
    .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'visible')
    .map((e) => e.outerHTML.slice(0, 80))"""


class Learner:
    """Someone who knows all the answers and has only a keyboard."""

    def __init__(self, page):
        self.page, self.root = page, page.locator(ROOT)
        self.pale: list[tuple[float, str]] = []         # words with too little contrast

    def press(self, *keys: str) -> None:
        """Press keys one after the other; each time wait until the quiz has answered."""
        for key in keys:
            before = self.page.evaluate(SHOWN)
            self.page.keyboard.press(key)
            self.page.wait_for_function(f"before => ({SHOWN})() !== before", arg=before)

    def look(self) -> None:
        """Note the words that can hardly be read."""
        self.pale += [found for found in self.page.evaluate(CONTRASTS) if found[0] < 4.5]

    def task(self) -> str:
        """What is to be done now; "" at the end."""
        tasks = self.root.locator(".dq-task")
        return tasks.inner_text().lower() if tasks.count() else ""

    def words(self, part: str = ".dq-question > .dq-text") -> str:
        return self.root.locator(part).inner_text()

    def card(self) -> None:
        """Answer the card that is asked, and rate it where that is asked for."""
        self.look()
        match self.task():
            case "answer in your head":
                self.press("4")
                last = "2"
            case "choose one":
                options = self.root.locator("button.dq-option .dq-text").all_inner_texts()
                self.press(str(options.index("The model") + 1), "4")
                last = "Enter"
            case "fill the gap":
                self.page.keyboard.type("All reduce")
                self.press("Enter", "4")
                last = "Space"
            case "work it out":
                self.page.keyboard.type(str(2 * int(re.search(r"\d+", self.words())[0])))
                self.press("Enter", "4")
                last = "Enter"
            case "bring into order":
                for _ in range(3):
                    self.sort_once()
                self.page.locator(f"{ROOT} .dq-step").last.focus()
                self.press("Enter", "4")
                last = "Enter"
        self.look()
        self.press(last)

    def sort_once(self) -> None:
        for place in (0, 1):
            one, other = self.root.locator(".dq-step .dq-text").all_inner_texts()[place:place + 2]
            if one > other:
                self.page.locator(f"{ROOT} .dq-step").nth(place).focus()
                self.press("Alt+ArrowDown" if place else "ArrowDown")

    def focus(self) -> dict:
        """Where the focus is: in the quiz or not, under which label."""
        return self.page.evaluate("""root => ({ inside: !!document.activeElement.closest(root),
                                             label: document.activeElement.getAttribute('aria-label') })""", ROOT)
