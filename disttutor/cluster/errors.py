"""What is said when a run fails: which rank, what, and on which line of which notebook cell."""

from __future__ import annotations

import linecache
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_OURS = {os.path.join(_HERE, name) for name in ("rank_main.py", "boot.py", "attach.py")} | {"<string>"}
_LONGEST = 12_000  # characters of one traceback


class RankError(RuntimeError):
    """A run did not come to its end, and why.

    `rank`: the rank to blame (None where no single one is: a stopped run). `kind`: "raised", "died", "timeout" or
    "interrupted". `detail`: the whole story; its first line names rank, cause and the line of the notebook cell.
    """

    def __init__(self, rank: int | None, kind: str, detail: str) -> None:
        super().__init__(rank, kind, detail)
        self.rank, self.kind, self.detail = rank, kind, detail

    def __str__(self) -> str:
        return self.detail

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the story of the ranks; how the notebook waited for them would only hide it."""
        first, *rest = self.detail.splitlines()
        return [f"RankError: {first}", *rest]


class StartLost(RankError):
    """What ranks are forked from ended before any of them had begun the function: trying again does no harm."""


@dataclass
class Fault:
    """What one rank told, or what became of it."""

    rank: int
    exit_code: int | None = None
    died: bool = False
    stack: str = ""  # of a rank that died in compiled code: where it stood, as faulthandler writes it
    report: dict[str, Any] = field(default_factory=dict)  # as `describe_exception` makes it
    when: float = 0.0

    @property
    def of_the_server(self) -> bool:
        """Whether the rank is gone because the process that it was forked from is."""
        return self.died and self.exit_code is None

    @property
    def of_a_peer(self) -> bool:
        """Whether this is what a rank sees when another one is gone, not a fault of its own."""
        words = ("connection closed by peer", "connection reset by peer", "connection refused", "broken pipe",
                 "read error", "write error", "remote process", "socket", "timed out waiting")  # fmt: skip
        message = self.report.get("message", "").lower()
        return not self.died and self.report.get("type", "").startswith(("RuntimeError", "Dist")) and any(
            word in message for word in words
        )


# ------------------------------------------------------------------------------------------------- in the rank


def describe_exception(problem: BaseException, skip: str = "") -> dict[str, Any]:
    """An exception as plain text and numbers, so that it reaches the notebook whatever it holds.

    `skip`: a file whose leading frames are of no interest.
    """
    try:
        told = traceback.TracebackException.from_exception(problem)
        while told.stack and told.stack[0].filename == skip:
            del told.stack[0]
        text = "".join(told.format())
        frames = [(f.filename, f.lineno, f.name) for f in told.stack]
    except BaseException as second:  # an exception whose own text raises: anything, SystemExit too
        text, frames = f"{type(problem).__name__} (its text cannot be shown: {type(second).__name__})\n", []
    try:
        message = "".join([str(problem)])  # a plain str: a class derived from it could not be read in the notebook
    except BaseException:
        message = "(its message cannot be shown)"
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}\n  … {len(text) - _LONGEST} characters left out …\n{text[-_LONGEST // 2 :]}"
    return {"type": _type_name(problem), "message": message, "text": text, "frames": frames}


def _type_name(value: Any) -> str:
    return type(value).__qualname__.rpartition("<locals>.")[2]


def describe_type(value: Any) -> str:
    """The type of a value, with the types inside where it is a container."""
    name = _type_name(value)
    if isinstance(value, dict):
        inner = {_type_name(v) for v in value.values()}
    elif isinstance(value, list | tuple | set):
        inner = {_type_name(v) for v in value}
    else:
        return f"it is of type {name}"
    return f"it is a {name} holding {', '.join(sorted(inner)[:6]) or 'nothing'}"


# --------------------------------------------------------------------------------------------- in the notebook


def place(filename: str, line: int) -> str:
    """`cell In[3], line 5: `x = 1`` for a notebook cell, `train.py, line 5: …` for a file."""
    source = linecache.getline(filename, line).strip()
    cell = cell_name(filename)
    name = f"cell {cell}" if cell else os.path.basename(filename)
    return f"{name}, line {line}" + (f": `{source}`" if source else "")


def cell_name(filename: str) -> str | None:
    """`In[3]` for the file name that IPython gave to the code of that cell."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    try:
        kind, name = shell.compile.format_code_name(filename)
    except (AttributeError, TypeError):
        return None
    return name if kind == "Cell" else None


def with_cells(text: str) -> str:
    """A traceback's text with `File "/tmp/ipykernel_1/2.py", line 5` written as `Cell In[3], line 5`."""

    def rename(match: re.Match[str]) -> str:
        cell = cell_name(match[1])
        return f"Cell {cell}, line {match[2]}" if cell else match[0]

    return re.sub(r'File "([^"\n]+)", line (\d+)', rename, text)


def learners_frame(frames: Sequence[tuple[str, int, str]]) -> tuple[str, int, str] | None:
    """The innermost frame that the learner wrote: in a cell, else outside the installed libraries."""
    for mine in (lambda f: cell_name(f) is not None, lambda f: not _is_library(f), lambda f: True):
        for frame in reversed(frames):
            if mine(frame[0]):
                return frame
    return None


