"""What the pipeline schedules have in common: how an order is put together, and where the stages lie."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from disttutor.plans.schedule import Action, Schedule, check_count
from disttutor.plans.splitting import spans, split_evenly


def forward(stage: int, microbatch: int) -> Action:
    """F of one micro-batch on one stage."""
    return Action("forward", stage, microbatch)


def backward(stage: int, microbatch: int) -> Action:
    """B of one micro-batch on one stage."""
    return Action("backward", stage, microbatch)


def weight(stage: int, microbatch: int) -> Action:
    """W of one micro-batch on one stage."""
    return Action("backward_weight", stage, microbatch)


def in_turn(forwards: Sequence[Action], backwards: Sequence[Action], warm_up: int,
            put_off: int | None = None) -> list[Action]:
    """`warm_up` forwards, then one forward and one backward in turn, then the backwards that are left.

    put_off: how many W's may be outstanding; after a B that makes it one more, the oldest is done, and those that are
    left at the end. None: B makes the weights' gradient too.
    """
    order = list(forwards[:warm_up])
    ahead = iter(forwards[warm_up:])
    outstanding: deque[Action] = deque()
    for b in backwards:
        order += [f for f in (next(ahead, None),) if f]
        order.append(b)
        if put_off is not None:
            outstanding.append(weight(b.stage, b.microbatch))
            if len(outstanding) > put_off:
                order.append(outstanding.popleft())
    return order + list(outstanding)


class Work:
    """One rank's order as it grows: each call does the next micro-batch of one stage, or nothing if there is none."""

    def __init__(self, microbatches: int):
        self.microbatches = microbatches
        self.order: list[Action] = []
        self.done: dict[tuple[str, int], int] = {}      # (kind, stage): micro-batches
        self.outstanding: list[Action] = []             # W's of the B's that are done, oldest first

    def f(self, stage: int) -> None:
        """Forward."""
        self._next(forward, stage)

    def b(self, stage: int) -> None:
        """Backward, of the input alone; its W is put off."""
        action = self._next(backward, stage)
        if action:
            self.outstanding.append(weight(stage, action.microbatch))

    def w(self, stage: int | None = None) -> None:
        """The oldest W outstanding, of one stage or of any."""
        for action in self.outstanding:
            if stage in (action.stage, None):
                self.outstanding.remove(action)
                self.order.append(action)
                return

    def bw(self, stage: int) -> None:
        """Backward, whole: the W of this B at once."""
        self.b(stage)
        self.order.append(self.outstanding.pop())

    def forwards_left(self, stage: int) -> int:
        """How many forwards of a stage are not done yet."""
        return self.microbatches - self.done.get(("forward", stage), 0)

    def _next(self, make: Callable[[int, int], Action], stage: int) -> Action | None:
        action = make(stage, self.done.get((make(stage, 0).kind, stage), 0))
        if action.microbatch >= self.microbatches:
            return None
        self.done[action.kind, stage] = action.microbatch + 1
        self.order.append(action)
        return action


def looped(ranks: int, virtual_stages: int) -> tuple[tuple[int, ...], ...]:
    """Rank r holds the stages r, r+p, r+2p, ..., `virtual_stages` of them."""
    return tuple(tuple(range(rank, ranks * virtual_stages, ranks)) for rank in range(ranks))


def v_shape(ranks: int) -> tuple[tuple[int, ...], ...]:
    """Rank r holds the stages r and 2p-1-r."""
    return tuple((rank, 2 * ranks - 1 - rank) for rank in range(ranks))


def assemble(name: str, microbatches: int, stages_of: tuple[tuple[int, ...], ...],
             order: Callable[[int], Iterable[Action]], split_backward: bool = False) -> Schedule:
    """The schedule whose rank r works in `order(r)`; micro-batches that there are not are left out."""
    orders = tuple(tuple(a for a in order(rank) if a.microbatch < microbatches) for rank in range(len(stages_of)))
    return Schedule(name, orders, stages_of, microbatches, split_backward)


def check_counts(ranks: int, microbatches: int, virtual_stages: int = 1) -> None:
    """Raises ValueError for a count that is no whole number from 1 up."""
    check_count("ranks", ranks)
    check_count("microbatches", microbatches)
    check_count("virtual_stages", virtual_stages)


def interleave(name: str, ranks: int, microbatches: int, virtual_stages: int, ahead: Callable[[int], int],
               put_off: Callable[[int], int] | None = None) -> Schedule:
    """Rounds of micro-batches through looped stages, forward and backward in turn; see `interleaved_1f1b`.

    ahead(rank): forwards beside the v-1 stages of the first round. put_off(rank): W's that may be outstanding.
    """
    check_counts(ranks, microbatches, virtual_stages)
    stages_of = looped(ranks, virtual_stages)
    # Larger rounds first: a first round shorter than the next would start too few forwards for the last stage.
    rounds = [range(*span) for span in spans(split_evenly(microbatches, max(1, microbatches // ranks)))]

    def turns(stages):
        return [(stage, i) for one in rounds for stage in stages for i in one]

    return assemble(name, microbatches, stages_of, lambda rank: in_turn(
        [forward(*turn) for turn in turns(stages_of[rank])],
        [backward(*turn) for turn in turns(stages_of[rank][::-1])],
        warm_up=(virtual_stages - 1) * len(rounds[0]) + ahead(rank),
        put_off=put_off and put_off(rank)), split_backward=put_off is not None)
