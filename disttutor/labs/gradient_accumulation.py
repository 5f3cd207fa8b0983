"""Lesson 04: one large batch out of several small ones. Is it the same, when is it not, and when do ranks talk?

Deliberate mistakes are small functions here, never settings of the real strategies.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate as running_sum
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from disttutor.labs.lab import Lab
from disttutor.models import MLP, classification, digits
from disttutor.plans import Device, Link, Machine
from disttutor.strategies import DataParallel, Single, share_sizes
from disttutor.traces import SlowMotion, recorder

WIDTHS = (64, 32, 10)
BUCKET = 4_000                  # bytes: the little network's gradients then travel in two buckets
STEPS = 10
# A pace at which a micro-batch takes some tens of milliseconds, and an exchange about as long.
PACE = SlowMotion(Machine(Device(3e6), Link(latency=0.002, bandwidth=1e6)))

Batch = tuple[Tensor, Tensor]
SGD = partial(torch.optim.SGD, lr=0.1)


def mean_of_each_microbatch(model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
    """The wrong divisor, as an objective: a micro-batch's mean loss, counted as one, however many samples it has."""
    total, count = classification(model, batch)
    return total / count, 1


def uneven_sizes(samples: int, parts: int) -> list[int]:
    """Sizes in the proportions 1 : 2 : 3 : …, which add up to `samples`: 10 in 4 parts are 1, 2, 3, 4."""
    whole = parts * (parts + 1) // 2
    ends = [round(samples * k / whole) for k in running_sum(range(1, parts + 1))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def distances(rank: int, batches: Sequence[Batch], accumulate: int, uneven: bool, objective: Callable) -> list[float]:
    """Train data parallel on `batches`, and beside it one process with each batch as a whole.

    Each batch is cut into world size x `accumulate` micro-batches. Returns the largest difference between the two sets
    of weights after each step.
    """
    strategy = DataParallel(little_network(), objective, SGD, accumulate=accumulate, bucket_bytes=BUCKET)
    oracle = Single(little_network(), classification, SGD)
    apart = []
    for batch in batches:
        strategy.step_local(microbatches_of(rank, strategy.ranks, batch, accumulate, uneven))
        oracle.step(batch)
        difference = parameters_to_vector(strategy.model.parameters()) - parameters_to_vector(oracle.model.parameters())
        apart.append(difference.abs().max().item())
    return apart


def microbatches_of(rank: int, ranks: int, batch: Batch, accumulate: int, uneven: bool) -> list[Batch]:
    """This rank's micro-batches of a batch that is cut into ranks x `accumulate` of them."""
    x, y = batch
    sizes = (uneven_sizes if uneven else share_sizes)(len(y), ranks * accumulate)
    pieces = list(zip(x.split(sizes), y.split(sizes), strict=True))
    return pieces[rank * accumulate : (rank + 1) * accumulate]


def one_step(rank: int, batch: Batch, accumulate: int, uneven: bool = False) -> None:
    """One step as it should be: the ranks exchange gradients after their last micro-batch."""
    strategy = DataParallel(little_network(), classification, SGD, accumulate=accumulate, bucket_bytes=BUCKET)
    strategy.step_local(microbatches_of(rank, strategy.ranks, batch, accumulate, uneven))


def one_step_exchanging_each_time(rank: int, batch: Batch, accumulate: int) -> None:
    """The same step by someone who exchanges after every micro-batch: equal weights, `accumulate` times the bytes."""
    model, log, ranks = little_network(), recorder(), tuple(range(dist.get_world_size()))
    weights = sum(p.numel() for p in model.parameters())
    backwards_order = list(reversed(list(model.parameters())))
    buckets = [backwards_order[:3], backwards_order[3:]]        # as DataParallel cuts them with BUCKET
    sums = {p: torch.zeros_like(p) for p in model.parameters()}
    for m, (x, y) in enumerate(microbatches_of(rank, len(ranks), batch, accumulate, uneven=False)):
        begun = log.begin()
        loss, samples = classification(model, (x, y))
        log.end(begun, "forward", microbatch=m, flops=2 * samples * weights)
        begun = log.begin()
        model.zero_grad()
        (loss / len(batch[1])).backward()
        log.end(begun, "backward", microbatch=m, flops=4 * samples * weights)
        for b, bucket in enumerate(buckets):
            flat = torch.cat([p.grad.flatten() for p in bucket])
            begun = log.begin()
            dist.all_reduce(flat)                               # too early: the rank has more to add
            log.end(begun, "all_reduce", nbytes=flat.nbytes, group=ranks, microbatch=m, bucket=b)
            for p, piece in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                sums[p] += piece.view_as(p)
    begun = log.begin()
    for p, gradient in sums.items():
        p.grad = gradient
    SGD(model.parameters()).step()
    log.end(begun, "update")


def little_network() -> MLP:
    """The network of this lesson, with the same start weights each time, in float64."""
    return MLP(WIDTHS, seed=0, dtype=torch.float64)


def batches(size: int, steps: int = STEPS) -> list[Batch]:
    """The first `steps` batches of the digits; after the last sample the first comes again."""
    data = digits(torch.float64)
    order = torch.arange(size * steps).view(steps, size) % len(data.train_y)
    return [(data.train_x[chosen], data.train_y[chosen]) for chosen in order]


# ------------------------------------------------------------------------------------------------- the lab

EVEN, UNEVEN = "even", "uneven (1 : 2 : 3 …)"
RIGHT, WRONG = "samples of the whole batch", "number of micro-batches"


def lab() -> Lab:
    """Move ranks, accumulation and batch size; see whether the result is that of one process, and who did what when."""
    from ipywidgets import Dropdown, IntSlider

    controls = {
        "ranks": IntSlider(2, 1, 4, description="ranks"),
        "accumulate": IntSlider(4, 1, 8, description="accumulate"),
        "batch": IntSlider(96, 32, 256, step=8, description="batch (samples)"),
        "sizes": Dropdown(options=[EVEN, UNEVEN], value=UNEVEN, description="micro-batches"),
        "divisor": Dropdown(options=[RIGHT, WRONG], value=RIGHT, description="divide the sum by the"),
    }
    return Lab(controls, _experiment, _draw, title="One batch, cut into micro-batches")


def _experiment(settings: dict[str, Any], run: Callable) -> dict[str, Any]:
    uneven, data = settings["sizes"] == UNEVEN, batches(settings["batch"])
    objective = classification if settings["divisor"] == RIGHT else mean_of_each_microbatch
    apart = run(distances, data, settings["accumulate"], uneven, objective, ranks=settings["ranks"])
    step = run(one_step, data[0], settings["accumulate"], uneven, ranks=settings["ranks"], slow_motion=PACE)
    return {"distances": apart[0], "trace": step.trace}


def _draw(result: dict[str, Any], settings: dict[str, Any]) -> list[Any]:
    from disttutor.figures import equality, timeline

    ranks, parts = settings["ranks"], settings["ranks"] * settings["accumulate"]
    sizes = (uneven_sizes if settings["sizes"] == UNEVEN else share_sizes)(settings["batch"], parts)
    cut = f"Each batch of {settings['batch']} samples is cut into {ranks} x {settings['accumulate']} micro-batches of "
    cut += f"{_listed(sizes)} samples."
    worst = max(result["distances"])
    if worst < 1e-12:
        verdict = f"After every step the weights are those of one process that saw the whole batch: {worst:.0e} apart."
    else:
        verdict = f"The weights are not those of one process: up to {worst:.0e} apart after {STEPS} steps."
    name = f"{ranks} {'rank' if ranks == 1 else 'ranks'}, accumulate {settings['accumulate']}"
    return [cut, verdict, equality({name: result["distances"]}, eps=["float64"]),
            timeline(result["trace"], title="One step: when each rank computes, and when the ranks exchange")]


def _listed(sizes: Sequence[int], most: int = 12) -> str:
    shown = [str(size) for size in sizes]
    if len(set(sizes)) == 1:
        return shown[0]
    return ", ".join(shown if len(shown) <= most else [*shown[: most - 2], "…", shown[-1]])
