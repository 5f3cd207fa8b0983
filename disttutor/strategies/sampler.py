"""In which order the samples of an epoch are seen: one order for all ranks, whatever their number.

Each epoch has its own shuffle, drawn from (seed, epoch), and is cut into global batches; a strategy then gives each
rank its share. So no sample is seen twice or skipped (torch's DistributedSampler repeats some to fill the last round),
a rerun gives the same orders, and a run that stopped goes on at the next batch, on any number of ranks.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from disttutor.strategies.checks import whole_number
from disttutor.strategies.random_streams import stream_seed

ORDER = ("samples", "batch_size", "shuffle", "seed", "drop_last")      # what decides which batches are seen


class EpochSampler:
    """Global batches of sample indices, epoch after epoch.

    Iterating gives the rest of the current epoch, and then moves on to the next. drop_last: leave out a last batch that
    is not full. Raises TypeError or ValueError for sizes that are not whole numbers from 1 up, and ValueError
    if drop_last would leave nothing.
    """

    def __init__(self, samples: int, batch_size: int, *, shuffle: bool = True, seed: int = 0, drop_last: bool = False):
        whole_number("samples", samples, least=1)
        whole_number("batch_size", batch_size, least=1)
        if drop_last and samples < batch_size:
            raise ValueError(f"{samples} samples do not fill one batch of {batch_size}, and drop_last leaves the rest "
                             f"out; batch sizes that work: 1 to {samples}")
        self.samples, self.batch_size, self.shuffle, self.seed, self.drop_last = (samples, batch_size, shuffle, seed,
                                                                                  drop_last)
        self.epoch = 0
        self.batch = 0           # the next batch of this epoch

    def __len__(self) -> int:
        """Batches in an epoch."""
        whole, rest = divmod(self.samples, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Tensor]:
        order = self.order(self.epoch)
        while self.batch < len(self):
            start = self.batch * self.batch_size
            self.batch += 1      # before the batch is handed out: a state saved after its update goes on behind it
            yield order[start:start + self.batch_size]
        self.epoch, self.batch = self.epoch + 1, 0

    def order(self, epoch: int) -> Tensor:
        """The order of all samples in this epoch, [samples]."""
        if not self.shuffle:
            return torch.arange(self.samples)
        generator = torch.Generator().manual_seed(stream_seed(self.seed, epoch))
        return torch.randperm(self.samples, generator=generator)

    def state(self) -> dict[str, Any]:
        """Where it stands, to be saved."""
        return {"epoch": self.epoch, "batch": self.batch, **{what: getattr(self, what) for what in ORDER}}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a saved state. Raises ValueError if it is one of another order."""
        for what in ORDER:
            if state[what] != getattr(self, what):
                raise ValueError(f"the saved order has {what} {state[what]}, this sampler {getattr(self, what)}: "
                                 "they would not see the same batches")
        self.epoch, self.batch = state["epoch"], state["batch"]
