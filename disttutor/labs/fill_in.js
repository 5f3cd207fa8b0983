// The concept map with gaps: below the drawing a list to choose from for each gap. A click on a gap in the drawing leads
// to its list, and who is at a list sees its gap marked.

const SIGNS = { right: "✓ ", wrong: "✗ ", empty: "" };

function render({ model, el }) {
  const root = mapRoot(model, el, "Concept map with gaps");
  const place = document.createElement("div");
  place.className = "drawing";
  const form = document.createElement("div");
  const said = document.createElement("div");
  said.setAttribute("role", "status");
  said.setAttribute("aria-live", "polite");
  said.style.cssText = "min-height:1.6em;margin:4px 2px;font-weight:600";
  let rows = {};                                          // by mark: its list, and where the verdict on it stands

  const gapOf = (box) => box.querySelector("text")?.textContent ?? "";
  const mark = (words, on) =>
    place.querySelectorAll("[data-concept]").forEach((box) => box.classList.toggle("chosen", on && gapOf(box) === words));

  const draw = () => {
    const svg = drawingOf(model.get("svg"));
    place.replaceChildren(svg);
    for (const box of svg.querySelectorAll("[data-concept]")) {
      const row = rows[gapOf(box)];
      if (!row) continue;
      box.style.cursor = "pointer";
      box.addEventListener("click", () => row.list.focus());
    }
  };
  const row = (gap, count) => {
    const line = document.createElement("div");
    line.style.cssText = "margin:6px 2px";
    const label = document.createElement("label");
    const name = document.createElement("b");
    name.textContent = `${gap.mark}: `;
    const list = document.createElement("select");
    list.id = `${model.get("number")}-${count}-${Math.random().toString(36).slice(2)}`;
    label.htmlFor = list.id;
    label.append(name, `${gap.ask} `);
    list.style.cssText = "font:inherit;color:inherit;background:var(--jp-layout-color1,Canvas);padding:2px;" +
      "border:1px solid var(--jp-border-color0,GrayText);border-radius:3px";
    for (const word of ["", ...gap.words]) {
      const option = document.createElement("option");
      option.value = word;
      option.textContent = word || "choose …";
      option.style.cssText = "color:var(--jp-ui-font-color1,CanvasText);background:var(--jp-layout-color1,Canvas)";
      list.append(option);
    }
    const verdict = document.createElement("div");
    verdict.id = `${list.id}-verdict`;
    verdict.style.cssText = "margin-left:1.2em";
    list.setAttribute("aria-describedby", verdict.id);
    list.addEventListener("focus", () => mark(gap.mark, true));
    list.addEventListener("blur", () => mark(gap.mark, false));
    list.addEventListener("change", () => verdict.replaceChildren());
    line.append(label, list, verdict);
    rows[gap.mark] = { list, verdict };
    return line;
  };
  const begin = () => {
    rows = {};
    said.textContent = "";
    form.replaceChildren(...model.get("gaps").map(row));
    draw();
  };
  const judge = () => {
    for (const [name, { list, verdict }] of Object.entries(rows)) {
      const result = model.get("results")[name];
      if (!result) continue;
      verdict.replaceChildren(paragraph(SIGNS[result.state] + result.words),
        ...result.en.map((words) => paragraph(words)), ...result.hi.map((words) => paragraph(words, "hi-Latn")));
      list.setAttribute("aria-invalid", result.state === "wrong");
      list.value = result.given;
    }
    said.textContent = model.get("said");
  };
  const given = () => Object.fromEntries(Object.entries(rows).map(([name, { list }]) => [name, list.value]));
  const buttons = document.createElement("div");
  buttons.style.cssText = "display:flex;gap:8px;flex-wrap:wrap;margin:4px 2px";
  buttons.append(button("Check", () => ask(model, { ask: "check", given: given() }, said)),
    button("Show the answers", () => ask(model, { ask: "show" }, said)),
    button("Another map", () => ask(model, { ask: "another" }, said)));
  root.append(place, form, buttons, said);
  const listeners = { "change:gaps": begin, "change:svg": draw, "change:checked": judge };
  Object.entries(listeners).forEach(([what, act]) => model.on(what, act));
  begin();
  judge();
  return () => Object.entries(listeners).forEach(([what, act]) => model.off(what, act));
}

export default { render };
