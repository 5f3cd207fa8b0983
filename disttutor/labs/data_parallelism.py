"""The labs of lesson 03: real ranks train on the handwritten digits, and the pictures show their gradient sync."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from disttutor.cost import simulate
from disttutor.figures import compare, equality, gradient_sync, losses, timeline
from disttutor.labs.guess import Guess
from disttutor.labs.lab import Lab
from disttutor.labs.page import Still, Table
from disttutor.models import MLP, Digits, accuracy, classification, digits
from disttutor.plans import FORMS, Device, Link, Machine, Plan
from disttutor.strategies import DataParallel, EpochSampler, Single, Strategy
from disttutor.traces import SlowMotion, Trace, hidden_communication, idle, replay, ring_bytes_sent

STEPS = 20                  # of a measured run
SLOW_STEPS = 3              # of one in slow motion
WIDTHS = (64, 64, 64, 64, 10)
SGD = partial(torch.optim.SGD, lr=0.25, momentum=0.9)
# At this pace a step of 64 digits on 4 ranks lasts some 300 ms, and two cores can keep up with eight ranks.
SLOW = Machine(Device(8e6), Link(3e-3, 2e6))
PRECISIONS = {"float64": (torch.float64, None), "float32": (torch.float32, None),
              "bfloat16": (torch.float32, torch.bfloat16)}
BUCKETS = {"1 kB": 1_000, "6 kB": 6_000, "40 kB": 40_000, "1 MB": 1_000_000}


def train(rank: int, data: Digits, settings: dict[str, Any], kind: type[Strategy], steps: int) -> dict[str, Any]:
    """Train the MLP for `steps` on this rank: losses, all weights after each step, test accuracy, and the plan of one
    step (None in one process). settings: form, bucket (bytes), batch, precision."""
    cast = PRECISIONS[settings["precision"]][1]
    model = MLP(WIDTHS, activation="tanh", seed=0, dtype=data.train_x.dtype)
    own = {"form": settings["form"], "bucket_bytes": settings["bucket"]} if kind is DataParallel else {}
    strategy = kind(model, classification, SGD, autocast=cast, **own)
    batches = EpochSampler(len(data.train_x), settings["batch"])
    order = [index for _ in range(1 + steps * settings["batch"] // len(data.train_x)) for index in batches][:steps]
    curve, weights = [], []
    for index in order:
        curve.append(strategy.step((data.train_x[index], data.train_y[index])))
        weights.append(flat(model))
    right = strategy.evaluate(accuracy, (data.test_x, data.test_y))
    kept = weights if rank == 0 else weights[-1:]
    plan = strategy.plan(settings["batch"]) if kind is DataParallel else None
    return {"losses": curve, "weights": kept, "accuracy": right, "plan": plan}


def flat(model: torch.nn.Module) -> Tensor:
    """A copy of all weights in one row."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).clone()


# --------------------------------------------------------------------------------------------------- the guesses


def guess_equal() -> Guess:
    """Is it the same training?"""
    return Guess(
        "Four ranks each train on a quarter of every batch. After 20 steps, how far are their weights from those of "
        "one process?",
        ["a few percent: each rank saw only a quarter of the data", "exactly the same, bit by bit",
         "the same but for rounding"],
        right="the same but for rounding",
        why="The gradient of a sum is the sum of the gradients, so the mathematics is the same. Only the order of the "
            "additions differs, and that moves the last bits.")


def guess_bytes() -> Guess:
    """How much is sent?"""
    return Guess(
        "The gradient is 105 kB. Four ranks add up theirs over a ring. How much does each rank send in a step?",
        ["105 kB: its gradient, once", "158 kB: one and a half times its gradient",
         "315 kB: its gradient to each of the three others"],
        right="158 kB: one and a half times its gradient",
        why="Twice (n - 1)/n of the gradient: with four ranks 1.5 times, with a thousand still less than twice.")


# ----------------------------------------------------------------------------------------------- (a) the training


