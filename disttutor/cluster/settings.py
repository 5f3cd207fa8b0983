"""The settings of a run, checked before any process starts: what was given, why it cannot be, what would work."""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Callable
from typing import Any

_FOREVER = 365 * 86400.0  # seconds; a limit beyond it is none


def check_timeout(timeout: float | None) -> float | None:
    """The limit in seconds, None for none (infinity is none too). Raises unless it is None or a positive number."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real):
        raise TypeError(f"timeout={timeout!r} is of type {type(timeout).__name__}: give seconds, or None for no limit")
    if not timeout > 0:
        raise ValueError(f"timeout={timeout}: give a positive number of seconds, or None for no limit")
    return None if timeout > _FOREVER else float(timeout)


def check_slow_motion(slow_motion: Any) -> Any:
    """The SlowMotion, or None for none. Raises TypeError for anything else."""
    from disttutor.traces import SlowMotion

    if slow_motion is None or slow_motion is False:
        return None
    if not isinstance(slow_motion, SlowMotion):
        raise TypeError(
            f"slow_motion={slow_motion!r} is of type {type(slow_motion).__name__}: give the machine whose pace the "
            "ranks keep, such as SlowMotion(Machine(Device(flops=1e9), Link(latency=0.01, bandwidth=1e8)))"
        )
    return slow_motion


def check_output(output: Callable[..., Any] | None) -> None:
    """Raise TypeError unless it is None or can be called."""
    if output is not None and not callable(output):
        raise TypeError(
            f"output={output!r} is of type {type(output).__name__}: give a function output(rank, text) that gets what "
            "the ranks print, or None to print it"
        )


def whole_number(name: str, value: Any, else_: str) -> int:
    """`value` as an int, also one of numpy's. Raises TypeError; `else_`: what would work."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r} is of type {type(value).__name__}: give {else_}") from None


def working_folder() -> str:
    """The folder that ranks work in, the notebook's own. Raises FileNotFoundError, in a sentence, if it is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise FileNotFoundError(
            "the folder that this process works in has been deleted, and its ranks would work there too: go to one "
            'that exists, such as os.chdir(os.path.expanduser("~")), and run again'
        ) from None
