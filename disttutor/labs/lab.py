"""What all labs share: controls, an experiment on real ranks, and pictures of what it gave.

    def experiment(settings, run):                 # run: like disttutor.run, but the lab can stop it
        return run(train, settings["lr"], ranks=settings["ranks"])

    def draw(result, settings):                    # pictures, tables, sentences
        return [losses({"4 ranks": result[0]})]

    Lab({"ranks": IntSlider(2, 1, 4, description="ranks"), …}, experiment, draw).show()

`show` runs the experiment once with the defaults, in the cell, so that a notebook that nobody touches has its pictures.
A control then starts the next run in the background: other cells and Stop work meanwhile. The pictures are an ordinary
output of the cell, which each run updates; the widgets hold nothing that a reader without a kernel would miss.
"""

import contextvars
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from disttutor.cluster import RankError
from disttutor.labs.page import page
from disttutor.labs.panel import Panel
from disttutor.labs.session import Session, Stopped

QUIET = 0.25                            # seconds without a change after which a run begins
_DRAWING = threading.Lock()             # Matplotlib draws for one thread at a time

Settings = dict[str, Any]
Experiment = Callable[[Settings, Callable[..., Any]], Any]


class Lab:
    """Controls by name, an experiment, and how to draw its result.

    controls: name to ipywidgets widget; their values are the settings. run: (settings, run) -> result; it raises
    ValueError with a helpful sentence for settings that cannot be, before it starts anything. draw: (result, settings)
    -> what to show. redraw_only: names of controls that only choose how the last result is drawn. trace: (result,
    settings) -> the trace that the learner can open in Perfetto.

    Raises ValueError for a name in `redraw_only` that is no control.
    """

    def __init__(self, controls: Mapping[str, Any], run: Experiment, draw: Callable[[Any, Settings], Iterable[Any]], *,
                 redraw_only: Collection[str] = (), title: str = "",
                 trace: Callable[[Any, Settings], Any] | None = None):
        if unknown := set(redraw_only) - set(controls):
            raise ValueError(f"redraw_only names {sorted(unknown)}, but the controls are {sorted(controls)}")
        self.controls, self.experiment, self.drawing = dict(controls), run, draw
        self.redraw_only = frozenset(redraw_only)
        self.result: Any = None
        self.runs = 0                                   # experiments that came to their end
        self._panel = Panel(self.controls, title, self._again, self.stop, trace and self._shown_trace)
        self._trace_of = trace
        self._change = threading.Condition()            # guards the five below
        self._wanted: Settings | None = None            # of the run to come
        self._moved = 0.0                               # when a control was last moved
        self._session: Session | None = None            # the run in progress
        self._worker: threading.Thread | None = None
        self._drawn_for: Settings | None = None         # settings that `result` belongs to
        self._display_id = uuid.uuid4().hex
        self._shown = self._displayed = False           # its controls, its pictures
        self._context = contextvars.copy_context()      # of the lab's cell: where output of its threads belongs
        for name, control in self.controls.items():
            if name not in self.redraw_only and control.has_trait("continuous_update"):
                control.continuous_update = False       # a run for each pixel of a slider's way would be too much
            control.observe(self._redraw if name in self.redraw_only else self._again, "value")

    @property
    def settings(self) -> Settings:
        """The values of all controls."""
        return {name: control.value for name, control in self.controls.items()}

    @property
    def busy(self) -> bool:
        """Whether a run is in progress or about to begin."""
        with self._change:
            return self._worker is not None or self._session is not None

    def show(self) -> "Lab":
        """Show the controls, run once with their values, and show what came out. Raises what the experiment raises."""
        self.stop()
        self.wait()
        self._context = contextvars.copy_context()
        self._panel.display()
        self._shown, self._displayed = True, False
        session = self._begin(self.settings)
        try:
            self._perform(session, here=True)
        finally:
            self._end()
        return self

    def stop(self, *_: Any) -> None:
        """End the run in progress, and forget the one to come."""
        with self._change:
            self._wanted = None
            if self._session:
                self._panel.busy("stopping …")
                self._session.stop()

    def wait(self, seconds: float = 60.0) -> bool:
        """Wait until no run is in progress; whether that came true within `seconds`."""
        end = time.monotonic() + seconds
        while self.busy and time.monotonic() < end:
            time.sleep(0.02)
        return not self.busy

    def _ipython_display_(self) -> None:
        """As a cell's value a lab shows itself, unless it has done so."""
        if not self._shown:
            self.show()

    def __repr__(self) -> str:
        return f"Lab({self._said(self.settings)})"

    # ------------------------------------------------------------------------------------------------- the runs

    def _again(self, *_: Any) -> None:
        """A control was moved, or the button pressed: run with what the controls say now, soon.

        Changes in quick succession make one run; one in progress with other settings is ended.
        """
        try:
            with self._change:
                wanted = self.settings
                if self._wanted is None and self._session and not self._session.stopped and (
                        self._of_runs(self._session.settings) == self._of_runs(wanted)):
                    return                              # it is running already
                self._wanted, self._moved = wanted, time.monotonic()
                if self._session:
                    self._session.stop()
                if self._worker is None:
                    context = self._context.copy()
                    self._worker = threading.Thread(target=context.run, args=(self._work,), name="lab", daemon=True)
                    self._worker.start()
            self._panel.busy(f"about to run: {self._said(wanted)}")
        except Exception as problem:                    # an error in a callback would only reach a log
            self._panel.problem(*told(problem))

    def _work(self) -> None:
        """Until nothing is wanted any more: wait for the controls to come to rest, and run."""
        while True:
            with self._change:
                while self._wanted is not None and (rest := self._moved + QUIET - time.monotonic()) > 0:
                    self._change.wait(rest)
                if self._wanted is None:
                    self._worker = None
                    self._panel.idle()
                    return
                settings, self._wanted = self._wanted, None
            session = self._begin(settings)
            try:
                self._perform(session, here=False)
            finally:
                self._end()

    def _begin(self, settings: Settings) -> Session:
        with self._change:
            self._session = Session(settings, self._panel)
            self._panel.clear()
            self._panel.busy(f"running: {self._said(settings)}")
            return self._session

    def _end(self) -> None:
        with self._change:
            self._session.close()
            self._session = None
            if self._worker is None:
                self._panel.idle()

    def _perform(self, session: Session, here: bool) -> None:
        """Run and draw. here: in the learner's cell, where what goes wrong is raised."""
        begun = time.monotonic()
        try:
            result = self.experiment(session.settings, session.run)
            self._draw(result, session.settings)
            with self._change:
                self.result, self._drawn_for, self.runs = result, session.settings, self.runs + 1
            self._panel.done(f"done in {time.monotonic() - begun:.1f} s")
        except Stopped:
            self._panel.done("stopped; the picture is of the last run that came to its end")
        except BaseException as problem:
            if here:
                self._panel.done("")
                raise
            self._panel.problem(*told(problem))

    # ------------------------------------------------------------------------------------------------- the pictures

    def _redraw(self, *_: Any) -> None:
        """Draw the last result as the controls say now."""
        try:
            with self._change:
                result, settings = self.result, self._drawn_for
            if settings is not None:
                self._context.copy().run(self._draw, result, settings)
        except Exception as problem:                    # an error in a callback would only reach a log
            self._panel.problem(*told(problem))

    def _draw(self, result: Any, settings: Settings) -> None:
        with _DRAWING:
            shown = page([self._said(settings), *self.drawing(result, self._now(settings))])
            publish(shown, self._display_id, update=self._displayed)
            self._displayed = True

    def _shown_trace(self) -> Any:
        """The trace behind what is shown; None before the first run."""
        with self._change:
            result, settings = self.result, self._drawn_for
        return None if settings is None else self._trace_of(result, self._now(settings))

    def _now(self, settings: Settings) -> Settings:
        """The settings of a run, and how the controls say that it is drawn now."""
        return settings | {name: self.controls[name].value for name in self.redraw_only}

    def _of_runs(self, settings: Settings) -> Settings:
        return {name: value for name, value in settings.items() if name not in self.redraw_only}

    def _said(self, settings: Settings) -> str:
        """The settings of a run in words: `ranks 4, form overlapped`."""
        return ", ".join(f"{self.controls[name].description or name} {label(self.controls[name], value)}"
                         for name, value in self._of_runs(settings).items())


def label(control: Any, value: Any) -> str:
    """How a control shows this value."""
    options = getattr(control, "_options_full", None) or ()
    return next((text for text, option in options if option == value), "; ".join(str(value).splitlines()))


def told(problem: BaseException) -> tuple[str, str]:
    """What went wrong: a sentence, and the details (or "") for who wants them."""
    if isinstance(problem, RankError):
        first, _, rest = str(problem).partition("\n")
        return first, rest.strip()
    if isinstance(problem, ValueError):                 # said by whoever checked the settings
        return str(problem), ""
    return f"{type(problem).__name__}: {problem}", "".join(traceback.format_exception(problem))


def publish(bundle: dict[str, str], display_id: str, update: bool) -> None:
    """Show a page in the cell, or in place of the page shown before. Outside a notebook its plain text is printed."""
    from IPython import get_ipython
    from IPython.display import publish_display_data

    if get_ipython() is None:
        print(bundle["text/plain"])
    else:
        publish_display_data(bundle, transient={"display_id": display_id}, update=update)
