"""A lab's widgets: its controls, Run and Stop, what is going on, what went wrong, and what the ranks print."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

LINES = 200                 # of the ranks' output that are kept
PAUSE = 0.1                 # seconds for which what the ranks print is gathered before it is shown


class Panel:
    """May be called from any thread. It is a sink for the output of ranks (see `disttutor.run`)."""

    def __init__(self, controls: Mapping[str, Any], title: str, run: Callable, stop: Callable,
                 trace: Callable | None = None):
        """trace(): the trace behind the lab's pictures, if it has one; see `Live`."""
        import ipywidgets as w

        from disttutor.labs.live import Live

        self.controls = controls
        for control in controls.values():
            control.layout.margin = "2px 18px 2px 2px"
            if control.has_trait("style"):
                control.style.description_width = "initial"
        self._run = w.Button(description="Run again", icon="play", tooltip="Run once more with these settings")
        self._stop = w.Button(description="Stop", icon="stop", disabled=True, tooltip="End the run in progress")
        self._bar = w.FloatProgress(min=0, max=1, layout=w.Layout(width="160px", visibility="hidden"))
        # A line of its own that is always there: the picture must not jump when a run begins.
        self._state = w.HTML(layout=w.Layout(min_height="28px", margin="2px"))
        self._problem, self._printed = w.HTML(), w.HTML()
        self._waiting = False
        self._run.on_click(run)
        self._stop.on_click(stop)
        wrap = w.Layout(flex_flow="row wrap", align_items="center")
        self.widget = w.VBox([
            *([w.HTML(f"<b>{escape(title)}</b>")] if title else []),
            w.Box(list(controls.values()), layout=wrap),
            w.Box([self._run, self._stop, self._bar], layout=wrap),
            self._state, self._problem, self._printed, Live(trace)])
        self._lines: deque[str] = deque(maxlen=LINES)
        self._lock = threading.Lock()
        self._pending: threading.Timer | None = None

    def display(self) -> None:
        """Show the widgets in the cell; a reader without a kernel is told what they are."""
        from IPython import get_ipython
        from IPython.display import publish_display_data

        if get_ipython() is not None:
            names = ", ".join(c.description or name for name, c in self.controls.items())
            bundle = dict(self.widget._repr_mimebundle_())
            bundle["text/plain"] = f"[Controls of this lab, once its cell is run: {names}]"
            publish_display_data(bundle)

    # ------------------------------------------------------------------------------------------------- what goes on

    def busy(self, words: str) -> None:
        """A run is in progress or about to be."""
        self._waiting = True
        self._state.value = (f"<span role='status'><i class='fa fa-spinner fa-spin' aria-hidden='true'></i> "
                             f"{escape(words)}</span>")
        self._stop.disabled = False

    def done(self, words: str) -> None:
        """A run is over."""
        self._write()
        self._waiting = False
        self._state.value = f"<span role='status'>{escape(words)}</span>"

    def idle(self) -> None:
        """Nothing runs, and nothing is about to."""
        self._stop.disabled = True
        self._bar.layout.visibility = "hidden"
        if self._waiting:
            self.done("stopped")

    def problem(self, sentence: str, details: str = "") -> None:
        """Something cannot be, or went wrong."""
        more = (f"<details><summary>more</summary><pre style='white-space:pre-wrap'>{escape(details)}</pre></details>"
                if details else "")
        self._problem.value = (f"<div role='alert' style='border-left:4px solid #d55e00;padding:2px 10px'>"
                               f"<b>{escape(sentence)}</b>{more}</div>")
        self.done("nothing new: the picture is of the last run that came to its end")

    def clear(self) -> None:
        """A new run begins: what the last one said is gone."""
        with self._lock:
            self._lines.clear()
        self._problem.value = self._printed.value = ""
        self._bar.layout.visibility = "hidden"

    # ------------------------------------------------------------------------------------------------- the sink

    def __call__(self, rank: int | None, text: str) -> None:
        with self._lock:
            self._lines.append(text if rank is None else f"[rank {rank}] {text}")
            if self._pending:
                return                          # what comes in quick succession is shown together
            self._pending = threading.Timer(PAUSE, self._write)
            self._pending.daemon = True
            self._pending.start()

    def progress(self, title: str, done: int, total: int | None) -> None:
        """How far the slowest rank is."""
        if total:
            self._bar.value, self._bar.layout.visibility = done / total, "visible"

    def _write(self) -> None:
        with self._lock:
            text, self._pending = "".join(self._lines), None
        self._printed.value = (f"<pre aria-label='what the ranks printed' style='max-height:12em;overflow:auto'>"
                               f"{escape(text)}</pre>" if text else "")
