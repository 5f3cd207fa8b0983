"""The stepper of lesson 02: real ranks carry out a collective, and one goes through its messages round by round.

What is shown was sent: the messages are those that the ranks recorded, the numbers those that lay in their memory after
each round. Both are held against the plan in every run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import torch
from torch import Tensor

from disttutor.cost import simulate
from disttutor.cost.collectives import Terms, terms
from disttutor.figures import message_grid, message_step
from disttutor.figures.messages import MOST_CHUNKS
from disttutor.figures.moments import Story, moments_of
from disttutor.labs.guess import Guess
from disttutor.labs.lab import Lab
from disttutor.labs.page import Still, Table
from disttutor.plans import ALGORITHMS, Link, Machine, Op, Plan, collective
from disttutor.plans.collectives import check_algorithm
from disttutor.plans.partial_sums import ROOTED
from disttutor.strategies.collective_program import Prepared
from disttutor.strategies.collectives import OPS
from disttutor.strategies.groups import group_along
from disttutor.strategies.interpreter import carry_out

ADDING = ("all_reduce", "reduce", "reduce_scatter")         # kinds in which numbers are combined
MOST_ELEMENTS = 10_000                                      # of which each rank keeps a copy after every round
MOST_SHOWN = 24                                             # numbers of a rank that a table can show
ITEMSIZE = 4                                                # bytes of a float32
Held = list[tuple[str, dict[int, Tensor]]]                  # of one rank: each moment, and its chunks then


# --------------------------------------------------------------------------------------------------- the guesses


def guess_bytes() -> Guess:
    """How much does a ring send?"""
    return Guess(
        "Four ranks hold an array of S bytes each and want the sum of all four. They sit in a ring and talk to their "
        "neighbours only. How many bytes does each of them have to send, at the least?",
        ["S", "1.5 S", "3 S", "6 S"], right="1.5 S",
        why="In pieces of a quarter of the array: three to add up, three to hand round, S/4 each. That is 2(n-1)/n of "
            "the array, and with a thousand ranks still less than 2 S.")


def guess_fastest() -> Guess:
    """Which algorithm for which size?"""
    return Guess(
        "Eight ranks on equal links. Which all-reduce is the fastest for an array of 1 kB, and which for 64 MB?",
        ["the ring for both: nobody sends fewer bytes",
         "recursive doubling for both: nobody needs fewer rounds",
         "recursive doubling for 1 kB, the ring for 64 MB",
         "recursive doubling for 1 kB; halving-doubling for 64 MB, with the ring close behind"],
        right="recursive doubling for 1 kB; halving-doubling for 64 MB, with the ring close behind",
        why="For 1 kB only the number of messages one after the other counts: 3 against the ring's 14. For 64 MB only "
            "the bytes count: ring and halving-doubling send 1.75 S and recursive doubling 3 S. Between those two the "
            "6 messages of halving-doubling against 14 decide, and that is next to nothing for 64 MB.")


# ---------------------------------------------------------------------------------------------- what the ranks do


def numbers(plan: Plan, seed: int = 0) -> list[dict[int, Tensor]]:
    """What each rank brings: for every chunk that it has at first whole numbers from 1 to 9, which float32 adds up
    without rounding."""
    draw, sizes = torch.Generator().manual_seed(seed), plan.goal.sizes
    return [{c: torch.randint(1, 10, (sizes[c],), generator=draw).float() for c in plan.goal.at_first(rank)}
            for rank in range(plan.world_size)]


def watch(rank: int, prepared: Prepared, brought: list[dict[int, Tensor]], op: str) -> tuple[Held, dict[int, Tensor]]:
    """Do this rank's part of the plan: what it holds at every moment, and what it has in the end (for a mean: divided).
    """
    sizes, group = prepared.plan.goal.sizes, group_along(None, "data")
    store = {c: brought[rank].get(c, torch.full((size,), torch.nan)).clone() for c, size in enumerate(sizes)}
    seen: Held = []
    carry_out(prepared, group, store, op,
              observe=lambda moment: seen.append((moment, {c: piece.clone() for c, piece in store.items()})))
    return seen, {c: piece / group.size if op == "mean" else piece for c, piece in store.items()}


@dataclass(frozen=True)
class Watched:
    """One run: its plan, what every rank brought, held and had in the end, and the messages that they recorded."""

    plan: Plan
    op: str
    brought: list[dict[int, Tensor]]
    held: list[Held]
    ended: list[dict[int, Tensor]]
    recorded: list[list[Op]]

    @cached_property
    def story(self) -> Story:
        """The plan's moments. Where every cell holds something, with the first number of each chunk as it was found in
        the rank's memory."""
        moments, chunks = moments_of(self.plan), range(len(self.plan.goal.sizes))
        story = Story.of(self.plan)
        if min(self.plan.goal.sizes) and all(cell for moment in moments for row in moment.holds for cell in row):
            moments = [replace(moment, values=[[float(mine[k][1][c][0]) for c in chunks] for mine in self.held])
                       for k, moment in enumerate(moments)]
        return Story(moments, story.nbytes, story.complete)

    @cached_property
    def overview(self) -> Still:
        """All rounds in one picture."""
        return Still(message_grid(self.story.moments, chunk_nbytes=self.story.nbytes,
                                  complete_with=self.story.complete, title=f"All rounds: {name_of(self.plan)}"))

    @property
    def messages_agree(self) -> bool:
        """Whether the recorded messages are those of the plan: who, to whom, in which round, which chunks, how many
        bytes."""
        return [list(map(_about, ops)) for ops in self.recorded] == [sorted(map(_about, ops)) for ops in self.plan.ops]

    @cached_property
    def cells(self) -> tuple[int, int]:
        """How many contents of chunks were compared with what the plan says they hold, and how many were the same."""
        compared = same = 0
        for k, moment in enumerate(self.story.moments):
            for rank, row in enumerate(moment.holds):
                for c, contributions in enumerate(row):
                    if contributions and self.plan.goal.sizes[c]:
                        compared += 1
                        same += torch.equal(self.held[rank][k][1][c], self._combined(contributions, c))
        return compared, same

    def _combined(self, ranks: tuple[int, ...], chunk: int) -> Tensor:
        parts = torch.stack([self.brought[rank][chunk] for rank in ranks])
        return parts.amax(0) if self.op == "max" else parts.sum(0)


