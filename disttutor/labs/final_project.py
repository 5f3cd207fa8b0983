"""The final project of lesson 16: find a plan that trains a small GPT on a given machine, in time, within its memory,
and to the same weights as one process. Real ranks try what is handed in.

Three orders come from three customers. In each another thing is scarce, and each can be met in more than one way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from disttutor.figures import compare
from disttutor.labs.data_parallelism import calmest, predict
from disttutor.labs.guess import Guess
from disttutor.labs.lab import Lab
from disttutor.labs.page import Table, Timed
from disttutor.labs.pipelines import apart, milliseconds
from disttutor.models import SmallGPT, next_token, text
from disttutor.models.text import VOCABULARY, encode
from disttutor.plans import FORMS, SCHEDULES, Device, Link, Machine, build_schedule, spans, split_evenly
from disttutor.strategies import DataParallel, Pipeline, Single, share_sizes
from disttutor.traces import SlowMotion, Trace, peak_in_flight

CONTEXT, BATCH, STEPS = 32, 16, 3               # tokens in a text, texts in a batch, batches
EQUAL = 1e-12                                   # no weight may be further from one process's, in float64
BUCKET = 100_000                                # bytes
STATES = 4                                      # weights, gradients and AdamW's two moments, each as large as the model
ADAMW = partial(torch.optim.AdamW, lr=3e-3)
DATA, PIPE = "data parallelism", "pipeline"

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Order:
    """What a customer asks for: on which machine, how many ranks at most, how long a step may take (seconds) and how
    much a rank may hold (bytes)."""

    story: str
    machine: Machine
    ranks: int
    seconds: float
    nbytes: float


ORDERS = {
    "1: a lab with good machines": Order(
        "Four machines with plenty of memory and a good network. They only want it fast.",
        Machine(Device(2e7, "device"), Link(1e-3, 50e6, "link")), 4, 0.150, 20e6),
    "2: a school with old computers": Order(
        "Four computers with little memory, in one room. Whatever fits is welcome, as long as it does not dawdle.",
        Machine(Device(2e7, "device"), Link(1e-3, 20e6, "link")), 4, 0.200, 2.0e6),
    "3: friends in four towns": Order(
        "Four computers with enough memory, but the line between them is slow.",
        Machine(Device(1e8, "device"), Link(3e-3, 2e6, "link")), 4, 0.170, 20e6),
}


def guess_school() -> Guess:
    """What fits into a small memory?"""
    return Guess(
        "Four computers with 2 MB of memory each are to train a model whose weights, gradients and optimizer states "
        "take 2.6 MB. A batch of 16 texts makes 13 MB of activations in all. Which plan has a chance?",
        ["data parallelism on all four, 4 texts each",
         "a pipeline: all forwards of 16 micro-batches, then all backwards",
         "a pipeline: 16 micro-batches, each backward as soon as it can"],
        right="a pipeline: 16 micro-batches, each backward as soon as it can",
        why="Copies of 2.6 MB do not fit into 2. A quarter of the layers takes 0.65 MB, but with all forwards first a "
            "stage keeps a quarter of 13 MB. One forward, one backward keeps at most 4 of the 16 texts.")


def network() -> SmallGPT:
    """A GPT of six blocks, with the same start weights each time, in float64."""
    return SmallGPT(len(VOCABULARY), CONTEXT, 32, 4, 6, seed=0, dtype=torch.float64)


def batches() -> list[Batch]:
    """The first texts of Python's own reference: tokens, and the token after each of them."""
    rows = encode(text(STEPS * BATCH * (CONTEXT + 1))).reshape(STEPS, BATCH, CONTEXT + 1)
    return [(batch[:, :-1].contiguous(), batch[:, 1:].contiguous()) for batch in rows]


def train(rank: int, data: list[Batch], settings: dict[str, Any]) -> dict[str, Any]:
    """Train as handed in: losses, all weights at the end, and the plan of a step."""
    if settings["strategy"] == PIPE:
        strategy = Pipeline(network(), next_token, ADAMW, schedule=settings["schedule"],
                            microbatches=settings["microbatches"])
        plan = strategy.plan(data[0])
    else:
        strategy = DataParallel(network(), next_token, ADAMW, form=settings["form"], bucket_bytes=BUCKET,
                                accumulate=settings["microbatches"])
        plan = strategy.plan(BATCH)
    return {"losses": [strategy.step(batch) for batch in data], "weights": strategy.full_state()["model"],
            "plan": plan}


@cache
def one_process() -> dict[str, Tensor]:
    """The weights that one process ends with."""
    strategy = Single(network(), next_token, ADAMW)
    for batch in batches():
        strategy.step(batch)
    return strategy.full_state()["model"]


# ------------------------------------------------------------------------------------------- what a rank holds


@cache
def activations_of_layers() -> list[int]:
    """Bytes that each layer keeps of one text until its backward, measured: what autograd saves, weights left out."""
    model, (x, _) = network(), batches()[0]
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    x, kept = x[:1], []
    for layer in model.layers_in_order():
        saved: dict[int, int] = {}
        alive: list[Tensor] = []                    # or memory of one tensor would be another's, and counted once

        def note(t: Tensor, saved: dict[int, int] = saved, alive: list[Tensor] = alive) -> Tensor:
            alive.append(t)
            storage = t.untyped_storage()
            if storage.data_ptr() not in weights:
                saved[storage.data_ptr()] = storage.nbytes()
            return t

        with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
            x = layer(x)
        kept.append(sum(saved.values()))
    return kept


