"""What ranks print, warn and count, as the learner sees it: whole lines marked with their rank, one progress bar."""

from __future__ import annotations

import codecs
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from disttutor.cluster.crashes import LastWords
from disttutor.cluster.errors import place

Sink = Callable[[int | None, str], None]

MOST = 400_000  # characters that one run may show
TAIL = 20  # lines shown at the end of a run that went over it, each cut to LONGEST_AT_END characters
LONGEST_AT_END = 2000
_LONGEST_LINE = 1 << 16


class Console:
    """Where the text of one run goes: the cell that is running, or a sink `output(rank, text)`.

    A sink gets one whole line a call (with its newline); `rank` is None for the cluster's own remarks. If it has a
    method `progress(title, done, total)`, that is called too.
    """

    def __init__(self, sink: Sink | None = None) -> None:
        self._sink = sink
        self._lines: dict[int, _Lines] = {}
        self._shown = 0
        self._left_out: deque[tuple[int, str]] = deque(maxlen=TAIL)
        self._left_out_count = 0
        self._warned: set[tuple] = set()
        self._crashes = LastWords()
        self._bar = _Bar(sink)

    def feed(self, rank: int, data: bytes) -> None:
        """Bytes that a rank printed."""
        self._write(rank, self._lines.setdefault(rank, _Lines()).feed(data))

    def warning(self, rank: int, info: dict[str, Any]) -> None:
        """A Python warning in a rank. Ranks run the same code: each distinct warning is shown once a run."""
        key = tuple(info.values())
        if key not in self._warned:
            self._warned.add(key)
            where = place(info["filename"], info["lineno"])
            self._write(rank, [*f"{info['category']}: {info['message']}  ({where})".splitlines()])

    def progress(self, rank: int, info: dict[str, Any]) -> None:
        """How far a rank is in its loop."""
        self._bar.move(rank, **info)

    def remark(self, text: str) -> None:
        """A line of the cluster's own."""
        if self._sink is not None:
            self._sink(None, text + "\n")
        else:
            self._print(text + "\n")

    def finish(self) -> None:
        """Show what is left: unfinished lines, and the end of a text that was too long."""
        for rank, lines in self._lines.items():
            self._write(rank, lines.rest())
        self._bar.close()
        if self._left_out_count:
            tail, count = list(self._left_out), self._left_out_count
            self._left_out.clear()
            self._left_out_count = 0
            self.remark(f"… {count} lines of the ranks are not shown; the last {len(tail)}:")
            for rank, line in tail:
                self._show(rank, [f"{cut_in_the_middle(line, LONGEST_AT_END)}\n"])

    def _write(self, rank: int, lines: list[str]) -> None:
        text = []
        for line in self._crashes.condense(rank, lines):
            if self._shown > MOST:
                self._left_out.append((rank, line))
                self._left_out_count += 1
                continue
            self._shown += len(line) + 10
            text.append(f"{line}\n")
        if text:
            self._show(rank, text)

    def _show(self, rank: int, text: list[str]) -> None:
        if self._sink is not None:
            for line in text:
                self._sink(rank, line)
        else:
            self._print("".join(f"[rank {rank}] {line}" for line in text))

    def _print(self, text: str) -> None:
        with self._bar.aside():
            sys.stdout.write(text)
            sys.stdout.flush()


def cut_in_the_middle(line: str, longest: int) -> str:
    """The line, or its two ends with a word on how much is left out between them."""
    if len(line) <= longest:
        return line
    return f"{line[: longest // 2]} … {len(line) - longest} characters left out … {line[-(longest // 2) :]}"


class _Lines:
    """Bytes in, whole lines out."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._open = ""

    def feed(self, data: bytes) -> list[str]:
        *whole, self._open = (self._open + self._decoder.decode(data)).split("\n")
        if len(self._open) > _LONGEST_LINE:
            whole.append(self._open)
            self._open = ""
        return [self._as_on_a_terminal(line) for line in whole]

    def rest(self) -> list[str]:
        line, self._open = self._open + self._decoder.decode(b"", final=True), ""
        return [self._as_on_a_terminal(line)] if line else []

    @staticmethod
    def _as_on_a_terminal(line: str) -> str:
        """Of a line that was written over with carriage returns, what stays visible."""
        return line.rstrip("\r").rpartition("\r")[2]


class _Bar:
    """One bar for all ranks: as far as the slowest of them."""

    def __init__(self, sink: Sink | None) -> None:
        self._sink = getattr(sink, "progress", None) if sink is not None else None
        self._silent = sink is not None and self._sink is None
        self._bar: Any = None
        self._turn = -1
        self._done: dict[int, int] = {}

    def move(self, rank: int, turn: int, title: str, done: int, total: int | None) -> None:
        if self._silent or turn < self._turn:
            return
        if turn > self._turn:
            self._turn, self._done = turn, {}
            if self._bar is not None:
                self._bar.reset(total)
                self._bar.set_description(title)
        self._done[rank] = done
        slowest = min(self._done.values())
        if self._sink is not None:
            self._sink(title, slowest, total)
            return
        if self._bar is None:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, desc=title, leave=True)
        self._bar.update(slowest - self._bar.n)

    def aside(self):
        """A context in which text may be written without tearing the bar."""
        from contextlib import nullcontext

        return nullcontext() if self._bar is None else type(self._bar).external_write_mode(file=sys.stdout)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
