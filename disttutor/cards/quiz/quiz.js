// The quiz: shows what the kernel says, tells it what the learner does, and keeps the focus where it belongs. While it
// has the focus JupyterLab's own keys rest (data-lm-suppress-shortcuts); Tab always goes on to the next element.

const PATIENCE = 4000;      // milliseconds until the learner is told that the kernel does not answer
const OF_A_FIELD = new Set(["Enter", "Escape"]);
let quizzes = 0;

// A key by what it types; by its place on the keyboard where the layout has no Latin letters (as a Devanagari one), or
// its digits only with Shift (as a French one).
function named(event) {
  if (event.key === " ") return "Space";
  if (/^Digit\d$/.test(event.code) && !event.shiftKey) return event.code.slice(5);
  if (/^[\x21-\x7e]$/.test(event.key)) return event.key.toUpperCase();
  return event.key.length === 1 ? event.code.replace(/^Key/, "") : event.key;
}

function render({ model, el }) {
  const name = `dq-${++quizzes}`;
  const ui = { card: "", text: "", order: [], keys: false, busy: null };
  const part = (tag, attributes = {}) => make(tag, attributes);
  const top = part("div");
  const question = part("div", { id: `${name}-question`, class: "dq-question" });
  const work = part("div", { class: "dq-work" });
  const hint = part("div", { class: "dq-hint", role: "alert" });
  const answered = part("div", { role: "status", "aria-live": "polite" });
  const said = part("div", { class: "dq-unseen", role: "status", "aria-live": "polite" });
  const next = part("div", { class: "dq-work" });
  const help = part("div");
  const root = make("section", { class: "disttutor-quiz", role: "group", tabindex: "0",
    "aria-roledescription": "flashcard", "aria-describedby": `${name}-question`, "data-lm-suppress-shortcuts": "true",
    "aria-keyshortcuts": "Space 1 2 3 4 U H E ? Escape" }, top, question, work, hint, answered, next, help, said);
  el.append(root);

  const act = (message) => {
    if (message.do === "keys") {
      ui.keys = !ui.keys;
      help.replaceChildren(...(ui.keys ? [keys()] : []));
      return;
    }
    if (ui.busy) return;
    ui.mine = true;
    ui.busy = setTimeout(() => {
      ui.busy = null;
      hint.textContent = "The kernel does not answer. Is another cell running? After a restart, run this cell again.";
    }, PATIENCE);
    try {
      model.send({ ...message, tick: model.get("shown").tick });
    } catch {
      clearTimeout(ui.busy);
      ui.busy = null;
      hint.textContent = "The kernel of this quiz is gone. Your answers are kept: run this cell again to go on.";
    }
  };
  const open = () => openLesson(model, model.get("shown").lesson, model.get("shown").section);

  const moved = (from, to) => {
    if (to < 0 || to >= ui.order.length) return;
    const [place] = ui.order.splice(from, 1);
    ui.order.splice(to, 0, place);
    draw();
    root.querySelector(`[data-place="${place}"]`)?.focus();
    said.textContent = `now step ${to + 1} of ${ui.order.length}`;
  };

  function draw() {
    const shown = model.get("shown");
    const isShown = shown.phase === "shown";
    if (ui.card !== shown.card) {
      Object.assign(ui, { card: shown.card, text: "", order: (shown.steps ?? []).map(([place]) => place) });
    }
    // Also what was given in another view, or before the page was loaded anew.
    if (shown.given != null && shown.typed) ui.text = shown.given;
    if (shown.given != null && shown.kind === "order") ui.order = [...shown.given];
    const over = shown.phase === "done";
    root.setAttribute("aria-label", over ? `${shown.title}, at the end`
      : `Card ${Math.min(shown.finished + 1, shown.total)} of ${shown.total}`);
    top.replaceChildren(...[...head(shown, act), ...notices(shown, act)].filter(Boolean));
    question.lang = shown.language ?? "en";
    question.replaceChildren(...(over ? [] : [
      make("div", { class: "dq-task", lang: "en" }, TASKS[shown.kind]), rendered(shown.question)]));
    work.lang = shown.language ?? "en";
    work.replaceChildren(...(over ? end(shown, act) : isShown ? recalled(shown) : before(shown, ui, act, moved)));
    hint.textContent = shown.hint;
    answered.replaceChildren(...(isShown ? [answer(shown)] : []));
    next.replaceChildren(...(isShown ? [...after(shown, act), ...origin(shown, open)].filter(Boolean) : []));
    said.textContent = "";
  }

  // What the learner gave stays on the page below the question when the answer shows.
  const recalled = (shown) => shown.kind === "choice" ? [choices(shown, act)]
    : shown.given == null ? []
    : shown.typed ? [field(shown, ui, act)]
    : shown.kind === "order" ? [make("div", { class: "dq-label" }, "Your order"), steps(shown, ui, moved)] : [];

  function settle() {
    const { phase, kind } = model.get("shown");
    const place = phase === "shown" ? next.querySelector(".dq-primary") ?? next.querySelector("[role=group]")
      : phase === "sure" || phase === "done" ? work.querySelector(".dq-primary")
      : work.querySelector(kind === "order" ? ".dq-step" : "input");
    // Who hears the page is told the question where the focus goes into it.
    if (place && phase === "asked") place.setAttribute("aria-describedby", question.id);
    (place ?? root).focus({ preventScroll: phase === "asked" });
    root.scrollIntoView({ block: "nearest" });
  }

  const changed = () => {
    clearTimeout(ui.busy);
    ui.busy = null;
    const inside = ui.mine || root.contains(document.activeElement);
    ui.mine = false;
    draw();
    if (inside) settle();
  };

  const leave = () => {
    const cell = el.closest(".jp-Cell");
    (cell ?? el.closest("[tabindex]") ?? document.body).focus();
    if (root.contains(document.activeElement)) document.activeElement.blur();
  };

  root.addEventListener("keydown", (event) => {
    if (event.isComposing || event.key === "Tab" || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.tagName === "INPUT";
    const key = named(event);
    if (typing && !OF_A_FIELD.has(key)) return;
    if (key === "Escape") {
      event.preventDefault();
      return typing ? root.focus() : leave();
    }
    if (event.repeat) return event.key.startsWith("Arrow") || event.preventDefault();    // a key held down is one press
    // On a button, a link or a fold these two do by themselves what they should.
    if ((key === "Enter" || key === "Space") && event.target.closest("button, summary, a")) return;
    const pressed = [...root.querySelectorAll("[data-keys]:not(:disabled)")].find((made) =>
      made.dataset.keys.split(" ").some((one) => one.toUpperCase() === key.toUpperCase()));
    if (pressed) {
      event.preventDefault();
      pressed.click();
    } else if (key === "Space") event.preventDefault();     // the page must not scroll away under the quiz
  });

  letSave(model, root);
  model.on("change:shown", changed);
  draw();
  return () => {
    clearTimeout(ui.busy);
    model.off("change:shown", changed);
  };
}

export default { render };