def held(trace: Trace, settings: dict[str, Any]) -> list[int]:
    """Bytes that each rank holds at most: the states of its layers, and the activations of the micro-batches that the
    trace shows in flight on it."""
    kept, ranks, parts = activations_of_layers(), settings["ranks"], settings["microbatches"]
    if settings["strategy"] == DATA:
        stages_of, cut, parts = [(0,)] * ranks, [(0, len(kept))], parts * ranks
        states = [STATES * nbytes(network())]               # the head's weights are the embedding's: they count once
    else:
        schedule = build_schedule(settings["schedule"], ranks, parts)
        stages_of, cut = schedule.stages_of, spans(split_evenly(len(kept), schedule.stages))
        states = [STATES * sum(map(nbytes, network().layers_in_order()[slice(*layers)])) for layers in cut]
    texts = max(share_sizes(BATCH, parts))
    activations = [texts * sum(kept[slice(*layers)]) for layers in cut]
    return [sum(states[stage] for stage in stages) + peak_in_flight(trace, rank, lambda stage: activations[stage or 0])
            for rank, stages in enumerate(stages_of)]


def nbytes(module: torch.nn.Module) -> int:
    """Bytes of a module's weights, each counted once."""
    return sum(p.numel() * p.itemsize for p in module.parameters())


# ------------------------------------------------------------------------------------------- the lab


@dataclass(frozen=True)
class HandedIn:
    """What came of a plan: a step in slow motion and as predicted, and how far the weights are from one process's."""

    slow: Trace
    predicted: Trace
    distance: float
    losses: list[float]


def final_project(order: str = next(iter(ORDERS))) -> Lab:
    """The lab: choose an order and a plan; real ranks carry it out, and a table says what the customer gets."""
    import ipywidgets as w

    controls = {
        "order": w.Dropdown(options=list(ORDERS), value=order, description="order"),
        "strategy": w.ToggleButtons(options=[DATA, PIPE], description="strategy", style={"button_width": "auto"}),
        "ranks": w.IntSlider(2, 1, 4, description="ranks"),
        "microbatches": w.SelectionSlider(options=[1, 2, 4, 8, 16], value=1, description="micro-batches"),
        "form": w.Dropdown(options=FORMS, value="end", description="exchange (data)"),
        "schedule": w.Dropdown(options=list(SCHEDULES), value="GPipe", description="schedule (pipeline)"),
    }
    return Lab(controls, _run, _draw, title="The final project: a plan for a customer").show()


def _run(settings: dict[str, Any], run: Callable) -> HandedIn:
    order, data = ORDERS[settings["order"]], batches()
    machine, parts = order.machine, settings["microbatches"]
    if settings["strategy"] == DATA and (least := BATCH // settings["ranks"]) < parts:
        raise ValueError(f"a share of {least} texts cannot be cut into {parts} micro-batches; at most {least} work, or "
                         "fewer ranks")
    if settings["strategy"] == PIPE:
        build_schedule(settings["schedule"], settings["ranks"], parts)
    done = run(train, data, settings, ranks=settings["ranks"], slow_motion=SlowMotion(machine))
    worst = max(apart(answer["weights"], one_process()) for answer in done)
    return HandedIn(calmest(done.trace), predict(done[0]["plan"], machine), worst, done[0]["losses"])


def _draw(result: HandedIn, settings: dict[str, Any]) -> list[Any]:
    order, name = ORDERS[settings["order"]], settings["order"][3:]
    met = verdicts(result, settings)
    rows = [[what, asked, got, "yes" if fine else "no"] for what, asked, got, fine in met]
    titles = ["handed in, in slow motion", "handed in, predicted"]
    return [f"{name[0].upper()}{name[1:]}: {order.story}", Table(["", "asked for", "this plan", "met"], rows),
            _judgement(met, settings),
            compare([result.slow, result.predicted], titles, activations=settings["strategy"] == PIPE),
            Timed(f"In slow motion the step took {milliseconds(result.slow.makespan)} on your machine; the order is "
                  "judged by the prediction, which other programs on your machine cannot disturb.")]


def verdicts(result: HandedIn, settings: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """What was asked for, what this plan gives, and whether that is enough."""
    order, most = ORDERS[settings["order"]], max(held(result.predicted, settings))
    return [
        ("the weights of one process", f"{EQUAL:.0e} apart at most",
         "less" if result.distance < EQUAL else f"{result.distance:.0e}", result.distance < EQUAL),
        ("a step, predicted", f"{milliseconds(order.seconds)} at most", milliseconds(result.predicted.makespan),
         result.predicted.makespan <= order.seconds),
        ("the fullest rank holds", f"{order.nbytes / 1e6:.1f} MB at most", f"{most / 1e6:.2f} MB",
         most <= order.nbytes),
    ]


def _judgement(met: list[tuple[str, str, str, bool]], settings: dict[str, Any]) -> str:
    from disttutor.cards.progress import here

    if not all(fine for *_, fine in met):
        return "Not yet. Which number would you change first, and what will that cost?"
    here().solved(f"final-project-{settings['order'][0]}")
    return "The customer is served. Can you say why it works, and find a second plan that does?"
