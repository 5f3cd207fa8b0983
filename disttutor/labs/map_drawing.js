// The concept map's drawing, made live: one stop of the Tab key, in which the arrow keys walk from box to box. This text
// stands in front of the own code of the map and of the map with gaps.

function drawingOf(text) {
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  svg.querySelectorAll("script, foreignObject").forEach((e) => e.remove());
  svg.setAttribute("role", "group");                      // an image would hide its boxes from a screen reader
  svg.style.cssText = "min-width:760px;max-width:100%;height:auto;display:block";
  return document.importNode(svg, true);
}

// Keys are the widget's while it has the focus: in JupyterLab "x" would cut the cell.
function keepKeys(root) {
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Tab" && event.key !== "Escape") event.stopPropagation();
  });
}

const RULES = `
  .disttutor-map { font: 13px/1.45 system-ui, sans-serif; color: var(--jp-ui-font-color1, CanvasText);
    background: var(--jp-layout-color0, Canvas); padding: 4px }
  .disttutor-map .drawing { overflow-x: auto; padding: 3px }
  .disttutor-map g[tabindex] { cursor: pointer; outline: none }
  .disttutor-map g[tabindex]:hover > rect:first-of-type { stroke-width: 2.4 }
  .disttutor-map g[tabindex]:focus > rect:first-of-type, .disttutor-map g.chosen > rect:first-of-type
    { stroke: #1b1f24; stroke-width: 3.2; stroke-dasharray: none }
  .disttutor-map .said { min-height: 8.7em; margin: 4px 2px; max-width: 75em }
  .disttutor-map p { margin: 2px 0 }
  .disttutor-map .keys { color: var(--jp-ui-font-color2, CanvasText); margin: 2px }
  .disttutor-map button { width: auto }
`;

function mapRoot(model, el, label) {
  const root = document.createElement("div");
  root.className = "disttutor-map";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", label);
  keepKeys(root);
  letSave(model, root);
  const rules = document.createElement("style");
  rules.textContent = RULES;
  root.append(rules);
  el.append(root);
  return root;
}

function paragraph(words, language) {
  const p = document.createElement("p");
  p.textContent = words;
  if (language) p.lang = language;
  return p;
}

function button(words, act) {
  const made = document.createElement("button");
  made.className = "jupyter-widgets jupyter-button widget-button";
  made.textContent = words;
  made.addEventListener("click", act);
  return made;
}

// Tells the kernel what is wanted. Where there is none, as after a restart, `said` says so.
function ask(model, message, said) {
  try {
    model.send(message);
  } catch {
    said.replaceChildren(paragraph("The kernel of this map is gone: run this cell again to go on."));
  }
}

// The box that lies nearest in the direction of an arrow key; what lies aside counts twice as far.
function nearest(boxes, from, key) {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  const centre = (box) => {
    const b = box.getBBox();
    return [b.x + b.width / 2, b.y + b.height / 2];
  };
  const [x, y] = centre(from);
  let best = null;
  let least = Infinity;
  for (const box of boxes) {
    const [bx, by] = centre(box);
    const ahead = (bx - x) * dx + (by - y) * dy;
    const aside = Math.abs((bx - x) * dy) + Math.abs((by - y) * dx);
    if (ahead > 1 && ahead + 2 * aside < least) [best, least] = [box, ahead + 2 * aside];
  }
  return best;
}

// Lets the boxes take the focus; `look(id)` is called where one points or walks to, `act(id)` on a click, Enter or Space.
function walkable(svg, boxes, { look, act }) {
  const go = (box) => {
    boxes.forEach((other) => other.setAttribute("tabindex", other === box ? 0 : -1));
    return box;
  };
  boxes.forEach((box) => {
    const id = box.dataset.concept;
    box.addEventListener("focus", () => look(go(box).dataset.concept));
    box.addEventListener("mouseenter", () => look(id));
    box.addEventListener("click", () => act(id));
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      let to = null;
      if (event.key.startsWith("Arrow")) to = nearest(boxes, box, event.key);
      else if (event.key === "Home") to = boxes[0];
      else if (event.key === "End") to = boxes.at(-1);
      else if (event.key !== "Enter" && event.key !== " ") return;
      else if (!event.repeat) act(id);                    // a key held down is one press
      event.preventDefault();
      to?.focus();
    });
  });
  if (boxes.length) go(boxes[0]);
}
