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

from disttutor.labs.guess import Guess
from disttutor.labs.lab import Lab
from disttutor.models import MLP, VOCABULARY, SmallGPT, classification, digits, pad, text
from disttutor.plans import Device, Link, Machine
from disttutor.strategies import DataParallel, Single, share_sizes
from disttutor.traces import SlowMotion, recorder

WIDTHS = (64, 32, 10)
BUCKET = 4_000                  # bytes: the little network's gradients then travel in two buckets
STEPS = 10
# A pace at which a micro-batch takes some tens of milliseconds, and an exchange about as long.
PACE = SlowMotion(Machine(Device(3e6), Link(latency=0.002, bandwidth=1e6)))

Batch = tuple[Tensor, Tensor]
Objective = Callable[[nn.Module, Batch], tuple[Tensor, int]]
SGD = partial(torch.optim.SGD, lr=0.1)


def mean_of_each(right: Objective) -> Objective:
    """The wrong divisor, made out of a right objective: each micro-batch's mean loss counts as one, however many
    samples or tokens it is the mean of."""

    def mean_of_means(model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
        total, count = right(model, batch)
        return total / count, 1

    return mean_of_means


def uneven_sizes(samples: int, parts: int) -> list[int]:
    """Sizes in the proportions 1 : 2 : 3 : …, which add up to `samples`: 10 in 4 parts are 1, 2, 3, 4."""
    whole = parts * (parts + 1) // 2
    ends = [round(samples * k / whole) for k in running_sum(range(1, parts + 1))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def distances(rank: int, batches: Sequence[Batch], accumulate: int, uneven: bool, objective: Objective,
              right: Objective = classification, network: Callable[[], nn.Module] | None = None) -> list[float]:
    """Train data parallel on `batches` by `objective`, and beside it one process by the `right` one, each batch whole.

    Each batch is cut into world size x `accumulate` micro-batches. Returns the largest difference between the two sets
    of weights after each step.
    """
    network = network or little_network
    strategy = DataParallel(network(), objective, SGD, accumulate=accumulate, bucket_bytes=BUCKET)
    oracle = Single(network(), right, SGD)
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


def steps_exchanging_once(rank: int, batch: Batch, accumulate: int, uneven: bool = False) -> None:
    """Two steps as they should be: the ranks exchange gradients after their last micro-batch.

    The first is for warming up, so that the ranks begin the second together.
    """
    strategy = DataParallel(little_network(), classification, SGD, accumulate=accumulate, bucket_bytes=BUCKET)
    for _ in range(2):
        strategy.step_local(microbatches_of(rank, strategy.ranks, batch, accumulate, uneven))


def steps_exchanging_each_time(rank: int, batch: Batch, accumulate: int) -> None:
    """The same two steps by someone who exchanges after every micro-batch: equal weights, `accumulate` times the bytes.
    """
    model = little_network()
    optimizer = SGD(model.parameters())
    for step in range(2):
        recorder().next_step(step)
        mine = microbatches_of(rank, dist.get_world_size(), batch, accumulate, uneven=False)
        _exchange_each_time(model, mine, len(batch[1]))
        begun = recorder().begin()
        optimizer.step()
        recorder().end(begun, "update")


def _exchange_each_time(model: nn.Module, microbatches: list[Batch], samples: int) -> None:
    """Leave in `.grad` the gradients of the mean over all ranks' `samples`."""
    log, ranks = recorder(), tuple(range(dist.get_world_size()))
    last_layer_first = list(reversed(list(model.parameters())))
    buckets = [last_layer_first[:3], last_layer_first[3:]]      # as DataParallel cuts them with BUCKET
    weights = sum(p.numel() for p in model.parameters())
    sums = {p: torch.zeros_like(p) for p in model.parameters()}
    for m, (x, y) in enumerate(microbatches):
        begun = log.begin()
        loss, count = classification(model, (x, y))
        log.end(begun, "forward", microbatch=m, flops=2 * count * weights)
        begun = log.begin()
        model.zero_grad()
        (loss / samples).backward()
        log.end(begun, "backward", microbatch=m, flops=4 * count * weights)
        for b, bucket in enumerate(buckets):
            flat = torch.cat([p.grad.flatten() for p in bucket])
            begun = log.begin()
            dist.all_reduce(flat)                               # too early: this rank has more to add
            log.end(begun, "all_reduce", nbytes=flat.nbytes, group=ranks, microbatch=m, bucket=b)
            for p, piece in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                sums[p] += piece.view_as(p)
    for p, gradient in sums.items():
        p.grad = gradient


def little_network() -> MLP:
    """The network of this lesson, with the same start weights each time, in float64."""
    return MLP(WIDTHS, seed=0, dtype=torch.float64)


def batches(size: int, steps: int = STEPS) -> list[Batch]:
    """The first `steps` batches of the digits; after the last sample the first comes again."""
    data = digits(torch.float64)
    order = torch.arange(size * steps).view(steps, size) % len(data.train_y)
    return [(data.train_x[chosen], data.train_y[chosen]) for chosen in order]


def small_gpt() -> SmallGPT:
    """A small language model, with the same start weights each time, in float64."""
    return SmallGPT(len(VOCABULARY), context=64, width=32, heads=4, layers=2, seed=0, dtype=torch.float64)


def lines_by_length(rows: int = 16, steps: int = 6) -> list[Batch]:
    """Batches of lines of English, each on a padded row of its own and the short ones first, as data loaders like to
    sort them: so micro-batches of equally many rows hold very different numbers of tokens."""
    lines = [line.strip() for line in text().splitlines() if line.strip()]
    return [pad(sorted(lines[k * rows : (k + 1) * rows], key=len), 64) for k in range(steps)]


# ------------------------------------------------------------------------------------------------- the guesses


def guess_divisor() -> Guess:
    """What the sum of gradients is divided by; the answer stays out of the lesson's cell."""
    return Guess(
        "A language model gets three micro-batches, with 2, 8 and 0 valid tokens (all else is padding). By what must "
        "the sum of all their gradients be divided?",
        ["by 3, the number of micro-batches", "by 10, the number of valid tokens",
         "by either: the learning rate evens it out"],
        right="by 10, the number of valid tokens",
        why="The large batch takes the mean over its 10 tokens, so each token must count 1/10.\n"
        "Taking each micro-batch's own mean first lets a token of the short one count four times as much as one of "
        "the long one.",
    )


def guess_exchanges() -> Guess:
    """How often ranks exchange gradients in one update."""
    return Guess(
        "Four ranks train together, and each accumulates three micro-batches for every update. How often must they "
        "exchange gradients in one update?",
        ["after every micro-batch: 3 times", "once, after the last micro-batch", "once for each rank: 4 times"],
        right="once, after the last micro-batch",
        why="Sums can be taken in any order: first over a rank's own micro-batches, which costs no message,\n"
        "and then once over the ranks.",
    )


# ------------------------------------------------------------------------------------------------- the lab

EVEN, UNEVEN = "even", "uneven (1 : 2 : 3 …)"
RIGHT, WRONG = "samples of the whole batch", "number of micro-batches"


def lab() -> Lab:
    """Move ranks, accumulation and batch size; see whether the result is that of one process, and who did what when."""
    from ipywidgets import Dropdown, IntSlider, Layout

    wide = Layout(width="380px")
    controls = {
        "ranks": IntSlider(2, 1, 4, description="ranks"),
        "accumulate": IntSlider(4, 1, 8, description="accumulate"),
        "batch": IntSlider(96, 32, 256, step=8, description="batch (samples)", layout=Layout(width="340px")),
        "sizes": Dropdown(options=[EVEN, UNEVEN], value=UNEVEN, description="micro-batches"),
        "divisor": Dropdown(options=[RIGHT, WRONG], value=RIGHT, description="divide the sum by the", layout=wide),
    }
    return Lab(controls, _experiment, _draw, title="One batch, cut into micro-batches")


def _experiment(settings: dict[str, Any], run: Callable) -> dict[str, Any]:
    uneven, data = settings["sizes"] == UNEVEN, batches(settings["batch"])
    objective = classification if settings["divisor"] == RIGHT else mean_of_each(classification)
    ranks, accumulate = settings["ranks"], settings["accumulate"]
    apart = run(distances, data, accumulate, uneven, objective, ranks=ranks)
    steps = run(steps_exchanging_once, data[0], accumulate, uneven, ranks=ranks, slow_motion=PACE)
    return {"distances": apart[0], "trace": steps.trace.only(1)}


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
