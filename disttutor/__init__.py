"""Distributed training, learnt by running it: real ranks, and a picture of what they did.

>>> import disttutor
>>> disttutor.run(lambda rank: rank * 10, ranks=4)
[0, 10, 20, 30]

Importing this package is cheap, since every rank imports it: the rooms behind these names (and with them torch,
numpy and Matplotlib) are loaded when a name is first used.
"""

import importlib
import sys
from typing import Any

__version__ = "0.1.0"

# Where each public name lives.
_HOME = {
    "cluster": (
        "Cluster", "RankError", "Results", "barrier", "device", "mean", "progress", "rank", "run", "save", "world_size",
    ),
    "models": (
        "MLP", "SmallCNN", "SmallGPT", "accuracy", "classification", "digits", "next_token", "regression", "text",
    ),
    "plans": ("Device", "Link", "Machine", "Mesh", "Op", "Plan"),
    "strategies": ("DataParallel", "Single"),
    "traces": ("Message", "SlowMotion", "Span", "Trace", "replay"),
}  # fmt: skip
_ROOM_OF = {name: room for room, names in _HOME.items() for name in names}
_ROOMS = ("cards", "cluster", "cost", "figures", "labs", "models", "plans", "strategies", "terminal", "traces")

__all__ = ["__version__", *sorted(_ROOM_OF), *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"disttutor.{name}")
    if name in _ROOM_OF:
        value = getattr(importlib.import_module(f"disttutor.{_ROOM_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'disttutor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _in_notebook() -> bool:
    """Whether this process is a notebook's kernel, found out without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython and "ipykernel" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


if _in_notebook():
    # The server that ranks are forked from takes seconds to load torch: it does so while the learner reads on.
    from disttutor.cluster import prewarm

    prewarm()