def _is_library(filename: str) -> bool:
    installed = (os.path.dirname(_HERE), os.path.dirname(os.__file__), sys.prefix, sys.base_prefix, "<")
    return filename.startswith(installed) or "site-packages" in filename


def names(ranks: Iterable[int]) -> str:
    """`rank 1`, `ranks 0 and 2`, `ranks 0, 1 and 2`."""
    told = [str(r) for r in sorted(ranks)]
    if len(told) == 1:
        return f"rank {told[0]}"
    return f"ranks {', '.join(told[:-1])} and {told[-1]}"


def blame(faults: Sequence[Fault]) -> RankError:
    """One error out of what the ranks reported: the culprit first, what its peers then saw after it.

    A rank that died counts before any that raised, and what a rank sees when a peer is gone comes last, whoever
    reported first. Ranks that raised the same error are named together.
    """
    ordered = sorted(faults, key=lambda f: (not f.died, f.of_a_peer, f.when, f.rank))
    first = ordered[0]
    if first.died:
        headline, kind, story = f"rank {first.rank} {_how_it_ended(first.exit_code)}", "died", []
        if frame := learners_frame(frames_of(first.stack)):
            headline += f"  ({place(*frame[:2])})"
        alike = {f.rank for f in ordered if f.died and f.exit_code == first.exit_code}
        if first.stack:
            story = ["", f"rank {first.rank} stood here (innermost first):", stack_in_words(first.stack)]
    else:
        what = (first.report["type"], first.report["message"])
        alike = {f.rank for f in ordered if not f.died and (f.report["type"], f.report["message"]) == what}
        first = min((f for f in ordered if f.rank in alike and not f.died), key=lambda f: f.rank)
        headline, kind = f"rank {first.rank} raised {_headline(first.report)}", "raised"
        story = ["", f"rank {first.rank}:", with_cells(first.report["text"]).rstrip()]
    if len(alike) > 1:
        others = alike - {first.rank}
        story.insert(0, f"({names(others)} did the same)")
    for peer in ordered:
        if peer.rank not in alike:
            story += ["", _in_short(peer)]
    return RankError(first.rank, kind, "\n".join([headline, *story]))


def _headline(report: dict[str, Any]) -> str:
    message = report["message"].strip()
    text = report["type"] + (f": {_cut(message.splitlines()[0])}" if message else "")
    frame = learners_frame(report["frames"])
    return text + (f"  ({place(frame[0], frame[1])})" if frame else "")


def _in_short(peer: Fault) -> str:
    if peer.died:
        return f"then rank {peer.rank} {_how_it_ended(peer.exit_code)}"
    report = peer.report
    if peer.of_a_peer:  # gloo's long text: the place in its C++ source, and advice
        message = re.sub(r"^\[/\S+\] ", "", report["message"]).partition(". This is")[0]
        report = {**report, "message": _cut(message, 120)}
    return f"then rank {peer.rank} saw {_headline(report)}"


def _cut(text: str, longest: int = 300) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _how_it_ended(exit_code: int | None) -> str:
    """What a process's exit code says, in words."""
    if exit_code is None:
        return "is gone: the process that ranks are forked from has ended"
    if exit_code >= 0:
        return f"ended with exit code {exit_code} before it returned (os._exit, or a library that calls it)"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    why = {
        "SIGKILL": " (perhaps out of memory)",
        "SIGSEGV": " (a crash in compiled code)",
        "SIGABRT": " (compiled code gave up; what it said, if anything, is in the output above)",
        "SIGBUS": " (a crash in compiled code, or shared memory is full)",
    }.get(name, "")
    return f"was killed by {name}{why}"


def frames_of(dump: str) -> list[tuple[str, int, str]]:
    """The frames of what faulthandler wrote about one rank, without ours that called the function; innermost last."""
    frames = []
    for filename, line, function in re.findall(r'File "([^"]+)", line (\d+) in (.+)', dump):
        if filename in _OURS:
            break
        frames.append((filename, int(line), function))
    return frames[::-1]


def stack_in_words(dump: str) -> str:
    """What faulthandler wrote about one rank, innermost frame first, with the notebook's lines in it."""
    if not dump:
        return "    (it did not answer)"
    lines = [f"    in {function}  ({place(filename, line)})" for filename, line, function in reversed(frames_of(dump))]
    return "\n".join(lines) or "    (not in your code: it was starting, or waiting for work)"


def timed_out(waiting: set[int], seconds: float, stacks: dict[int, str], returned: set[int]) -> RankError:
    """The error at a deadline, with the place where each rank stood."""
    story = [f"{names(waiting)} did not return within {seconds:g} s"]
    if returned:
        story.append(f"({names(returned)} had returned: a collective needs every rank of its group)")
    for rank in sorted(waiting):
        story += ["", f"rank {rank} stood here (innermost first):", stack_in_words(stacks.get(rank, ""))]
    return RankError(min(waiting), "timeout", "\n".join(story))
