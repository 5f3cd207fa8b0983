"""The schedule editor of lesson 08: the learner drags or types every rank's order, `check` says what is wrong with it,
and what can run is run by real ranks."""

from collections.abc import Callable
from typing import Any

from disttutor.figures import compare
from disttutor.labs.lab import Lab
from disttutor.labs.pipelines import SAMPLES, Run, machine_of, perform, predict, verdict, work
from disttutor.plans import SCHEDULES, PlanError, Schedule, build_schedule, parse_order, pipeline_step
from disttutor.traces import Trace, peak_in_flight

PACE = {"latency": 1.0, "bandwidth": 5}         # of the link: ms, MB/s
FORWARD = 0.02                                  # seconds
BOUNDARY_BYTES = 32 * 8                         # of a sample: the network is 32 wide, in float64


def editor(ranks: int = 3, microbatches: int = 4, schedule: str = "1F1B") -> Lab:
    """Change the order of any rank by hand; `check` says what is wrong with it, or real ranks run it."""
    import ipywidgets as w

    from disttutor.labs.orders import Orders

    simple = [name for name in SCHEDULES if len(SCHEDULES[name](2, 2).stages_of[0]) == 1]
    controls = {
        "schedule": w.Dropdown(options=simple, value=schedule, description="start from"),
        "ranks": w.IntSlider(ranks, 2, 4, description="ranks"),
        "microbatches": w.IntSlider(microbatches, 1, 8, description="micro-batches"),
        "orders": Orders(layout=w.Layout(width="100%")),
    }

    def start_anew(_: Any = None) -> None:
        chosen = {name: controls[name].value for name in ("schedule", "ranks", "microbatches")}
        controls["orders"].chosen = str(chosen)
        controls["orders"].value = listing(build_schedule(*chosen.values()))

    for name in ("schedule", "ranks", "microbatches"):
        controls[name].observe(start_anew, "value")
    start_anew()
    return Lab(controls, _run_editor, _draw_editor, title="An order of your own",
               trace=lambda result, settings: result[0].slow).show()


def listing(schedule: Schedule) -> str:
    """Every rank's order, a line each."""
    return "\n".join(schedule.listing(rank) for rank in range(schedule.ranks))


def from_orders(text: str, base: Schedule) -> Schedule:
    """`base` with the orders that `text` says, a line for each rank. Raises ValueError, naming the rank and the place,
    for text that is no order."""
    lines = text.rstrip().split("\n")
    lines += [""] * (base.ranks - len(lines))           # what follows the last action may be left out
    if len(lines) > base.ranks:
        raise ValueError(f"there are {len(lines)} lines, and {base.ranks} ranks: it takes one line for each rank")
    orders = []
    for rank, line in enumerate(lines):
        try:
            orders.append(parse_order(line, base.stages_of[rank], base.microbatches, base.split_backward))
        except ValueError as error:
            raise ValueError(f"rank {rank}, {error}") from None
    return Schedule("your order", tuple(orders), base.stages_of, base.microbatches, base.split_backward)


def _run_editor(settings: dict[str, Any], run: Callable) -> tuple[Run, Trace]:
    """The learner's order on real ranks, once `check` has nothing against it; and the prediction for the one it
    started from."""
    base = build_schedule(settings["schedule"], settings["ranks"], settings["microbatches"])
    mine = from_orders(settings["orders"], base)
    each, machine = work(FORWARD, 1), machine_of(PACE)
    try:
        pipeline_step(mine, work=each).check()
    except PlanError as error:
        # What is missing comes first: messages that then lack their partner only follow from it.
        found = sorted(error.faults, key=lambda fault: not fault.startswith("stage "))
        said = "; ".join(found[:3]) + _more(len(found) - 3)
        raise ValueError(f"This order cannot run: {said}") from None
    as_it_was = pipeline_step(base, work=each, samples=[SAMPLES] * base.microbatches, boundary_bytes=BOUNDARY_BYTES)
    theirs = predict(as_it_was, machine)
    return perform(mine, mine, FORWARD, machine, run), theirs


def _more(left: int) -> str:
    return f"; and {left} more" if left > 0 else ""


def _draw_editor(result: tuple[Run, Trace], settings: dict[str, Any]) -> list[Any]:
    mine, theirs = result
    faster = theirs.makespan - mine.predicted.makespan
    longer = ("as long as" if abs(faster) < 5e-4 else
              f"{abs(faster) * 1e3:.0f} ms {'less' if faster > 0 else 'more'} than")
    return [
        compare([mine.slow, theirs], ["Your order, in slow motion", f"{settings['schedule']}, predicted"],
                activations=True),
        f"By the prediction your order takes {longer} {settings['schedule']}. Your ranks hold at most "
        f"{', '.join(str(peak_in_flight(mine.slow, r)) for r in range(settings['ranks']))} activations.",
        verdict(mine),
    ]
