// The concept map: point at a concept or walk to it, and it is explained below; click it or press Enter, and its lesson
// opens at the place.

const KEYS = "Arrow keys walk through the map, Enter or a click opens the lesson, Tab goes on.";

function render({ model, el }) {
  const root = mapRoot(model, el, "Concept map");
  const place = document.createElement("div");
  place.className = "drawing";
  const said = document.createElement("div");
  said.className = "said";
  said.setAttribute("role", "status");
  said.setAttribute("aria-live", "polite");
  const more = document.createElement("details");
  let shown = null;

  const look = (id) => {
    shown = id;
    const concept = model.get("concepts")[id];
    const name = document.createElement("b");
    name.textContent = concept.name;
    const heading = paragraph("");
    heading.append(name, ` (${concept.state})`);
    said.replaceChildren(heading, paragraph(concept.en), paragraph(`${concept.hinglish}: ${concept.hi}`, "hi-Latn"),
      paragraph(`${concept.cards} Explained in ${concept.where}.`));
    const summary = document.createElement("summary");
    summary.textContent = `How ${concept.name} hangs together with others (${concept.lines.length})`;
    more.replaceChildren(summary, ...concept.lines.map((line) => paragraph(line)));
    place.querySelectorAll("[data-line]").forEach((line) => {
      const near = line.dataset.line.split(" ").includes(id);
      line.style.setProperty("stroke-width", near ? "2.4" : "1.2");
      line.style.setProperty("opacity", near ? "1" : "0.45");
    });
  };
  const act = (id) => {
    const concept = model.get("concepts")[id];
    if (concept.file) openLesson(model, concept.file, concept.section);
    else {
      look(id);
      said.append(paragraph(`There is nothing to open yet: ${concept.where}.`));
    }
  };
  const draw = () => {
    const svg = drawingOf(model.get("svg"));
    const boxes = [...svg.querySelectorAll("[data-concept]")];
    for (const box of boxes) {
      const concept = model.get("concepts")[box.dataset.concept];
      box.setAttribute("role", "link");
      box.setAttribute("aria-label", `${concept.name}, ${concept.state}, ${concept.where}`);
      if (!concept.file) box.setAttribute("aria-disabled", "true");
    }
    place.replaceChildren(svg);
    walkable(svg, boxes, { look, act });
    if (shown) look(shown);
  };
  said.append(paragraph("Point at a concept, or walk to it, to see what it means and how well you know it."));
  const keys = paragraph(KEYS);
  keys.className = "keys";
  root.append(place, said, more, keys, button("Look again", () => ask(model, { ask: "look again" }, said)));
  model.on("change:seen", draw);
  draw();
  return () => model.off("change:seen", draw);
}

export default { render };
