"""Time against size, for every way to all-reduce: measured on this machine, and predicted from its α and β; and the
same plans where we have no machine, on many GPUs in nodes of 8."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist

from disttutor.cost import simulate
from disttutor.cost.collectives import closed_form
from disttutor.cost.hardware import GPUS_A_NODE, INFINIBAND_NDR, NVLINK_4
from disttutor.figures import sizes
from disttutor.figures.style import quantity
from disttutor.labs.alpha_beta import LOOPBACK, fit, ping_pong
from disttutor.labs.lab import Lab
from disttutor.labs.page import Table, Timed
from disttutor.plans import ALL_REDUCES, Link, Machine, collective
from disttutor.strategies import SharedMemory
from disttutor.strategies.collectives import all_reduce
from disttutor.strategies.groups import group_along

ITEMSIZE = 4                                                            # bytes of a float32
NBYTES = (1_024, 16_384, 262_144, 1_048_576, 4_194_304, 16_777_216)
TORCH, SHARED = "torch's own (gloo)", "shared memory"
IN_A_ROW = 4
NODE = 2                                                                # ranks a node, of the hierarchical one
Of = Callable[[list[float]], float]
TAKEN: dict[str, Of] = {"median": median, "best": min}
OWN, SHARED_LINK = "each rank its own", "one for all, in turn"                # links, as they are predicted
BOTH, MEASURED, PREDICTED = "measured and predicted", "measured", "predicted"


def time_all(rank: int, nbytes: Iterable[int], rounds: int) -> dict[str, dict[int, list[float]]]:
    """Seconds that this rank spent in each all-reduce of each size: the mean of some calls in a row, so that it counts
    little who left the barrier late. The algorithms take turns, and each round begins with another one, so that a
    disturbance hits all of them alike."""
    shared = SharedMemory(group_along(None, "data"))
    ways: dict[str, Callable[[torch.Tensor], Any]] = {
        name: (lambda x, name=name: all_reduce(x, algorithm=name, ranks_per_node=NODE)) for name in ALL_REDUCES}
    ways |= {TORCH: dist.all_reduce, SHARED: shared.all_reduce}
    names = list(ways)
    out: dict[str, dict[int, list[float]]] = {name: {} for name in names}
    for n in nbytes:
        x = torch.zeros(n // ITEMSIZE)
        for attempt in range(-1, rounds):
            for i in range(len(names)):
                name = names[(i + attempt) % len(names)]
                dist.barrier()
                begun = perf_counter()
                for _ in range(IN_A_ROW):
                    ways[name](x)
                seconds = (perf_counter() - begun) / IN_A_ROW
                if attempt >= 0:                            # the first ones make and check the plan
                    out[name].setdefault(n, []).append(seconds)
    return out


@dataclass(frozen=True)
class Times:
    """Seconds of each way and size, each as the slowest rank saw it, and those of messages from the same run."""

    ranks: int
    all_reduces: dict[str, dict[int, list[float]]]
    messages: dict[int, list[float]]

    def measured(self, of: Of) -> dict[str, list[tuple[int, float]]]:
        """Points (bytes, seconds) of each way: the median, or the best."""
        return {name: [(n, of(times)) for n, times in some.items()] for name, some in self.all_reduces.items()}

    def link(self, of: Of) -> Link:
        """α and β by the median, or the best, of the messages."""
        return fit([(n, of(times)) for n, times in self.messages.items()], LOOPBACK).link

    def predicted(self, of: Of, links: str) -> dict[str, list[tuple[int, float]]]:
        """What α and β predict, if each rank has a link of its own, or if all messages take turns."""
        nbytes, link = list(self.all_reduces["ring"]), self.link(of)
        return predict(self.ranks, nbytes, Machine(link=link)) if links == OWN else in_turn(self.ranks, nbytes, link)


def time_against_size(ranks: int = 4, most: int = 4_194_304, rounds: int = 5) -> Lab:
    """All ways to all-reduce on real ranks, over the size of the array."""
    import ipywidgets as w

    controls = {
        "ranks": w.IntSlider(ranks, 2, 4, description="ranks"),
        "most": w.SelectionSlider(options=[(quantity(n, "B"), n) for n in NBYTES[2:]], value=most,
                                  description="largest array"),
        "rounds": w.IntSlider(rounds, 3, 31, step=2, description="times each"),
        "of": w.Dropdown(options=list(TAKEN), description="take of these the"),
        "links": w.Dropdown(options=[OWN, SHARED_LINK], description="links predicted as"),
        "show": w.ToggleButtons(options=[BOTH, MEASURED, PREDICTED], description="show",
                                style={"button_width": "auto"}),
    }
    return Lab(controls, run_sizes, draw_sizes, redraw_only={"of", "links", "show"},
               title="Every all-reduce against size").show()


def run_sizes(settings: dict[str, Any], run: Callable) -> Times:
    """Messages between two ranks, and every way to all-reduce, one after the other on the same machine."""
    ranks, chosen = settings["ranks"], [n for n in NBYTES if n <= settings["most"]]
    messages = run(ping_pong, 2 * settings["rounds"], ranks=2, threads=1)[0][LOOPBACK]
    everybody = run(time_all, chosen, settings["rounds"], ranks=ranks, threads=1)
    return Times(ranks, {name: {n: list(map(max, zip(*(mine[name][n] for mine in everybody), strict=True)))
                                for n in chosen} for name in everybody[0]}, messages)


def predict(ranks: int, nbytes: Iterable[int], machine: Machine, algorithms: Iterable[str] = tuple(ALL_REDUCES),
            ranks_per_node: int = NODE) -> dict[str, list[tuple[int, float]]]:
    """Seconds of each algorithm's plan on `machine`, for each size in bytes."""
    return {name: [(n, simulate(collective("all_reduce", name, ranks, n // ITEMSIZE, ITEMSIZE,
                                           ranks_per_node=ranks_per_node), machine).makespan) for n in nbytes]
            for name in algorithms}