def name_of(plan: Plan) -> str:
    """`ring all-reduce`."""
    return plan.name.replace("_", "-")


def _about(op: Op) -> tuple:
    return op.round, op.kind, op.peer, op.chunks, op.nbytes


# ---------------------------------------------------------------------------------------------------- the stepper


def stepper(kind: str = "all_reduce", algorithm: str = "ring", ranks: int = 4, elements: int = 8, step: int = 3) -> Lab:
    """Choose a collective and how it is done; go through the messages that real ranks sent for it."""
    import ipywidgets as w

    from disttutor.labs.player import Player

    check_algorithm(kind, algorithm)
    controls = {
        "kind": w.Dropdown(options=[(name.replace("_", "-"), name) for name in ALGORITHMS], value=kind,
                           description="collective"),
        "algorithm": w.Dropdown(options=list(ALGORITHMS[kind]), value=algorithm, description="algorithm"),
        "ranks": w.IntSlider(ranks, 2, 8, description="ranks"),
        "elements": w.IntText(elements, description="elements", layout=w.Layout(width="150px")),
        "op": w.Dropdown(options=list(OPS), description="operation"),
        "node": w.IntSlider(2, 1, 8, description="if hierarchical, ranks a node", layout=w.Layout(width="400px")),
        "step": Player(step, description="after round", most=2 * (ranks - 1)),
    }

    def fit(_: Any = None) -> None:
        """Offer what there is for this collective, and nothing that would do nothing."""
        options = list(ALGORITHMS[controls["kind"].value])
        if list(controls["algorithm"].options) != options:
            controls["algorithm"].options = options
        controls["op"].disabled = controls["kind"].value not in ADDING
        controls["node"].disabled = controls["algorithm"].value != "hierarchical"

    def run_and_fit(settings: dict[str, Any], run: Callable) -> Watched:
        result = run_stepper(settings, run)
        controls["step"].max = result.story.rounds
        return result

    for name in ("kind", "algorithm"):
        controls[name].observe(fit, "value")
    fit()
    return Lab(controls, run_and_fit, draw_stepper, redraw_only={"step"},
               title="A collective, message by message").show()


def run_stepper(settings: dict[str, Any], run: Callable) -> Watched:
    """Carry the collective out on real ranks. Raises ValueError for settings that cannot be."""
    elements = settings["elements"]
    if elements > MOST_ELEMENTS:
        raise ValueError(f"{elements:,} elements are too many to keep a copy of after each round; up to "
                         f"{MOST_ELEMENTS:,} work here (the lab of times further down takes large arrays)")
    plan = collective(settings["kind"], settings["algorithm"], settings["ranks"], elements, ITEMSIZE,
                      ranks_per_node=settings["node"])
    brought, op = numbers(plan), settings["op"] if settings["kind"] in ADDING else "sum"
    done = run(watch, Prepared(plan), brought, op, ranks=plan.world_size, record=True)
    recorded = [sorted((span.op for span in done.trace.of(rank)), key=_about) for rank in range(plan.world_size)]
    return Watched(plan, op, brought, [held for held, _ in done], [ended for _, ended in done], recorded)


