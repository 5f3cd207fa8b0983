"""The main lab of lesson 08: real ranks train the handwritten digits in a pipeline, in slow motion and as fast as they
can.

Every stage is modelled to take equally long, whatever its layers, so that the picture shows the schedule and nothing
else; the digits, the gradients and the messages are real.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from disttutor.cost import simulate
from disttutor.figures import compare, timeline
from disttutor.labs.data_parallelism import calmest
from disttutor.labs.guess import Guess
from disttutor.labs.lab import Lab
from disttutor.labs.page import Table, Timed
from disttutor.models import MLP, classification, digits
from disttutor.plans import BUBBLES, SCHEDULES, Bubble, Device, Link, Machine, Plan, Schedule, StageWork, build_schedule
from disttutor.strategies import Pipeline, Single
from disttutor.traces import SlowMotion, Trace, bubble_ratio, bubble_share, peak_in_flight, replay

SAMPLES = 8                     # in a micro-batch
LAYERS = 16                     # so that up to 8 ranks can hold two stages each
STEPS = 3
DISTURBED = 0.05                # a step in slow motion that took so much longer than predicted was disturbed
RATE = 1e9                      # flop/s of the modelled device; a forward's flops follow from how long it shall take
SGD = partial(torch.optim.SGD, lr=0.05, momentum=0.9)

Batch = tuple[Tensor, Tensor]


def network(layers: int = LAYERS, **more: Any) -> MLP:
    """The network of this lesson, with the same start weights each time, in float64. more: arguments of `MLP`.

    A layer's weights vary by 1/inputs, three times as much as PyTorch's default: through so many layers of tanh hardly
    any gradient would else come back to the first stage (Glorot and Bengio 2010), and equality there would say little.
    """
    model = MLP([64, *[32] * (layers - 1), 10], activation="tanh", seed=0, dtype=torch.float64, **more)
    with torch.no_grad():
        for layer in model.layers:
            if isinstance(layer, torch.nn.Linear):
                layer.weight *= 3**0.5
    return model


def batches(samples: int, steps: int = STEPS) -> list[Batch]:
    """So many batches of digits, one after the other. Made in the notebook and given to the ranks: loading the digits
    takes longer than a step."""
    data = digits(torch.float64)
    chosen = [torch.arange(step * samples, (step + 1) * samples) % len(data.train_y) for step in range(steps)]
    return [(data.train_x[of], data.train_y[of]) for of in chosen]


def work(forward: float, stages_a_rank: int) -> StageWork:
    """Of a stage, such that a rank's whole share of a micro-batch takes `forward` seconds, and so does each half of its
    backward."""
    flops = forward * RATE / SAMPLES / stages_a_rank
    return StageWork(flops, flops, flops)


def train(rank: int, data: list[Batch], schedule: str | Schedule, microbatches: int,
          stage_work: StageWork) -> dict[str, Any]:
    """A step on each batch in a pipeline: losses, all weights at the end, and the plan of a step."""
    strategy = Pipeline(network(), classification, SGD, schedule=schedule, microbatches=microbatches,
                        stage_work=stage_work)
    plan = strategy.plan(data[0])
    losses = [strategy.step(batch) for batch in data]
    return {"losses": losses, "weights": strategy.full_state()["model"], "plan": plan}


def one_process(data: list[Batch]) -> dict[str, Any]:
    """The same steps in this process, each batch undivided."""
    strategy = Single(network(), classification, SGD)
    losses = [strategy.step(batch) for batch in data]
    return {"losses": losses, "weights": strategy.full_state()["model"]}


def apart(some: dict[str, Tensor], others: dict[str, Tensor]) -> float:
    """The largest difference between two models' weights (and running statistics; not between counts of batches)."""
    return max(float((some[name] - t).abs().max()) for name, t in others.items() if t.is_floating_point())


# --------------------------------------------------------------------------------------------------- the guesses


