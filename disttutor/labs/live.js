// Pictures in a lab's cell become live: point at a box or click it, and a line below says what it is. A picture is an
// image that carries its drawing as data, so without this widget (on GitHub, without a kernel) it is still there.

const HINT = "Point at a box, or click it, to see what it is.";

function drawingOf(image) {
  const bytes = Uint8Array.from(atob(image.src.split(",", 2)[1]), (c) => c.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  if (!text.includes("<title>")) return null;
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (svg.nodeName !== "svg") return null;
  svg.querySelectorAll("script, foreignObject").forEach((e) => e.remove());
  return document.importNode(svg, true);
}

function enliven(image) {
  const svg = drawingOf(image);
  if (!svg) return;
  const host = document.createElement("div");
  host.className = "disttutor-live";
  const root = host.attachShadow({ mode: "open" });       // so that patterns of two pictures do not mix up their names
  const line = document.createElement("div");
  line.setAttribute("role", "status");
  line.style.cssText = "min-height:1.5em;font:13px system-ui,sans-serif;color:var(--jp-ui-font-color1,#333)";
  line.textContent = HINT;
  svg.style.cssText = "max-width:100%;height:auto;display:block";
  const rules = document.createElement("style");          // what has no title must not lie between the pointer and a box
  rules.textContent = "svg * { pointer-events: none } svg :has(> title) { pointer-events: auto }";
  root.append(rules, svg, line);
  let pinned = null;
  const titled = (target) => {
    const title = target?.querySelector?.(":scope > title");
    return title ? [target, title.textContent] : [null, null];
  };
  const mark = (box) => {
    if (pinned) pinned.style.removeProperty("stroke-width");
    pinned = box;
    if (box) box.style.setProperty("stroke-width", "2.5");
  };
  svg.addEventListener("mouseover", (event) => {
    const [box, words] = titled(event.target);
    if (box && !pinned) line.textContent = words;
  });
  svg.addEventListener("click", (event) => {
    const [box, words] = titled(event.target);
    mark(box === pinned ? null : box);
    line.textContent = pinned ? words : HINT;
  });
  image.replaceWith(host);
}

function saved(json, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([json], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Perfetto's page says PONG to our PING once it can take a trace (its documentation, "Deep linking to the UI").
const PERFETTO = "https://ui.perfetto.dev";

function handOver(page, json, title, say) {
  if (!page) return say("The browser did not open the page: use Save the trace, and open the file in ui.perfetto.dev.");
  const ping = setInterval(() => page.postMessage("PING", PERFETTO), 100);
  const giveUp = setTimeout(() => {
    stop();
    say("ui.perfetto.dev does not answer: use Save the trace, and open the file there when you are online.");
  }, 20000);
  const stop = () => {
    clearInterval(ping);
    clearTimeout(giveUp);
    window.removeEventListener("message", answer);
  };
  const answer = (event) => {
    if (event.origin !== PERFETTO || event.data !== "PONG") return;
    stop();
    page.postMessage({ perfetto: { buffer: new TextEncoder().encode(json).buffer, title } }, PERFETTO);
    say("The trace is open in Perfetto.");
  };
  window.addEventListener("message", answer);
}

function buttons(model, el) {
  const row = document.createElement("div");
  row.style.cssText = "display:flex;gap:8px;align-items:center;flex-wrap:wrap;margin:2px";
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  let page = null;
  const add = (words, hint, ask) => {
    const button = document.createElement("button");
    button.className = "jupyter-widgets jupyter-button widget-button";
    button.style.width = "auto";
    button.textContent = words;
    button.title = hint;
    button.addEventListener("click", ask);
    row.append(button);
  };
  add("Open in Perfetto", "The whole trace in ui.perfetto.dev, in a new tab; it stays on your machine", () => {
    page = window.open(PERFETTO);
    model.send({ ask: "open" });
  });
  add("Save the trace", "A file that ui.perfetto.dev opens", () => model.send({ ask: "save" }));
  row.append(said);
  const say = (words) => (said.textContent = words);
  const receive = (message) => {
    if (message.problem) say(message.problem);
    else if (message.ask === "save") saved(message.trace, message.name);
    else handOver(page, message.trace, message.title, say);
  };
  model.on("msg:custom", receive);
  el.append(row);
  return () => model.off("msg:custom", receive);
}

function render({ model, el }) {
  let watcher = null;
  const begin = () => {
    const cell = el.closest(".jp-OutputArea");
    if (!cell) return;
    const all = () => cell.querySelectorAll('img[src^="data:image/svg+xml;base64,"]').forEach(enliven);
    watcher = new MutationObserver(all);
    watcher.observe(cell, { childList: true, subtree: true });
    all();
  };
  const soon = requestAnimationFrame(begin);              // the widget is put into its cell after this
  const end = model.get("has_trace") ? buttons(model, el) : () => {};
  return () => {
    cancelAnimationFrame(soon);
    watcher?.disconnect();
    end();
  };
}

export default { render };
