// The pieces of a quiz's page. Each function makes elements from what the kernel says (`shown`); a key is pressed by
// clicking the button that carries it, so what can be pressed is what can be seen.

const TASKS = {
  basic: "Answer in your head", choice: "Choose one", number: "Work it out", cloze: "Fill the gap",
  order: "Bring into order",
};
const LETTERS = "abcde";
const HELP = [
  ["Space or Enter", "show the answer, go on"], ["1 to 9, a to e", "choose an option"],
  ["1 to 4", "how sure you are, before the answer; how it went, after it"],
  ["↑ ↓", "move the step that has the focus"],
  ["O", "overrule how a typed answer was judged"], ["U", "undo, as often as you like"], ["H", "Hinglish or English"],
  ["E", "explain: open the lesson"], ["Esc", "leave the field, then the quiz"], ["?", "these keys"],
];

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null && child !== false));
  return element;
}

// HTML that Python made of a card's Markdown, with all HTML of the card itself taken out. Nothing else goes in as HTML.
function rendered(html, attributes = {}) {
  const element = make("div", { dir: "auto", ...attributes, class: `dq-text ${attributes.class ?? ""}` });
  element.innerHTML = html;
  return element;
}

// keys: what presses the button, the first of them is shown on it.
function button(words, keys, act, attributes = {}) {
  const [key] = keys.split(" ");
  return make("button",
    { type: "button", "data-keys": keys || null, "aria-keyshortcuts": key || null, onclick: act, ...attributes },
    make("span", {}, words), key && make("kbd", { "aria-hidden": "true" }, key));
}

function row(label, ...buttons) {
  return make("div", { class: "dq-row", role: "group", tabindex: "-1", "aria-label": label },
    label && make("span", { class: "dq-label", "aria-hidden": "true" }, label), ...buttons);
}

function head(shown, act) {
  const other = (shown.languages ?? []).find(([tag]) => tag !== shown.language);
  const part = shown.total ? shown.finished / shown.total : 1;
  return [
    make("div", { class: "dq-head" },
      make("strong", {}, shown.title),
      make("span", { class: "dq-count" }, shown.total ? `${shown.finished} of ${shown.total} done` : ""),
      make("span", { class: "dq-space" }),
      other && button(other[1], "H", () => act({ do: "language" }), { class: "dq-quiet", lang: other[0] }),
      button("Undo", "U", () => act({ do: "undo" }), { class: "dq-quiet", disabled: shown.undo ? null : "" }),
      button("Keys", "?", () => act({ do: "keys" }), { class: "dq-quiet" })),
    make("div", { class: "dq-bar", role: "progressbar", "aria-label": "cards done", "aria-valuemin": 0,
      "aria-valuemax": shown.total, "aria-valuenow": shown.finished },
    make("div", { style: `width:${100 * part}%` })),
  ];
}

function notices(shown, act) {
  const adopted = shown.adoptions.map((sentence, place) => make("div", { class: "dq-notice" },
    make("span", {}, sentence), button("Reject", "", () => act({ do: "reject", place }), { class: "dq-quiet" })));
  const remarks = shown.remarks.map((sentence) => make("div", { class: "dq-notice" }, sentence));
  const last = shown.error.trim().split("\n").at(-1);
  const error = shown.error && make("details", { class: "dq-notice dq-wrong", role: "alert" },
    make("summary", {}, `Something went wrong: ${last}`), make("pre", {}, shown.error));
  return [shown.notice && make("div", { class: "dq-notice" }, shown.notice), ...remarks, ...adopted, error];
}

function choices(shown, act) {
  return make("div", { class: "dq-options" }, ...shown.options.map((option, n) => {
    const chosen = shown.given === option.place;
    const judged = "right" in option;
    const words = !judged ? "" : option.right ? (chosen ? "✓ right, your choice" : "✓ right")
      : chosen ? "✗ your choice" : "";
    // While it is asked how sure one is, digits mean that; letters still change the choice.
    const keys = [shown.phase === "asked" && String(n + 1), LETTERS[n]].filter(Boolean);
    const inside = [keys.length > 0 && make("kbd", { "aria-hidden": "true" }, keys[0]),
      make("div", { class: "dq-option-text" }, rendered(option.text),
        words && make("strong", { class: "dq-mark" }, words),
        judged && option.why && rendered(option.why, { class: "dq-why" }))];
    if (judged) {
      const look = option.right ? "dq-right" : chosen ? "dq-wrong" : "";
      return make("div", { class: `dq-option ${look}` }, inside[1]);
    }
    return make("button", { type: "button", class: "dq-option", "aria-pressed": String(chosen),
      "data-keys": keys.join(" "), onclick: () => act({ do: "answer", given: option.place }) },
    ...inside.filter(Boolean));
  }));
}

function field(shown, ui, act) {
  const asked = shown.phase === "asked";
  const input = make("input", { type: "text", class: "dq-input", autocomplete: "off", spellcheck: "false",
    inputmode: shown.kind === "number" ? "text" : null, readonly: asked ? null : "",
    "aria-label": shown.kind === "number" ? `your answer${shown.unit && `, in ${shown.unit}`}` : "the missing words",
    placeholder: shown.kind === "number" ? "a number, like 1,234 or 3/11 or 1e9" : "type the missing words" });
  input.value = ui.text;
  input.addEventListener("input", () => (ui.text = input.value));
  return make("div", { class: "dq-row" }, input, shown.unit && make("span", { class: "dq-unit" }, shown.unit),
    asked && button("Check", "Enter", () => act({ do: "answer", given: ui.text }), { class: "dq-primary" }));
}