def guess_bubble() -> Guess:
    """How much of the time do stages stand idle?"""
    return Guess(
        "Four ranks hold a quarter of the layers each. A batch goes through in 8 micro-batches, and each rank works as "
        "soon as it can. For which share of the step does a rank have nothing to do?",
        ["almost none: the pipeline is full", "3 of 11, about 27 %", "3 of 4, since only one can work at a time"],
        right="3 of 11, about 27 %",
        why="The first micro-batch needs 3 turns to reach the last rank, and the last gradient 3 turns to come back: "
            "p - 1 turns of m + p - 1 in which a rank waits. With one single micro-batch it would be 3 of 4.")


def guess_memory() -> Guess:
    """What does 1F1B change?"""
    return Guess(
        "GPipe does all forwards, then all backwards. 1F1B begins with a backward as soon as it can. Both with 4 ranks "
        "and 8 micro-batches. What is better with 1F1B?",
        ["the bubble is smaller", "fewer activations are kept at one time", "both", "fewer messages are sent"],
        right="fewer activations are kept at one time",
        why="Both wait as long. But stage s of p keeps at most p - s micro-batches in flight instead of all m, and so "
            "one can have many micro-batches, which is what makes the bubble small.")


# ----------------------------------------------------------------------------------------------- (a) the pipeline


@dataclass(frozen=True)
class Run:
    """What the main lab gave: a step in slow motion and as predicted, one as it ran, and both results."""

    slow: Trace
    predicted: Trace
    ran: Trace
    answers: list[dict[str, Any]]
    one: dict[str, Any]

    @property
    def distance(self) -> float:
        """Largest difference of a weight to one process, over all ranks' full states."""
        return max(apart(answer["weights"], self.one["weights"]) for answer in self.answers)


SLOW, RAN, REPLAYED = "slow motion, over its prediction", "as it ran", "a core for each rank"


def pipeline(ranks: int = 4, microbatches: int = 8, schedule: str = "1F1B") -> Lab:
    """The main lab: stages, micro-batches, schedule, device and link are controls."""
    import ipywidgets as w

    controls = {
        "ranks": w.IntSlider(ranks, 1, 8, description="ranks"),
        "microbatches": w.IntSlider(microbatches, 1, 16, description="micro-batches"),
        "schedule": w.Dropdown(options=list(SCHEDULES), value=schedule, description="schedule"),
        "forward": w.IntSlider(20, 5, 60, step=5, description="forward takes (ms)"),
        "latency": w.FloatSlider(1.0, min=0, max=20, step=0.5, description="link latency (ms)"),
        "bandwidth": w.SelectionSlider(options=[0.1, 0.5, 1, 5, 50], value=5, description="link speed (MB/s)"),
        "view": w.ToggleButtons(options=[SLOW, RAN, REPLAYED], value=SLOW, description="look at it",
                                style={"button_width": "auto"}),
    }
    return Lab(controls, _run, _draw, redraw_only={"view"}, title="Pipeline parallelism: real ranks, each a stage",
               trace=lambda result, settings: _view(result, settings["view"])).show()


def machine_of(settings: dict[str, Any]) -> Machine:
    """The modelled machine that the sliders say."""
    return Machine(Device(RATE, "device"), Link(settings["latency"] / 1e3, settings["bandwidth"] * 1e6, "link"))


def _run(settings: dict[str, Any], run: Callable) -> Run:
    ranks, m, machine = settings["ranks"], settings["microbatches"], machine_of(settings)
    schedule = build_schedule(settings["schedule"], ranks, m)
    return perform(schedule.name, schedule, settings["forward"] / 1e3, machine, run)


def perform(name: str | Schedule, schedule: Schedule, forward: float, machine: Machine, run: Callable) -> Run:
    """Run `schedule` on real ranks, in slow motion and as fast as they can, and beside it one process.

    name: what the ranks build it from (the schedule itself if it is nobody's but the learner's).
    """
    each, data = work(forward, len(schedule.stages_of[0])), batches(SAMPLES * schedule.microbatches)
    how = {"ranks": schedule.ranks}
    slow = run(train, data, name, schedule.microbatches, each, slow_motion=SlowMotion(machine), **how)
    fast = run(train, data, name, schedule.microbatches, each, record=True, **how)
    return Run(calmest(slow.trace), predict(slow[0]["plan"], machine), calmest(fast.trace), list(slow),
               one_process(data))


