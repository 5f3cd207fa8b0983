"""What compiled code writes when it gives up, made short: a page of C++ frames for each rank helps no learner.

Where the rank's own Python code stood is told by the error (see `errors.blame`); here is what the C++ runtime says of
its exception before it ends the process. Ranks run the same code, so what one has said is not repeated for another.
"""

from __future__ import annotations

import re
import signal

CRASHES = {-getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
           if hasattr(signal, name)}  # exit codes  # fmt: skip
MOST_LINES = 10  # of one rank
_BEGINS = re.compile(r"terminate called |libc\+\+abi: |Fatal Python error: ")
_FRAME = re.compile(r"\s*frame #\d+: ")


class LastWords:
    """Goes through the lines of all ranks of a run, and shortens those that follow on a crash."""

    def __init__(self) -> None:
        self._left: dict[int, int] = {}  # of each rank that is crashing: how many lines may still be shown
        self._said: set[str] = set()

    def condense(self, rank: int, lines: list[str]) -> list[str]:
        """The lines to be shown."""
        return [line for line in lines if self._shown(rank, line)]

    def _shown(self, rank: int, line: str) -> bool:
        if rank not in self._left:
            if not _BEGINS.match(line):
                return True
            self._left[rank] = MOST_LINES
        if not line.strip() or _FRAME.match(line) or line in self._said or not self._left[rank]:
            return False
        self._left[rank] -= 1
        self._said.add(line)
        return True


def crashing_stack(dump: str) -> str:
    """Of what faulthandler wrote about every thread at the last crash: the thread that crashed.

    If that one ran no Python code (a thread of compiled code), the first thread of the process, where the learner is.
    """
    threads = dump.rpartition("Fatal Python error: ")[2].partition("Extension modules:")[0].split("\n\n")
    with_code = [thread for thread in threads if 'File "' in thread]
    crashed = [thread for thread in with_code if thread.lstrip().startswith("Current thread")]
    return [*crashed, *reversed(with_code), ""][0]