def in_turn(ranks: int, nbytes: Iterable[int], link: Link) -> dict[str, list[tuple[int, float]]]:
    """Seconds of each algorithm's messages one after the other, all of all ranks: where one message at a time is what
    the machine's cores can carry."""
    return {name: [(n, sum(link.seconds(op.nbytes) for op in collective(
        "all_reduce", name, ranks, n // ITEMSIZE, ITEMSIZE, ranks_per_node=NODE) if op.kind == "send")) for n in nbytes]
        for name in ALL_REDUCES}


def bandwidths(nbytes: float, seconds: float, ranks: int) -> tuple[float, float]:
    """Algorithm bandwidth and bus bandwidth of an all-reduce, in bytes a second, as nccl-tests defines them: bytes of
    the array over time; and that times 2(n-1)/n, which no algorithm on these links can bring above the link's own."""
    algorithm = nbytes / seconds
    return algorithm, algorithm * 2 * (ranks - 1) / ranks


def draw_sizes(result: Times, settings: dict[str, Any]) -> list[Any]:
    """The curves, the two bandwidths at the largest size, and where measurement and prediction part ways."""
    show, of = settings["show"], TAKEN[settings["of"]]
    measured, link = result.measured(of), result.link(of)
    predicted = {links: result.predicted(of, links) for links in (OWN, SHARED_LINK)}
    largest = max(n for n, _ in measured["ring"])
    rows = []
    for name, points in measured.items():
        seconds = dict(points)[largest]
        expected = [dict(some[name])[largest] if name in some else None for some in predicted.values()]
        rates = bandwidths(largest, seconds, result.ranks)
        rows.append([name, quantity(seconds, "s"), *(quantity(e, "s") if e else "–" for e in expected),
                     *(quantity(rate, "B/s") for rate in rates)])
    chosen = predicted[settings["links"]]
    said = [f"{settings['of']} of {settings['rounds']}"] if show != PREDICTED else []
    said += [f"predicted with links: {settings['links']}"] if show != MEASURED else []
    fitted = {"alpha": link.latency, "beta": link.bandwidth} if show != MEASURED else {}
    return [
        sizes({} if show == PREDICTED else measured, {} if show == MEASURED else chosen,
              title=f"All-reduce on {result.ranks} ranks: {'; '.join(said)}", **fitted),
        Table([f"array of {quantity(largest, 'B')}", "measured", *(f"predicted, links: {links}" for links in predicted),
               "algorithm bandwidth: S / time", f"bus bandwidth: that times {2 * (result.ranks - 1)}/{result.ranks}"],
              rows, timed=[1, 2, 3, 4, 5]),
        Timed(" ".join(parting(measured, some, links) for links, some in predicted.items())),
    ]


def parting(measured: dict[str, list[tuple[int, float]]], predicted: dict[str, list[tuple[int, float]]],
            links: str) -> str:
    """Where what was measured and what was predicted are farthest from each other."""
    apart = [(seconds / expected, name, n) for name, points in predicted.items()
             for (n, expected), (_, seconds) in zip(points, measured[name], strict=True)]
    low, high, middle = min(apart), max(apart), median(ratio for ratio, *_ in apart)
    words = [f"{ratio:.1f} ({name}, {quantity(n, 'B')})" for ratio, name, n in (low, high)]
    return f"Measured over predicted, links {links}: {middle:.1f} in the middle, from {words[0]} to {words[1]}."


# ------------------------------------------------------------------------------------------- where we have no machine


NIC = Link(INFINIBAND_NDR.latency, INFINIBAND_NDR.bandwidth / GPUS_A_NODE, "one NIC of 400 Gbit/s")
RAILS = "hierarchical, a NIC for each GPU"
LARGE = ("ring", "tree", "recursive doubling", "halving-doubling", "hierarchical")


def nodes_of_8() -> Machine:
    """H100s in nodes of 8: NVLink within a node, and one link out of it (8 NICs taken as one)."""
    return Machine(link=NVLINK_4, node=GPUS_A_NODE, between=INFINIBAND_NDR)


def on_gpus(algorithm: str, gpus: int, nbytes: int) -> float:
    """Predicted seconds of an all-reduce of `nbytes` on `gpus` in full nodes of 8, by the plan where that is quickly
    simulated; rings by their closed forms, which are the same.

    `RAILS`: the three phases of the hierarchical one where the j-th GPUs of all nodes have NICs of their own, and so
    need not take turns. Raises ValueError if the GPUs do not fill nodes.
    """
    nodes, rest = divmod(gpus, GPUS_A_NODE)
    if rest or not nodes:
        raise ValueError(f"{gpus} GPUs do not fill nodes of {GPUS_A_NODE}; multiples of {GPUS_A_NODE} work")
    machine = nodes_of_8() if nodes > 1 else Machine(link=NVLINK_4)
    if algorithm == "ring":
        return machine.collective_seconds("all_reduce", nbytes, gpus)
    if algorithm == "hierarchical":
        return closed_form("all_reduce", algorithm, gpus, nbytes, NVLINK_4, ranks_per_node=GPUS_A_NODE,
                           between=INFINIBAND_NDR)
    if algorithm == RAILS:
        inside = sum(closed_form(kind, "ring", GPUS_A_NODE, nbytes, NVLINK_4) for kind in
                     ("reduce_scatter", "all_gather"))
        return inside + closed_form("all_reduce", "ring", nodes, nbytes / GPUS_A_NODE, NIC)
    return simulate(collective("all_reduce", algorithm, gpus, nbytes // ITEMSIZE, ITEMSIZE), machine).makespan