def predict(plan: Plan, machine: Machine) -> Trace:
    """One step of `plan` on `machine`, whose picture says the same about the machine as slow motion does."""
    return replace(simulate(plan, machine), note=SlowMotion(machine).describe())


def _view(result: Run, view: str) -> Trace:
    return {SLOW: result.slow, RAN: result.ran}.get(view) or replay(result.ran)


def _draw(result: Run, settings: dict[str, Any]) -> list[Any]:
    name, view = settings["schedule"], settings["view"]
    if view == SLOW:
        picture = compare([result.slow, result.predicted], [f"{name}, in slow motion", f"{name}, predicted"],
                          activations=True)
    else:
        picture = timeline(_view(result, view), title=f"{name}, {view}", activations=True)
    return [picture, bubble_table(result, settings), memory_table(result, settings), verdict(result),
            *quietness(result)]


def quietness(result: Run) -> list[Timed]:
    """A sentence if other work of the machine has lengthened the step in slow motion."""
    longer = result.slow.makespan / result.predicted.makespan - 1
    return [Timed(f"In slow motion the step took {longer:.0%} longer than predicted: this machine did other things "
                  "too. Run it again when it is quiet.")] if longer > DISTURBED else []


def bubble_table(result: Run, settings: dict[str, Any]) -> Table:
    """The bubble as measured, as predicted on this machine, and in closed form, which knows no messages."""
    traces = {"measured, in slow motion": result.slow, "predicted, with this link": result.predicted}
    if (view := settings["view"]) != SLOW:
        traces = {f"measured, {view}": _view(result, view)} | traces
    rows = [[words, percent(bubble_share(t)), percent(bubble_ratio(t)), milliseconds(t.makespan)]
            for words, t in traces.items()]
    closed = closed_form(settings["schedule"], settings["ranks"], settings["microbatches"], settings["forward"] / 1e3)
    if closed is not None:
        rows.append(["closed form, without messages", percent(closed.share_of_total), percent(closed.ratio_to_ideal),
                     milliseconds(closed.makespan)])
    return Table(["bubble", "share of the total", "ratio to the ideal", "a step takes"], rows, timed=[1, 2, 3])


def closed_form(schedule: str, ranks: int, microbatches: int, t: float) -> Bubble | None:
    """The closed form of a schedule whose F, B and W take `t` seconds each; None where none is known for these
    numbers."""
    try:
        return BUBBLES[schedule](ranks, microbatches, t, t, t) if schedule in BUBBLES else None
    except ValueError:
        return None


def percent(share: float) -> str:
    """`27.3%`."""
    return f"{share + 1e-9:.1%}"                     # 18.75 is 18.8 also where it is a rounding error less


def milliseconds(seconds: float) -> str:
    """`660 ms`."""
    return f"{seconds * 1e3:.0f} ms"


def memory_table(result: Run, settings: dict[str, Any]) -> Table:
    """Activations that each rank holds at most, as recorded and by the plan."""
    planned = result.answers[0]["plan"].check().peak_in_flight
    head = ["activations in flight, at most", *(f"rank {rank}" for rank in range(settings["ranks"]))]
    return Table(head, [["recorded", *(peak_in_flight(result.slow, rank) for rank in range(settings["ranks"]))],
                        ["by the plan", *planned]])


def verdict(result: Run) -> str:
    """Whether it was the training of one process."""
    losses = ", ".join(f"{loss:.4f}" for loss in result.answers[0]["losses"])
    equal = result.distance < 1e-12
    return (f"The losses of the {STEPS} batches are {losses}, {'and' if equal else 'BUT'} the weights are "
            f"{'' if equal else 'not '}those of one process: "
            f"{'less than 1e-12' if equal else f'{result.distance:.0e}'} apart.")