@dataclass(frozen=True)
class Training:
    """What one run of the main lab gave: the recorded run, the same in slow motion, the prediction, and both results.
    """

    ran: Trace
    slow: Trace                      # of one step
    predicted: Trace
    answers: list[dict[str, Any]]
    one: dict[str, Any]

    @cached_property
    def charts(self) -> list[Still]:
        """The curves, which are the same however the timeline is looked at."""
        name = counted(len(self.answers))
        return [
            Still(losses({"one process": self.one["losses"], name: self.answers[0]["losses"]},
                         title="Loss: the curve of one process lies beneath")),
            Still(equality({name: self.distances}, title="How far the weights are from those of one process "
                                                         f"({max(self.distances):.0e} at most)")),
        ]

    @property
    def distances(self) -> list[float]:
        """Largest difference of a weight to one process, after each step."""
        return [float((a - b).abs().max()) for a, b in zip(self.answers[0]["weights"], self.one["weights"],
                                                           strict=True)]

    @property
    def ranks_agree(self) -> bool:
        """Whether all ranks hold the same weights at the end, to the last bit."""
        return all(torch.equal(a["weights"][-1], self.answers[0]["weights"][-1]) for a in self.answers)

    def view(self, name: str) -> Trace:
        """One step as the trace called `name`."""
        whole = {"as it ran": self.ran, "slow motion": self.slow, "predicted": self.predicted}
        trace = replay(self.ran) if name == "a core for each rank" else whole[name]
        return trace.only(trace.steps[-1])


VIEWS = ("as it ran", "a core for each rank", "slow motion", "predicted")
TITLES = {"as it ran": "One step, as it ran", "slow motion": "One step, in slow motion",
          "a core for each rank": "One step, with a core for each rank", "predicted": "One step, predicted"}


def training(ranks: int = 4) -> Lab:
    """The main lab: ranks, form of the exchange, bucket, batch and precision are controls."""
    import ipywidgets as w

    controls = {
        "ranks": w.IntSlider(ranks, 1, 8, description="ranks"),
        "form": w.Dropdown(options=FORMS, value="overlapped", description="exchange"),
        "bucket": w.SelectionSlider(options=list(BUCKETS.items()), value=BUCKETS["40 kB"], description="bucket"),
        "batch": w.SelectionSlider(options=[16, 32, 64, 128], value=64, description="batch"),
        "precision": w.Dropdown(options=list(PRECISIONS), description="precision"),
        "view": w.ToggleButtons(options=VIEWS, value="slow motion", description="look at it",
                                style={"button_width": "auto"}),
    }
    return Lab(controls, _run_training, _draw_training, redraw_only={"view"},
               title="Data parallelism: real ranks train on handwritten digits").show()


def _run_training(settings: dict[str, Any], run: Callable) -> Training:
    data, ranks = digits(PRECISIONS[settings["precision"]][0]), settings["ranks"]
    (one,) = run(train, data, settings, Single, STEPS, ranks=1)
    many = run(train, data, settings, DataParallel, STEPS, ranks=ranks, record=True)
    slow = run(train, data, settings, DataParallel, SLOW_STEPS, ranks=ranks, slow_motion=SlowMotion(SLOW))
    return Training(many.trace, calmest(slow.trace), predict(many[0]["plan"], SLOW), list(many), one)


def calmest(trace: Trace) -> Trace:
    """The shortest step of a slow-motion run, without the first (which loads things): what else the machine does can
    only lengthen one."""
    return min((trace.only(step) for step in trace.steps[1:]), key=lambda step: step.makespan)


def predict(plan: Plan, machine: Machine) -> Trace:
    """One step of `plan` on `machine`, whose picture says the same about the machine as slow motion does."""
    return replace(simulate(plan, machine), note=SlowMotion(machine).describe())


