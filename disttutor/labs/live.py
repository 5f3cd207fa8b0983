"""What makes a lab's pictures live: details of a box where one points or clicks, and its trace in Perfetto."""

import json
from collections.abc import Callable
from pathlib import Path

import anywidget
import traitlets

from disttutor.traces import Trace, chrome_trace

NAME = "disttutor-trace.json"


class Live(anywidget.AnyWidget):
    """Put beside a cell's pictures, it lets the learner look into them.

    trace(): the trace behind the pictures, asked for when the learner wants it; None while there is none. Without the
    argument there are no buttons for it.
    """

    _esm = Path(__file__).with_name("live.js")
    has_trace = traitlets.Bool(False).tag(sync=True)

    def __init__(self, trace: Callable[[], Trace | None] | None = None):
        super().__init__(has_trace=trace is not None)
        self._trace = trace
        self.on_msg(self._answer)

    def _answer(self, _: object, message: dict, buffers: object) -> None:
        trace = self._trace()
        if trace is None:
            self.send({"problem": "There is no trace yet: run the lab first."})
        else:
            self.send({"ask": message["ask"], "trace": json.dumps(chrome_trace(trace)), "name": NAME,
                       "title": f"disttutor: {trace.source}, {trace.world_size} ranks"})
