"""The pipeline schedules of the literature, each a pure function of ranks p and micro-batches m.

All run with any p and m from 1 up, also with fewer micro-batches than ranks. Where a paper asks for more micro-batches
than there are, its schedule is made for as many as it asks for and those that there are not are left out. What is left
cannot come to wait in a circle: an action waits for its own micro-batch on other stages and for what stands before it
on its rank, and leaving micro-batches out takes away waiting and adds none.
"""

from collections.abc import Callable

from disttutor.plans.orders import assemble, backward, check_counts, forward, in_turn, interleave, looped
from disttutor.plans.schedule import Schedule
from disttutor.plans.schedules_zero_bubble import dualpipe_v, interleaved_zero_bubble, zb_h1, zb_h2, zb_v


def naive(ranks: int, microbatches: int) -> Schedule:
    """One micro-batch goes all the way forward and back before the next starts: one rank works at a time.

    Model parallelism without a pipeline: Huang et al. 2019, GPipe (arXiv 1811.06965), figure 2b.
    """
    check_counts(ranks, microbatches)
    return assemble("naive", microbatches, looped(ranks, 1), lambda s: [
        step(s, i) for i in range(microbatches) for step in (forward, backward)])


def gpipe(ranks: int, microbatches: int) -> Schedule:
    """All forwards, then all backwards. Huang et al. 2019, GPipe (arXiv 1811.06965), section 2.3 and figure 2c."""
    check_counts(ranks, microbatches)
    return assemble("GPipe", microbatches, looped(ranks, 1), lambda s: [
        step(s, i) for step in (forward, backward) for i in range(microbatches)])


def one_f_one_b(ranks: int, microbatches: int) -> Schedule:
    """1F1B, PipeDream-Flush: stage s does p-1-s forwards, then one forward and one backward in turn.

    So it holds at most min(m, p-s) micro-batches. Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.1, figure 4.
    """
    check_counts(ranks, microbatches)
    return assemble("1F1B", microbatches, looped(ranks, 1), lambda s: in_turn(
        [forward(s, i) for i in range(microbatches)],
        [backward(s, i) for i in range(microbatches)],
        warm_up=ranks - 1 - s))


def looped_bfs(ranks: int, microbatches: int, virtual_stages: int = 2) -> Schedule:
    """Breadth first: all micro-batches pass one of a rank's stages r, r+p, r+2p, ... before they pass the next.

    Backward mirrors forward, the last micro-batch first. Lamy-Poirier 2023, Breadth-First Pipeline Parallelism (arXiv
    2211.05953).
    """
    check_counts(ranks, microbatches, virtual_stages)
    stages_of = looped(ranks, virtual_stages)

    def order(rank):
        turns = [(stage, i) for stage in stages_of[rank] for i in range(microbatches)]
        return [*(forward(*turn) for turn in turns), *(backward(*turn) for turn in reversed(turns))]

    return assemble("looped BFS", microbatches, stages_of, order)


def interleaved_1f1b(ranks: int, microbatches: int, virtual_stages: int = 2) -> Schedule:
    """Megatron's interleaved 1F1B: a rank holds v stages r, r+p, r+2p, ..., so that the pipeline fills v times as fast.

    Micro-batches go in rounds: one round passes all of a rank's stages before the next round passes the first. Ahead of
    the turns of forward and backward, rank r brings a round through v-1 stages and does 2(p-1-r) forwards more. With
    v = 1 there is nothing to interleave, and it is 1F1B. Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.2 and
    figure 4; theirs are rounds of p, for which m must be a multiple of p. Here m makes floor(m/p) rounds (at least one)
    whose sizes differ by one at most, the larger first.
    """
    twice = 2 if virtual_stages != 1 else 1
    return interleave("interleaved 1F1B", ranks, microbatches, virtual_stages,
                      ahead=lambda rank: twice * (ranks - 1 - rank))


# By the name that a schedule carries. Those in VIRTUAL take a third argument, virtual_stages.
SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "naive": naive,
    "GPipe": gpipe,
    "1F1B": one_f_one_b,
    "looped BFS": looped_bfs,
    "interleaved 1F1B": interleaved_1f1b,
    "ZB-H1": zb_h1,
    "ZB-H2": zb_h2,
    "interleaved zero bubble": interleaved_zero_bubble,
    "ZB-V": zb_v,
    "DualPipeV": dualpipe_v,
}
VIRTUAL = ("looped BFS", "interleaved 1F1B", "interleaved zero bubble")


def build_schedule(name: str, ranks: int, microbatches: int, virtual_stages: int | None = None) -> Schedule:
    """The schedule of that name; virtual_stages are the stages that a rank holds (None: as many as is usual for it).

    Raises ValueError for a name that is not in `SCHEDULES`, for a count that is no whole number from 1 up, and for
    virtual stages with a schedule that leaves no choice.
    """
    if name not in SCHEDULES:
        raise ValueError(f"unknown schedule {name!r}; schedules that work: {', '.join(SCHEDULES)}")
    if virtual_stages is None:
        return SCHEDULES[name](ranks, microbatches)
    if name in VIRTUAL:
        return SCHEDULES[name](ranks, microbatches, virtual_stages)
    built = SCHEDULES[name](ranks, microbatches)
    if virtual_stages != (own := len(built.stages_of[0])):
        raise ValueError(f"{name} puts {own} stage{'s' * (own > 1)} on each rank, not {virtual_stages!r}; those that "
                         f"leave a choice are {', '.join(VIRTUAL)}")
    return built