def _draw_training(result: Training, settings: dict[str, Any]) -> list[Any]:
    ranks, view = settings["ranks"], settings["view"]
    last = result.ran.only(result.ran.steps[-1])
    sent, messages = ring_bytes_sent(last, 0), sum(bool(s.group) for s in last.of(0))
    rows = [[seen, milliseconds(trace.makespan), f"{hidden_communication(trace, 0):.0%}" if ranks > 1 else "–",
             f"{idle(trace, 0) / trace.makespan:.0%}"] for seen in VIEWS for trace in [result.view(seen)]]
    agree = "the same to the last bit on every rank" if result.ranks_agree else "NOT the same on every rank"
    return [
        timeline(result.view(view), title=TITLES[view]),
        Table(["one step", "lasts", "communication hidden", "rank 0 computes nothing"], rows, timed=[1, 2, 3]),
        f"In every step each rank sends {kilobytes(sent)} (as a ring does), in {messages} all-reduces. After {STEPS} "
        f"steps the loss is {result.answers[0]['losses'][-1]:.3f}, {result.answers[0]['accuracy']:.0%} of the test "
        f"digits are read right, and the weights are {agree}.",
        *result.charts,
    ]


# ----------------------------------------------------------------------------------------- (b) the gradient sync


WATCHED = {"biases of the hidden layer, 12 numbers": 2, "weights of the output, 120 numbers": 1,
           "weights of the hidden layer, 768 numbers": 3}


def watch_one_step(rank: int, x: Tensor, y: Tensor, bucket: int) -> list[tuple[str, Tensor]]:
    """What this rank holds of one bucket before, after each message and after its trip round the ring, in one step on
    the global batch (x, y)."""
    model = MLP([64, 12, 10], activation="tanh", seed=0, dtype=torch.float64)
    strategy = DataParallel(model, classification, SGD, bucket_bytes=1)
    strategy.watch(bucket)
    strategy.step((x, y))
    return strategy.snapshots


def gradient_ring(ranks: int = 4) -> Lab:
    """Every rank's gradient of one bucket, from its own share of the batch to the sum of all; a slider steps through
    the messages of the ring."""
    import ipywidgets as w

    controls = {
        "ranks": w.IntSlider(ranks, 2, 4, description="ranks"),
        "bucket": w.Dropdown(options=list(WATCHED.items()), description="bucket", layout=w.Layout(width="420px")),
        "message": w.IntSlider(0, 0, 6, description="message", layout=w.Layout(width="420px")),
    }
    return Lab(controls, _run_ring, _draw_ring, redraw_only={"message"},
               title="One bucket of gradients goes round the ring").show()


def _run_ring(settings: dict[str, Any], run: Callable) -> list[list[tuple[str, Tensor]]]:
    data = digits(torch.float64)
    return run(watch_one_step, data.train_x[:64], data.train_y[:64], settings["bucket"], ranks=settings["ranks"])


def _draw_ring(result: list[list[tuple[str, Tensor]]], settings: dict[str, Any]) -> list[Any]:
    n = len(result)
    moments = [(moment, [mine[k][1] for mine in result]) for k, (moment, _) in enumerate(result[0])]
    at = min(settings["message"], len(moments) - 1)
    elements = len(result[0][0][1])
    flag = 1                                        # travels behind the gradient: whether this rank used the parameter
    sizes = [len(chunk) for chunk in torch.arange(elements + flag).tensor_split(n)]
    sizes[-1] -= flag
    if at == 0:
        shown = [("before: each rank has the gradient of its own share", moments[0][1]),
                 (f"after {len(moments) - 1} messages: everybody has the sum", moments[-1][1])]
    else:
        shown = [(f"before message {at}", moments[at - 1][1]), (f"after message {at}", moments[at][1])]
    return [gradient_sync(shown, reduction="sum", chunks=sizes, title=_heading(at, n)), _explained(at, n)]


def _heading(at: int, n: int) -> str:
    return ("One bucket of gradients, before and after" if at == 0
            else f"Message {at} of {2 * (n - 1)}: {'reduce-scatter' if at < n else 'all-gather'}")


