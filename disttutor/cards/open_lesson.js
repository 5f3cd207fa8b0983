// Opens a lesson at one of its headings, in the JupyterLab that a widget is shown in. This text stands in front of the
// own code of each widget that has links into the lessons.

// The path of a file that lies beside the notebook the widget is in, as JupyterLab's file browser would write it.
function besideNotebook(model, file) {
  const shown = decodeURIComponent(location.pathname).match(/\/(?:tree|notebooks)\/(.*)$/);
  const notebook = model.widget_manager?.context?.path ?? shown?.[1] ?? "";
  return notebook.replace(/[^/:]*$/, "") + file;
}

// JupyterLab's name for a heading, as it stands behind the # of a link to it.
const fragment = (section) => (section ? `#${section.trim().replaceAll(" ", "-")}` : "");

// The heading in the notebook of this name, if that is open.
function headingIn(file, section) {
  const label = (panel) => document.querySelector(`.lm-TabBar-tab[data-id="${panel.id}"] .lm-TabBar-tabLabel`);
  const panel = [...document.querySelectorAll(".jp-NotebookPanel")].find((one) => label(one)?.textContent === file);
  const name = CSS.escape(fragment(section).slice(1));
  return panel?.querySelector(`[data-jupyter-id="${name}"], [id="${name}"]`);
}

// Open the notebook `file`, which lies beside this one, at the heading `section` ("" for its beginning). JupyterLab
// makes the links of its own Markdown cells by the same handler. (Elements that name a command in their data attributes
// would make it ask, at every click, whether the learner trusts the widget.)
function openLesson(model, file, section = "") {
  const links = model.widget_manager?.rendermime?.linkHandler;
  const follow = () => {
    const anchor = document.createElement("a");
    if (links) {
      anchor.href = "#";
      links.handleLink(anchor, besideNotebook(model, file), fragment(section));
    } else {
      anchor.href = encodeURIComponent(file) + fragment(section);
      anchor.target = "_blank";
    }
    anchor.click();
  };
  follow();
  if (!links || !section) return;
  // A notebook that had to be opened first is searched for its heading before that is laid out: go there once more.
  let tries = 20;
  const timer = setInterval(() => {
    const top = headingIn(file, section)?.getBoundingClientRect().top ?? -1;
    const seen = top > 0 && top < window.innerHeight;
    if (!seen && top !== -1) follow();
    if (seen || !--tries) clearInterval(timer);
  }, 400);
}
