"""The main job in the terminal: the same training on the handwritten digits with 1, 2 and 4 ranks.

Everything runs in float64, so that what is left between many ranks and one process is rounding alone.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

EPOCHS = 5
BATCH = 128
BUCKET = 512 * 1024  # bytes
WIDTHS = (64, 512, 256, 10)
PICTURED = 2  # training steps in the picture
PICTURE = "timeline.svg"


@dataclass(frozen=True)
class Row:
    """One training: `loss` of its last epoch (mean per sample), `distance`: largest difference between any of its
    final weights and the one process's, `sent`: bytes that each rank sent in all (over a ring), `seconds` of the run.
    """

    ranks: int
    loss: float
    accuracy: float
    distance: float
    sent: float
    seconds: float


def train(rank: int, data: Any, epochs: int, alone: bool) -> dict[str, Any]:
    """What every rank runs: some epochs of data-parallel training, then the test."""
    import torch

    from disttutor.cluster import progress
    from disttutor.models import MLP, accuracy, classification
    from disttutor.strategies import DataParallel, EpochSampler, Single

    model = MLP(WIDTHS, seed=0, dtype=torch.float64)
    kind = Single if alone else partial(DataParallel, bucket_bytes=BUCKET)
    strategy = kind(model, classification, partial(torch.optim.SGD, lr=0.1, momentum=0.9))
    sampler = EpochSampler(len(data.train_y), BATCH, seed=0)
    batches = [chosen for _ in range(epochs) for chosen in sampler]
    losses = []
    for chosen in progress(batches, "training"):
        losses.append(strategy.step((data.train_x[chosen], data.train_y[chosen])) * len(chosen))
    return {
        "loss": sum(losses[-len(sampler) :]) / len(data.train_y),
        "accuracy": strategy.evaluate(accuracy, (data.test_x, data.test_y)),
        "weights": torch.cat([parameter.detach().flatten() for parameter in model.parameters()]),
    }


class Bar:
    """What ranks report, as one progress bar over all runs: `moved(share)` is called with how much of all is done."""

    def __init__(self, runs: int, moved: Callable[[float], None], say: Callable[[str], None]) -> None:
        self.runs, self.moved, self.say = runs, moved, say
        self.finished = 0

    def __call__(self, rank: int | None, text: str) -> None:
        self.say(text.rstrip("\n"))

    def progress(self, title: str, done: int, total: int | None) -> None:
        self.moved((self.finished + done / (total or 1)) / self.runs)

    def finish_run(self) -> None:
        self.finished += 1
        self.moved(self.finished / self.runs)


def compare(
    ranks: Sequence[int] = (1, 2, 4),
    *,
    epochs: int = EPOCHS,
    moved: Callable[[float], None] = lambda share: None,
    say: Callable[[str], None] = print,
) -> tuple[list[Row], Any]:
    """Train in one process and then with each number of ranks: the rows of the table, and the last one's Trace.

    `moved` is told how much is done, from 0 to 1; `say` gets what ranks print. Raises RankError if a run fails.
    """
    from disttutor.cluster import prewarm, run

    prewarm()  # while this process imports torch itself
    import torch

    from disttutor.models import digits
    from disttutor.traces import ring_bytes_sent

    data = digits(torch.float64)
    bar = Bar(len(ranks) + 1, moved, say)
    run_alike = partial(run, train, data, epochs, threads=1, output=bar)  # a core is a rank's, so seconds compare
    (oracle,) = run_alike(True, ranks=1)
    bar.finish_run()
    rows, trace = [], None
    for count in ranks:
        results = run_alike(False, ranks=count, record=True)
        bar.finish_run()
        first, trace = results[0], results.trace
        distance = max((answer["weights"] - oracle["weights"]).abs().max().item() for answer in results)
        sent = ring_bytes_sent(trace, 0)
        rows.append(Row(count, first["loss"], first["accuracy"], distance, sent, results.seconds))
    return rows, trace


def check_folder(folder: Path) -> None:
    """Raise OSError unless the picture can be put into `folder`, which need not be there yet. Leaves nothing behind."""
    file = folder / PICTURE
    if file.exists():
        file.open("ab").close()
        return
    standing = next(place for place in (folder, *folder.parents) if place.exists())
    tempfile.TemporaryFile(dir=standing).close()


def picture(trace: Any, folder: Path) -> Path:
    """Draw the last steps of `trace`, as they ran and as they would with a core for each rank; the file's path.

    Raises OSError if it cannot be put into `folder`.
    """
    from disttutor import figures
    from disttutor.traces import replay

    folder.mkdir(parents=True, exist_ok=True)
    steps = trace.steps[-PICTURED:]
    drawing = figures.compare(
        [trace, replay(trace)],
        [f"Data parallel training on {trace.world_size} ranks, as it ran", "The same operations, a core for each rank"],
        steps=steps,
    )
    return drawing.save(folder / PICTURE)
