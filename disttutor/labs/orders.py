"""A control that holds every rank's order in a pipeline, to be dragged or typed."""

from pathlib import Path

import anywidget
import traitlets


class Orders(anywidget.AnyWidget):
    """value: the order of each rank as text, such as "F0 F1 B0 B1", a line for each rank. chosen: a name for where the
    order came from; when it changes, what was undone before is forgotten."""

    _esm = Path(__file__).with_name("orders.js")
    value = traitlets.Unicode("").tag(sync=True)
    chosen = traitlets.Unicode("").tag(sync=True)
    description = "order of each rank"
