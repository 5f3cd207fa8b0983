"""Runs that belong to a lab: what their ranks print lands there, and its Stop button ends them and nobody else's."""

import threading
from collections.abc import Callable
from typing import Any

from disttutor.cluster import FreshRuns, RankError, Results
from disttutor.cluster.output import Sink

DEADLINE = 120.0            # seconds after which a lab's run is given up, unless its experiment says otherwise
_AGAIN = 0.05               # seconds between two attempts to wake a run that has to stop


class Stopped(Exception):
    """The learner stopped the run, or asked for another one."""


class Session:
    """One performance of a lab's experiment, which may hold several runs. `run` is for the experiment, `stop` for
    everybody else, from any thread."""

    def __init__(self, settings: dict[str, Any], output: Sink):
        self.settings, self._output = settings, output
        self._stopped, self._over = threading.Event(), threading.Event()
        self._runs = FreshRuns()

    def run(self, fn: Callable[..., Any], *args: Any, timeout: float | None = DEADLINE, **how: Any) -> Results:
        """As `disttutor.run`. Raises Stopped, beside what that raises, once `stop` was called."""
        if self.stopped:
            raise Stopped
        try:
            return self._runs.run(fn, *args, timeout=timeout, output=self._output, **how)
        except RankError:
            if self.stopped:
                raise Stopped from None
            raise

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """End the run in progress, and let no other begin. Returns at once."""
        if not self.stopped:
            self._stopped.set()
            threading.Thread(target=self._insist, name="stop of a lab's run", daemon=True).start()

    def close(self) -> None:
        """The experiment is over."""
        self._over.set()

    def _insist(self) -> None:
        # A run that was about to begin when Stop was pressed cannot be woken yet: try until the experiment is over.
        while not self._over.wait(_AGAIN):
            self._runs.stop()
