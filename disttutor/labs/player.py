"""A control that runs through the steps of something by itself, or stands where one drags it."""

from typing import Any

import ipywidgets as w
import traitlets

PAUSE = 1200                            # milliseconds from step to step


class Player(w.HBox):
    """Play, pause and stop buttons and a slider. value: the step, from 0 to `max`.

    The two are joined in the browser, and only the slider is heard: one picture for each step, not two.
    """

    value = traitlets.Int(0)
    max = traitlets.Int(0)

    def __init__(self, value: int = 0, *, description: str, most: int = 0):
        self.description = description
        self._play = w.Play(min=0, max=most, value=value, interval=PAUSE, layout=w.Layout(flex="0 0 auto"))
        self._slider = w.IntSlider(min=0, max=most, value=value, description=description,
                                   layout=w.Layout(width="420px"))
        w.jslink((self._play, "value"), (self._slider, "value"))
        super().__init__([self._play, self._slider], value=value, max=most)
        self._slider.observe(self._moved, "value")
        self.observe(self._set, "value")
        self.observe(self._longer, "max")

    def _moved(self, change: Any) -> None:
        self.value = change["new"]

    def _set(self, change: Any) -> None:
        self._slider.value = change["new"]

    def _longer(self, change: Any) -> None:
        self._slider.max = self._play.max = change["new"]
