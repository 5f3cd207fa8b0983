"""Lesson 00: what this machine has, ranks that meet, and three ways to look at what they did."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from disttutor.doctor import Finding, examine
from disttutor.labs.guess import Guess
from disttutor.labs.lab import Lab
from disttutor.plans import Device, Link, Machine
from disttutor.traces import SlowMotion, Trace, recorder, replay

MEETINGS = 3
SIDE, WORK = 160, 12                # the shortest share is 12 multiplications of 160 x 160 matrices, a few milliseconds
# A pace at which that takes 40 ms, and a meeting of four some 20 ms.
PACE = SlowMotion(Machine(Device(2.0 * SIDE**3 * WORK / 0.040), Link(latency=0.003, bandwidth=1e6)))


# ------------------------------------------------------------------------------------------------- the machine


@dataclass(frozen=True)
class Machinery:
    """What was found on this machine, one sentence each, and what follows for this course. As a cell's value it shows
    itself; it holds no path of the machine."""

    findings: tuple[Finding, ...]

    _MARKS = {"fine": "✓", "note": "•", "wrong": "✗"}           # not a field: it has no type

    def lines(self) -> list[tuple[str, str]]:
        """A mark and a sentence for each finding."""
        return [(self._MARKS[f.state], " ".join(filter(None, [f.text, f.advice]))) for f in self.findings]

    def html(self) -> str:
        """The findings as an HTML list, what is wrong in bold."""
        rows = []
        for mark, words in self.lines():
            words = f"<b>{escape(words)}</b>" if mark == "✗" else escape(words)
            rows.append(f"<tr><td>{mark}</td><td style='text-align:left'>{words}</td></tr>")
        shows = "".join(f"<li>{escape(words)}</li>" for words in what_it_shows(cores_here(), gpus_here()))
        return f"<table>{''.join(rows)}</table><p><b>What that means for this course</b></p><ul>{shows}</ul>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        found = [f"{mark} {words}" for mark, words in self.lines()]
        return "\n".join([*found, "What that means for this course:", *what_it_shows(cores_here(), gpus_here())])


def this_machine() -> Machinery:
    """Look at this machine as `disttutor doctor` does; the last check starts two real ranks."""
    home = os.path.expanduser("~")

    def without_paths(words: str) -> str:
        return words.replace(f", {sys.prefix}.", ".").replace(sys.prefix, "this environment").replace(home, "~")

    return Machinery(tuple(replace(f, text=without_paths(f.text), advice=without_paths(f.advice)) for f in examine()))


def cores_here() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus_here() -> int:
    """How many GPUs PyTorch can use."""
    import torch

    return torch.cuda.device_count()


def what_it_shows(cores: int, gpus: int) -> list[str]:
    """What a machine with these cores and GPUs can show of distributed training, and what it cannot."""
    always = ("Everything about numbers is real here: weights, gradients, losses, and the messages between ranks, to "
              "the last byte. That does not depend on how fast the machine is.")
    if cores >= 8:
        speed = f"With {cores} cores, up to {cores} ranks work side by side: even the wall clock tells the truth."
    elif cores >= 2:
        speed = (f"With {cores} cores, {cores} ranks really work side by side; more of them take turns. They compute "
                 "the same, but not faster, so timelines are also shown replayed and in slow motion (below).")
    else:
        speed = ("With one core the ranks take turns. They compute the same, but more ranks are never faster here: "
                 "look at the replayed timelines and at those in slow motion (below).")
    if gpus > 1:
        far = f"With {gpus} GPUs the lessons can give each of {gpus} ranks its own: device=\"cuda\"."
    elif gpus == 1:
        far = "One GPU can train, but GPUs that talk to each other need at least two. The lessons use the CPU."
    else:
        far = "How fast real GPUs and their links are is not measured here. The lessons predict it, and say so."
    return [always, speed, far]


# ------------------------------------------------------------------------------------------------- ranks that meet


def meet(rank: int, aloud: bool = True, meetings: int = MEETINGS) -> float:
    """Work alone, add up with all others, and again; each time another rank has the most to do. Returns the last sum.

    aloud: whether the ranks say so.
    """
    import torch
    import torch.distributed as dist

    log, ranks = recorder(), tuple(range(dist.get_world_size()))
    matrix = torch.full((SIDE, SIDE), 1.0 / SIDE)
    dist.barrier()                                          # so that all begin together
    for meeting in range(meetings):
        log.next_step(meeting)
        share = WORK * (1 + (rank + meeting) % min(len(ranks), 4))
        begun = log.begin()
        for _ in range(share):
            matrix = matrix @ matrix
        log.end(begun, "compute", flops=2.0 * SIDE**3 * share)
        number = torch.tensor([rank + 1.0])
        begun = log.begin()
        dist.all_reduce(number)
        log.end(begun, "all_reduce", nbytes=number.nbytes, group=ranks)
        begun = log.begin()
        together = number.item()
        log.end(begun, "update")
        if aloud:
            print(f"step {meeting}: I brought {rank + 1}, together we have {together:.0f}")
    return together


SLOW, CORE_EACH, WALL = "in slow motion", "a core for each rank", "as it ran"


def views(measured: Trace, slow: Trace) -> dict[str, Trace]:
    """The three ways to look at the same work."""
    return {WALL: measured, CORE_EACH: replay(measured), SLOW: slow}


def draw_view(name: str, trace: Trace) -> Any:
    """One of the three as a timeline."""
    from disttutor.figures import timeline

    return timeline(trace, title=f"Work alone, then meet: {name}")


# ------------------------------------------------------------------------------------------------- the lab


def guess_all_reduce() -> Guess:
    """What an all-reduce leaves on a rank; the answer stays out of the lesson's cell."""
    return Guess(
        "Ranks 0, 1, 2 and 3 hold the numbers 1, 2, 3 and 4. They all-reduce them. What does rank 2 hold afterwards?",
        ["3, its own number", "6, the sum of ranks 0 to 2", "10, the sum of all",
         "nothing: only rank 0 holds the result"],
        right="10, the sum of all",
        why="All ranks give, and all ranks get. The number each had before is overwritten.",
    )


def lab() -> Lab:
    """Choose how many ranks meet, and from where you look at them."""
    from ipywidgets import Dropdown, IntSlider

    controls = {
        "ranks": IntSlider(4, 1, 8, description="ranks"),
        "view": Dropdown(options=[SLOW, CORE_EACH, WALL], description="look at it"),
    }
    return Lab(controls, _experiment, _draw, redraw_only=["view"], title="Ranks that work alone, and then meet")


def _experiment(settings: dict[str, Any], run: Callable) -> dict[str, Any]:
    measured = run(meet, ranks=settings["ranks"], record=True)
    slow = run(meet, False, ranks=settings["ranks"], slow_motion=PACE)
    return {"sums": list(measured), "traces": views(measured.trace, slow.trace)}


def _draw(result: dict[str, Any], settings: dict[str, Any]) -> list[Any]:
    ranks = settings["ranks"]
    sums = sorted(set(result["sums"]))
    added = " + ".join(str(rank + 1) for rank in range(ranks))
    said = f"{ranks} ranks brought {added}." if ranks > 1 else "One rank brought 1 and met nobody."
    said += f" After the meeting every rank holds {sums[0]:.0f}." if len(sums) == 1 else f" They disagree: {sums}."
    return [said, draw_view(settings["view"], result["traces"][settings["view"]])]