// The steps in the order in which the learner has brought them; once the right order shows, each with a mark.
function steps(shown, ui, moved) {
  const asked = shown.phase === "asked";
  const text = new Map(shown.steps);
  const mark = (place, n) => shown.order && (shown.order[n] === text.get(place) ? "✓ here" : "✗ not here");
  return make("ol", { class: "dq-steps" }, ...ui.order.map((place, n) => {
    const words = rendered(text.get(place));
    const move = (by) => moved(n, n + by);
    const item = make("li", { class: "dq-step", tabindex: asked ? "0" : null, "data-place": place,
      "aria-roledescription": asked ? "step to move" : null }, make("span", { class: "dq-number" }, `${n + 1}`), words,
    mark(place, n) && make("span", {}, mark(place, n)),
    asked && make("span", { class: "dq-arrows" },
      make("button", { type: "button", tabindex: "-1", "aria-label": "up", onclick: () => move(-1) }, "↑"),
      make("button", { type: "button", tabindex: "-1", "aria-label": "down", onclick: () => move(1) }, "↓")));
    item.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (by && asked && event.target === item) {
        event.preventDefault();
        move(by);
      }
    });
    return item;
  }));
}

function sureness(shown, act, label, ui) {
  const typing = shown.phase === "asked" && shown.typed;
  // Words that were typed are an answer, also where nobody pressed Enter after them.
  const sure = (percent) => act({ do: "sure", percent, ...(typing && ui.text.trim() ? { given: ui.text } : {}) });
  const buttons = shown.confidences.map((percent, n) => button(`${percent} %`, String(n + 1), () => sure(percent)));
  const show = button("Show the answer", shown.typed ? "Space" : "Space Enter", () => sure(null),
    { class: typing ? "dq-plain" : "dq-primary" });
  const made = row(buttons.length ? label : "", ...buttons, show);
  made.classList.add("dq-sure");
  return made;
}

// What can be done before the answer shows.
function before(shown, ui, act, moved) {
  const asked = shown.phase === "asked";
  const parts = [];
  if (shown.kind === "choice") parts.push(choices(shown, act));
  if (shown.typed) parts.push(field(shown, ui, act));
  if (shown.kind === "order") {
    parts.push(steps(shown, ui, moved));
    if (asked) {
      parts.push(row("Use the arrow keys, then", button("This is the order", "Space Enter",
        () => act({ do: "answer", given: ui.order }), { class: "dq-primary" })));
    }
  }
  if (!asked) parts.push(sureness(shown, act, "How sure are you?", ui));
  else if (shown.kind === "basic") parts.push(sureness(shown, act, "How sure are you that you know it?", ui));
  else if (shown.kind === "cloze") parts.push(sureness(shown, act, "Or answer in your head. How sure are you?", ui));
  else {
    const keys = { order: "", choice: "Space Enter" }[shown.kind] ?? "Space";
    parts.push(make("div", { class: "dq-row" }, button("Show the answer instead", keys,
      () => act({ do: "sure", percent: null }), { class: "dq-quiet" })));
  }
  return parts;
}

// The answer, for the live region.
function answer(shown) {
  const verdict = shown.verdict;
  const word = verdict && { true: "✓ Right", false: "✗ Not right", null: "? Compare" }[verdict.right];
  const look = verdict && { true: "dq-right", false: "dq-wrong", null: "" }[verdict.right];
  return make("div", { class: `dq-answer ${look ?? ""}`, lang: shown.language },
    verdict && make("div", { class: "dq-verdict", lang: "en" }, make("strong", {}, word),
      rendered(verdict.words, { class: shown.kind === "choice" ? "dq-unseen" : "" })),    // it stands by its option
    shown.kind === "order" && !verdict?.right && make("ol", { class: "dq-steps" }, ...shown.order.map((html, n) =>
      make("li", { class: "dq-step" }, make("span", { class: "dq-number" }, `${n + 1}`), rendered(html)))),
    rendered(shown.answer));
}

// What can be done once it shows.
function after(shown, act) {
  const overrule = shown.overrule && button(shown.verdict.right ? "It was wrong" : "I was right", "O",
    () => act({ do: "overrule" }));
  const ratings = shown.ratings.map(([value, words, time], n) => {
    const made = button(words, String(n + 1), () => act({ do: "rate", rating: value }), { class: "dq-rating" });
    made.firstChild.append(make("small", {}, time));
    return made;
  });
  if (!shown.suggested) return [row("Did you know it?", ...ratings)];
  const next = button("Next card", "Space Enter", () => act({ do: "rate" }), { class: "dq-primary" });
  const finer = shown.verdict.right && ratings.length === 4 ? ratings.slice(1) : [];
  return [row(`Comes back: ${shown.suggested}`, next, overrule), finer.length && row("Or it was", ...finer)];
}

function origin(shown, open) {
  if (!shown.place && !shown.source) return [];
  return [make("div", { class: "dq-origin" },
    shown.lesson ? button(`Explain: ${shown.place}`, "E", open, { class: "dq-quiet" })
      : shown.place && make("span", {}, shown.place + (shown.to_come ? " (this lesson is still to come)" : "")),
    shown.source && make("span", { class: "dq-source" }, "Source: ", rendered(shown.source)))];
}

function end(shown, act) {
  const buttons = [
    shown.more && button(`Ask new cards (${shown.more} left)`, "N", () => act({ do: "more" })),
    button(shown.finished ? "Practise all again" : "Practise without waiting", "P", () => act({ do: "practise" }),
      { class: "dq-primary" }),
  ];
  return [make("h3", {}, shown.finished ? "Done for now" : "Nothing is due now"),
    ...shown.summary.map((sentence) => make("p", {}, sentence)), row("", ...buttons)];
}

function keys() {
  return make("dl", { class: "dq-keys" }, ...HELP.flatMap(([key, words]) =>
    [make("dt", {}, make("kbd", {}, key)), make("dd", {}, words)]));
}