def _explained(at: int, n: int) -> str:
    """One message of the ring in words."""
    if at == 0:
        return ("Move the slider to see how the sum comes about: "
                f"{n - 1} messages that add up, then {n - 1} that hand round.")
    if at < n:
        finished = f" Each rank now holds one chunk that is finished: rank 0 has chunk {1 % n}."
        return ("Each rank passes one chunk on to its neighbour, who adds it to its own. So rank 0 sends chunk "
                f"{(1 - at) % n} to rank 1, which now has the sum of {at + 1} ranks in it."
                + (finished if at == n - 1 else ""))
    step = at - n
    return (f"Nothing is added any more: each rank passes a finished chunk on, and its neighbour takes it as it is. So "
            f"rank 0 sends chunk {(1 - step) % n} to rank 1."
            + (" Now everybody has every chunk." if at == 2 * (n - 1) else ""))


# -------------------------------------------------------------------------------------------- (c) the three forms


ALL, ONE = "all three forms, rank 0", "{}, all ranks"


def three_forms(ranks: int = 4) -> Lab:
    """The three forms of the exchange in slow motion, each above what was predicted for it; device and link are
    sliders."""
    import ipywidgets as w

    controls = {
        "ranks": w.IntSlider(ranks, 2, 8, description="ranks"),
        "latency": w.FloatSlider(SLOW.link.latency * 1e3, min=0, max=10, step=0.5, description="link latency (ms)"),
        "bandwidth": w.SelectionSlider(options=[1, 2, 4, 8, 16, 32], value=2, description="link speed (MB/s)"),
        "bucket": w.SelectionSlider(options=list(BUCKETS.items()), value=BUCKETS["40 kB"], description="bucket"),
        "show": w.Dropdown(options=[ALL, *(ONE.format(form) for form in FORMS)], description="show"),
    }
    return Lab(controls, _run_forms, _draw_forms, redraw_only={"show"},
               title="Three ways to exchange the same gradients, in slow motion").show()


def _run_forms(settings: dict[str, Any], run: Callable) -> dict[str, tuple[Trace, Trace]]:
    """Form to (measured in slow motion, predicted), one step each."""
    machine = Machine(SLOW.device, Link(settings["latency"] / 1e3, settings["bandwidth"] * 1e6))
    data, out = digits(torch.float64), {}
    for form in FORMS:
        chosen = {"form": form, "bucket": settings["bucket"], "batch": 64, "precision": "float64"}
        done = run(train, data, chosen, DataParallel, SLOW_STEPS, ranks=settings["ranks"],
                   slow_motion=SlowMotion(machine))
        out[form] = (calmest(done.trace), predict(done[0]["plan"], machine))
    return out


def _draw_forms(result: dict[str, tuple[Trace, Trace]], settings: dict[str, Any]) -> list[Any]:
    show = settings["show"]
    forms = FORMS if show == ALL else [form for form in FORMS if show == ONE.format(form)]
    pairs = [(f"{form}: {word}", only_rank_0(trace) if show == ALL else trace)
             for form in forms for word, trace in zip(("measured", "predicted"), result[form], strict=True)]
    rows = [[form, milliseconds(predicted.makespan), milliseconds(slow.makespan),
             f"{slow.makespan / predicted.makespan - 1:+.1%}", f"{hidden_communication(slow, 0):.0%}"]
            for form, pair in result.items() for slow, predicted in [map(only_rank_0, pair)]]
    return [compare([trace for _, trace in pairs], [title for title, _ in pairs]),
            Table(["form", "predicted", "measured", "measured is longer by", "communication hidden"], rows,
                  timed=[2, 3, 4])]


def only_rank_0(trace: Trace) -> Trace:
    """Rank 0's lanes alone: in slow motion all ranks look alike."""
    return Trace(tuple(trace.of(0)), 1, trace.source, note=f"rank 0 of {trace.world_size}; {trace.note}")


def counted(ranks: int) -> str:
    """`1 rank`, `4 ranks`."""
    return f"{ranks} rank" + "s" * (ranks > 1)


def milliseconds(seconds: float) -> str:
    """`3.2 ms`."""
    return f"{seconds * 1e3:.3g} ms"


def kilobytes(nbytes: float) -> str:
    """`157.8 kB`."""
    return f"{nbytes / 1e3:,.1f} kB"

