"""Training over epochs: the sampler says which samples, the strategy does the step."""

from collections.abc import Callable

from disttutor.strategies.sampler import EpochSampler
from disttutor.strategies.shares import Batch, take
from disttutor.strategies.strategy import Strategy


def fit(strategy: Strategy, data: Batch, sampler: EpochSampler, epochs: int = 1,
        on_step: Callable[[int, float], None] | None = None) -> list[float]:
    """Train for `epochs` epochs from where the sampler stands; the mean loss of each global batch, before its update.

    data: all samples, the same on every rank; each global batch is looked up in it by the sampler's indices. on_step:
    called after each update with its number and loss. Save `strategy.full_state()` and `sampler.state()` together, and
    the run goes on from there on any number of ranks. At the end of an epoch no gradient is left.
    """
    losses = []
    for _ in range(epochs):
        for indices in sampler:
            losses.append(strategy.step(take(data, indices)))
            if on_step:
                on_step(strategy.updates, losses[-1])
        strategy.optimizer.zero_grad(set_to_none=True)
    return losses
