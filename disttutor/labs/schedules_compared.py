"""Six schedules of lesson 08 beside each other: real ranks do the same batches in six orders, in slow motion, and
tables say what each order costs in time, memory and messages, as measured, as predicted and in closed form."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from disttutor.figures import compare
from disttutor.labs.data_parallelism import calmest
from disttutor.labs.lab import Lab
from disttutor.labs.page import Table
from disttutor.labs.pipelines import (
    SAMPLES,
    apart,
    batches,
    closed_form,
    machine_of,
    milliseconds,
    one_process,
    percent,
    predict,
    train,
    work,
)
from disttutor.plans import build_schedule
from disttutor.traces import SlowMotion, Trace, bubble_share, bytes_entered, operations, peak_in_flight

SIX = ("naive", "GPipe", "1F1B", "interleaved 1F1B", "ZB-H1", "ZB-H2")
FORWARD = 0.015                 # seconds
STEPS = 3
ALL_BUT_NAIVE, ONE = "all but naive", "{}, over its prediction"


def schedules(ranks: int = 4, microbatches: int = 8) -> Lab:
    """Six schedules on the same batches, each in slow motion; tables of their times, bubbles, activations and bytes."""
    import ipywidgets as w

    controls = {
        "ranks": w.IntSlider(ranks, 2, 6, description="ranks"),
        "microbatches": w.IntSlider(microbatches, 1, 16, description="micro-batches"),
        "latency": w.FloatSlider(1.0, min=0, max=20, step=0.5, description="link latency (ms)"),
        "show": w.Dropdown(options=[ALL_BUT_NAIVE, *map(ONE.format, SIX)], description="show"),
    }
    return Lab(controls, _run_six, _draw_six, redraw_only={"show"}, title="Six orders of the same work",
               trace=lambda result, settings: result[_chosen(settings["show"])[0]].slow).show()


@dataclass(frozen=True)
class Watched:
    """One schedule in the comparison: in slow motion, as predicted, and how far its weights are from one process."""

    slow: Trace
    predicted: Trace
    stages_a_rank: int
    distance: float


def _run_six(settings: dict[str, Any], run: Callable) -> dict[str, Watched]:
    ranks, m = settings["ranks"], settings["microbatches"]
    machine = machine_of({"latency": settings["latency"], "bandwidth": 5})
    data, out = batches(SAMPLES * m, STEPS), {}
    one = one_process(data)["weights"]
    for name in SIX:
        own = len(build_schedule(name, ranks, m).stages_of[0])
        done = run(train, data, name, m, work(FORWARD, own), ranks=ranks, slow_motion=SlowMotion(machine))
        out[name] = Watched(calmest(done.trace), predict(done[0]["plan"], machine), own,
                            max(apart(answer["weights"], one) for answer in done))
    return out


def _chosen(show: str) -> list[str]:
    return [name for name in SIX if show == ONE.format(name)] or list(SIX[1:])


def _draw_six(result: dict[str, Watched], settings: dict[str, Any]) -> list[Any]:
    names = _chosen(settings["show"])
    if len(names) == 1:
        (name,) = names
        picture = compare([result[name].slow, result[name].predicted],
                          [f"{name}, in slow motion", f"{name}, predicted"], activations=True)
    else:
        picture = compare([result[name].slow for name in names], [f"{name}, in slow motion" for name in names],
                          activations=True, messages=False)
    equal = all(seen.distance < 1e-12 for seen in result.values())
    return [picture, times_of_six(result, settings), sizes_of_six(result, settings),
            "All six end with the weights of one process: less than 1e-12 apart." if equal else
            "The weights of some differ from those of one process: " + ", ".join(
                f"{name} by {seen.distance:.0e}" for name, seen in result.items() if seen.distance >= 1e-12)]


def times_of_six(result: dict[str, Watched], settings: dict[str, Any]) -> Table:
    """How long a step takes and the bubble in it: measured, predicted, in closed form."""
    rows = []
    for name, seen in result.items():
        closed = closed_form(name, settings["ranks"], settings["microbatches"], FORWARD)
        rows.append([name, milliseconds(seen.slow.makespan), milliseconds(seen.predicted.makespan),
                     milliseconds(closed.makespan) if closed else "–",
                     percent(bubble_share(seen.slow)), percent(bubble_share(seen.predicted)),
                     *([percent(closed.share_of_total), percent(closed.ratio_to_ideal)] if closed else "––")])
    return Table(["schedule", "step measured", "step predicted", "step by formula", "bubble share measured",
                  "share predicted", "share by formula", "ratio by formula"], rows, timed=[1, 4],
                 caption="Measured is in slow motion. Share: idle time of the total; ratio: of the time that a rank "
                         "works. The formulas know no messages.")


def sizes_of_six(result: dict[str, Watched], settings: dict[str, Any]) -> Table:
    """What each schedule holds and sends, as recorded and by formula: each of m micro-batches passes every boundary
    between stages twice. Activations are counted in whole shares of a rank's layers."""
    ranks, m = settings["ranks"], settings["microbatches"]
    rows = []
    for name, seen in result.items():
        own, closed = seen.stages_a_rank, closed_form(name, ranks, m, FORWARD)
        rows.append([name, _shares([peak_in_flight(seen.slow, rank) for rank in range(ranks)], own),
                     _shares(closed.in_flight, own) if closed else "–",
                     sum(operations(seen.slow, rank, "send") for rank in range(ranks)), 2 * m * (ranks * own - 1),
                     f"{sum(sent(seen.slow, rank) for rank in range(ranks)) / 1e3:.1f} kB"])
    return Table(["schedule", "activations at most, rank by rank", "by formula", "messages of all ranks", "by formula",
                  "bytes in them"], rows,
                 caption="Activations: micro-batches that a rank holds at one time, each with all of its layers. "
                         "(Where a rank has two stages, the picture counts each by itself: 11 there are 5.5 here.)")


def _shares(counts: Sequence[int], own: int) -> str:
    return ", ".join(f"{count / own:g}" for count in counts)


def sent(trace: Trace, rank: int) -> int:
    """Bytes of activations and gradients that the rank sent (not what all ranks add up at the end of a step)."""
    return bytes_entered(trace, rank) - sum(s.nbytes for s in trace.of(rank, "comm") if s.group)
