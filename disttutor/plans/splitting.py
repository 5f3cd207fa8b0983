"""How a model's layers are cut into pipeline stages: contiguous, each layer on one stage, each stage with a layer.

A cut is a tuple of sizes, first stage first: (4, 3, 3) puts layers 0-3 on stage 0. `spans` turns sizes into bounds.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import inf, lcm

from disttutor.plans.schedule import check_count


def split_evenly(layers: int, stages: int) -> tuple[int, ...]:
    """Sizes that differ by at most one, the larger first: 10 layers on 3 stages are (4, 3, 3).

    Raises ValueError for counts below 1 and for more stages than layers.
    """
    _check_counts(layers, stages)
    size, larger = divmod(layers, stages)
    return (size + 1,) * larger + (size,) * (stages - larger)


def split_by_cost(costs: Sequence[float], stages: int) -> tuple[int, ...]:
    """Sizes whose most expensive stage is as cheap as can be, with the cost of each layer given, in any unit.

    Of several such cuts it is the most even one: its stages' costs have the least sum of squares; then the one with the
    larger stages first. Exact, by dynamic programming over the layers, in time layers² · stages. Raises ValueError
    for a cost that is negative or no finite number, for no stage, and for more stages than layers.
    """
    for layer, cost in enumerate(costs):
        if not 0 <= cost < inf:
            raise ValueError(f"layer {layer} costs {cost!r}; a cost is 0 or more, and finite")
    _check_counts(len(costs), stages)
    exact = [Fraction(cost) for cost in costs]      # sums of 0.1 would differ with where they start
    unit = lcm(*(cost.denominator for cost in exact))
    before = list(accumulate((int(cost * unit) for cost in exact), initial=0))      # cost of the first n layers

    def best_cut(price):
        """The least price of a whole cut, and its sizes with a minus, so that the larger come first in a tie."""
        best = {len(costs): (0, ())}                # for the layers from n on, cut into the stages that are left
        for left in range(1, stages + 1):
            best = {n: min((price(before[stop] - before[n], rest), (n - stop, *sizes))
                           for stop, (rest, sizes) in best.items() if stop > n)
                    for n in range(len(costs) - left + 1)}
        return best[0]

    dearest, _ = best_cut(max)
    _, sizes = best_cut(lambda stage, rest: rest + stage * stage if stage <= dearest else inf)
    return tuple(-size for size in sizes)


def check_cut(sizes: Sequence[int], layers: int) -> tuple[int, ...]:
    """The sizes of a cut made by hand, as a tuple.

    Raises ValueError for no stage, for a stage without a layer or with a size that is no whole number, and for sizes
    that leave layers over or need more than there are.
    """
    if not sizes:
        raise ValueError(f"a cut of {layers} layers has no stage; it needs one or more, such as ({layers},)")
    for stage, size in enumerate(sizes):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"stage {stage} has {size!r} layers; each stage needs a whole number from 1 up"
                             + _example(layers, len(sizes)))
    total = sum(sizes)
    if total != layers:
        what = f"{layers - total} of {layers} would be on no stage" if total < layers else f"there are only {layers}"
        raise ValueError(f"the cut {tuple(sizes)} has {total} layers, but {what}" + _example(layers, len(sizes)))
    return tuple(sizes)


def spans(sizes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Each stage's layers as (start, stop), stop not included: (4, 3, 3) makes (0, 4), (4, 7), (7, 10)."""
    stops = list(accumulate(sizes))
    return tuple(zip([0, *stops], stops, strict=False))


def _check_counts(layers: int, stages: int) -> None:
    check_count("layers", layers)
    check_count("stages", stages)
    if stages > layers:
        raise ValueError(f"{layers} layers cannot be cut into {stages} stages, each with a layer; "
                         f"it works with 1 to {layers} stages")


def _example(layers: int, stages: int) -> str:
    return f"; what works is, for example, {split_evenly(layers, stages)}" if layers >= stages else (
        f"; {layers} layers can make {layers} stages at most")
