// Every rank's order as a row of boxes. Drag a box along its row, or focus it and use the arrow keys; Delete takes it
// out. Or type the order in the line below the row. The kernel is told the new order of all ranks, a line for each.

const COLOURS = { F: ["#56b4e9", "#000000"], B: ["#d55e00", "#000000"], W: ["#5e3c00", "#ffffff"] };
const WORDS = { F: "forward", B: "backward", W: "backward, weights" };

function looks(word) {
  const letter = (word.match(/[FBW]/i)?.[0] ?? "").toUpperCase();
  const [ground, ink] = COLOURS[letter] ?? ["#cccccc", "#000000"];
  return { ground, ink, words: `${WORDS[letter] ?? "unknown"} ${word}` };
}

function render({ model, el }) {
  el.classList.add("disttutor-orders");
  // Keys are the editor's while it has the focus: in JupyterLab "x" would cut the cell, arrows would leave it.
  el.addEventListener("keydown", (event) => event.stopPropagation());
  const lines = () => model.get("value").split("\n").map((line) => line.split(/\s+/).filter(Boolean));
  let past = [];
  const change = (rows) => {
    past.push(model.get("value"));
    model.set("value", rows.map((row) => row.join(" ")).join("\n"));
    model.save_changes();
  };
  const moved = (rank, from, to) => {
    const rows = lines();
    const [word] = rows[rank].splice(from, 1);
    rows[rank].splice(to, 0, word);
    change(rows);
  };
  const box = (rank, place, word, count) => {
    const button = document.createElement("button");
    const look = looks(word);
    button.textContent = word;
    button.draggable = true;
    button.dataset.place = place;
    button.setAttribute("aria-label", `${look.words}, place ${place + 1} of ${count} of rank ${rank}; arrow keys move it`);
    button.style.cssText =
      `background:${look.ground};color:${look.ink};border:1px solid #333;border-radius:3px;margin:1px;padding:2px 4px;` +
      "font:12px system-ui,sans-serif;cursor:grab;min-width:26px";
    button.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", `${rank} ${place}`));
    button.addEventListener("dragover", (event) => event.preventDefault());
    button.addEventListener("drop", (event) => {
      event.preventDefault();
      const [otherRank, from] = event.dataTransfer.getData("text/plain").split(" ").map(Number);
      if (otherRank === rank) moved(rank, from, place);
    });
    button.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: place - 1, ArrowRight: place + 1 }[event.key];
      if (to !== undefined && to >= 0 && to < count) {
        event.preventDefault();
        moved(rank, place, to);
        el.querySelector(`[data-rank="${rank}"] [data-place="${to}"]`)?.focus();
      } else if (event.key === "Delete") {
        const rows = lines();
        rows[rank].splice(place, 1);
        change(rows);
      }
    });
    return button;
  };
  const draw = () => {
    const typing = el.contains(document.activeElement) && document.activeElement.tagName === "INPUT";
    const typed = typing ? document.activeElement.dataset.rank : null;
    el.replaceChildren();
    lines().forEach((row, rank) => {
      const line = document.createElement("div");
      line.dataset.rank = rank;
      line.style.cssText = "display:flex;align-items:center;flex-wrap:wrap";
      const name = document.createElement("span");
      name.textContent = `rank ${rank}`;
      name.style.cssText = "width:60px;font:12px system-ui,sans-serif";
      line.append(name, ...row.map((word, place) => box(rank, place, word, row.length)));
      const input = document.createElement("input");
      input.value = row.join(" ");
      input.dataset.rank = rank;
      input.setAttribute("aria-label", `order of rank ${rank} as text`);
      input.style.cssText = "margin:1px 0 4px 60px;width:calc(100% - 80px);font:12px monospace";
      input.addEventListener("change", () => {
        const rows = lines();
        rows[rank] = input.value.split(/\s+/).filter(Boolean);
        change(rows);
      });
      el.append(line, input);
      if (typed === String(rank)) input.focus();
    });
    const row = document.createElement("div");
    const undo = document.createElement("button");
    undo.className = "jupyter-widgets jupyter-button widget-button";
    undo.textContent = "Undo";
    undo.disabled = !past.length;
    undo.addEventListener("click", () => {
      model.set("value", past.pop());
      model.save_changes();
    });
    row.append(undo);
    el.append(row);
  };
  const anew = () => {
    draw();
  };
  const forget = () => (past = []);                       // another schedule was chosen: its past is not this one's
  model.on("change:value", anew);
  model.on("change:chosen", forget);
  draw();
  return () => {
    model.off("change:value", anew);
    model.off("change:chosen", forget);
  };
}

export default { render };
