// What a widget does in the JupyterLab around it: opens a lesson at one of its headings, and lets the notebook be saved.
// This text stands in front of the own code of each widget that has links into the lessons.

// Where JupyterLab's own keys rest, Ctrl+S would rest too.
function letSave(model, root) {
  root.addEventListener("keydown", (event) => {
    const notebook = model.widget_manager?.context;
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s" || !notebook) return;
    event.preventDefault();
    notebook.save();
  });
}

// The path of a file that lies beside the notebook the widget is in, as JupyterLab's file browser would write it.
function besideNotebook(model, file) {
  const shown = decodeURIComponent(location.pathname).match(/\/(?:tree|notebooks)\/(.*)$/);
  const notebook = model.widget_manager?.context?.path ?? shown?.[1] ?? "";
  return notebook.replace(/[^/:]*$/, "") + file;
}

// JupyterLab's name for a heading, as it stands behind the # of a link to it.
const headingId = (section) => section.trim().replaceAll(" ", "-");

// Whether the heading of the open notebook with this name is on the screen.
function headingSeen(panel, section) {
  const name = CSS.escape(headingId(section));
  const top = panel.querySelector(`[data-jupyter-id="${name}"], [id="${name}"]`)?.getBoundingClientRect().top ?? 0;
  return top > 0 && top < window.innerHeight;
}

function panelOf(file) {
  const label = (panel) => document.querySelector(`.lm-TabBar-tab[data-id="${panel.id}"] .lm-TabBar-tabLabel`);
  return [...document.querySelectorAll(".jp-NotebookPanel")].find((panel) => label(panel)?.textContent === file);
}

// Calls `go` until `there` says that it has led where it should, but not against the learner: a key or a click ends it.
function persist(go, there) {
  let tries = 40;                                     // a large lesson may take seconds to be laid out
  const stop = () => {
    clearInterval(timer);
    ["wheel", "pointerdown", "keydown"].forEach((what) => window.removeEventListener(what, stop, true));
  };
  const timer = setInterval(() => {
    if (there() || !tries--) stop();
    else go();
  }, 400);
  ["wheel", "pointerdown", "keydown"].forEach((what) => window.addEventListener(what, stop, true));
}

// Open the notebook `file`, which lies beside this one, at the heading `section` ("" for its beginning). JupyterLab
// makes the links of its own Markdown cells by the same handler. (Elements that name a command in their data attributes
// would make it ask, at every click, whether the learner trusts the widget.)
function openLesson(model, file, section = "") {
  const links = model.widget_manager?.rendermime?.linkHandler;
  const anchor = document.createElement("a");
  if (!links) {
    anchor.href = encodeURIComponent(file) + (section && `#${headingId(section)}`);
    anchor.target = "_blank";
    anchor.click();
    return;
  }
  anchor.href = "#";
  // A heading that is named as such is found among the cells' texts, also where JupyterLab has not drawn it yet.
  links.handleLink(anchor, besideNotebook(model, file), section && `#heading=${headingId(section)}`);
  anchor.click();
  if (!section) return;
  // A notebook that had to be opened first is searched for its heading before it is laid out: go there once more.
  const panel = () => panelOf(file);
  persist(() => panel()?.querySelector(".jp-Cell") && anchor.click(), () => panel() && headingSeen(panel(), section));
}