def draw_stepper(result: Watched, settings: dict[str, Any]) -> list[Any]:
    """The step that is chosen, what the ranks' memory held then, all rounds, and what was sent."""
    story, plan = result.story, result.plan
    at = min(settings["step"], story.rounds)
    shown: list[Any] = []
    if story.chunks <= MOST_CHUNKS:
        shown.append(message_step(story.moments, at, chunk_nbytes=story.nbytes, complete_with=story.complete,
                                  title=f"What every rank holds: {name_of(plan)}"))
    else:
        shown.append(f"{story.chunks} chunks on each rank are too many to show one round; below are all rounds.")
    return [*shown, *held_table(result, at), agreement(result), result.overview, *sent_tables(result, settings)]


def held_table(result: Watched, at: int) -> list[Any]:
    """Every number that the ranks' memory held at this moment, if they are few."""
    sizes = result.plan.goal.sizes
    if not sum(sizes) or sum(sizes) > MOST_SHOWN:
        return []
    chunks = [c for c, size in enumerate(sizes) if size]
    holds = result.story.moments[at].holds
    rows = [[f"rank {rank}", *(_row(mine[at][1][c]) if holds[rank][c] else "–" for c in chunks)]
            for rank, mine in enumerate(result.held)]
    return [Table(["in the memory of", *(f"chunk {c}" for c in chunks)], rows)]


def _row(values: Tensor) -> str:
    return "  ".join(f"{value:g}" for value in values.tolist())


def agreement(result: Watched) -> str:
    """Whether what happened is what the plan says, from a comparison made in this run."""
    sent = sum(op.kind == "send" for ops in result.recorded for op in ops)
    compared, same = result.cells
    messages = (f"The {sent} messages that the ranks recorded are those of the plan, to the byte"
                if result.messages_agree else f"The {sent} messages that were recorded are NOT those of the plan")
    cells = (f"all {compared} chunks that lay in their memory from round to round hold what it says"
             if same == compared else f"of {compared} chunks in their memory only {same} hold what it says")
    return f"{messages}; {cells}.{_divided(result) if result.op == 'mean' else ''}"


def _divided(result: Watched) -> str:
    """What a mean does with the sum."""
    chunk = min(result.plan.goal.in_the_end(0))
    first = _row(result.ended[0][chunk][:MOST_SHOWN])
    return (f" In the end each sum is divided by {result.plan.world_size}, once"
            + (f": rank 0's chunk {chunk} becomes {first}." if first else "."))


def sent_tables(result: Watched, settings: dict[str, Any]) -> list[Any]:
    """Bytes and messages of each rank, as recorded; rounds and the longest way, as counted and in closed form."""
    plan = result.plan
    ranks = range(plan.world_size)
    sends = [[op for op in ops if op.kind == "send"] for ops in result.recorded]
    receives = [[op for op in ops if op.kind != "send"] for ops in result.recorded]
    traffic = Table(["recorded", *(f"rank {rank}" for rank in ranks)], [
        ["messages sent", *map(len, sends)],
        ["bytes sent", *(sum(op.nbytes for op in ops) for ops in sends)],
        ["bytes received", *(sum(op.nbytes for op in ops) for ops in receives)]])
    size = settings["elements"] * ITEMSIZE
    if not size:
        return [traffic, "An array without elements is not sent at all: no message would carry anything."]
    form = closed_form(settings)
    rows = [["counted in this plan", result.story.rounds, str(counted(plan, size))],
            *([["closed form, if all chunks are equally large", "", str(form)]] if form else [])]
    root = " The root is rank 0." if settings["kind"] in ROOTED else ""
    return [traffic, Table(["the longest way", "rounds", "time"], rows,
                           caption=f"S = {size} bytes, the array of one rank.{root}")]


def counted(plan: Plan, nbytes: int) -> Terms:
    """How often α and S/β stand in the time of this very plan, each by itself: simulated on a link that has only the
    one or only the other."""
    return Terms(simulate(plan, Machine(link=Link(1.0, inf))).makespan,
                 round(simulate(plan, Machine(link=Link(0.0, nbytes))).makespan, 6))


def closed_form(settings: dict[str, Any]) -> Terms | None:
    """The same from the formula; None for nodes that are not full."""
    n, k = settings["ranks"], min(settings["node"], settings["ranks"])
    if settings["algorithm"] != "hierarchical":
        return terms(settings["kind"], settings["algorithm"], n)
    inside, between = 2 * (k - 1), 2 * (n // k - 1)
    return None if n % k else Terms(inside + between, inside / k + between / n)
