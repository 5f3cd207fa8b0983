"""Pipeline schedules that split backward in two, so that weight gradients fill what would be idle time.

B makes the gradient of a stage's input, for which the stage before it waits; W makes that of its weights, for which
nobody waits. Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv 2401.10241).
"""

from disttutor.plans.orders import Work, assemble, backward, check_counts, forward, in_turn, interleave, looped, v_shape
from disttutor.plans.schedule import Schedule


def zb_h1(ranks: int, microbatches: int) -> Schedule:
    """ZB-H1: as 1F1B and in its memory, but stage s does a W only when more than s are outstanding.

    What it has put off fills the idle time at the end. Zero Bubble, section 2.1 and figure 3.
    """
    return _handcrafted("ZB-H1", ranks, microbatches, h=1)


def zb_h2(ranks: int, microbatches: int) -> Schedule:
    """ZB-H2: twice as many forwards ahead, twice as many W's put off, up to 2p-1 micro-batches in flight.

    With m of 2p-1 or more and equal F, B and W no stage idles between its first action and its last. Zero Bubble,
    section 2.2 and figure 3.
    """
    return _handcrafted("ZB-H2", ranks, microbatches, h=2)


def _handcrafted(name: str, ranks: int, microbatches: int, h: int) -> Schedule:
    check_counts(ranks, microbatches)
    return assemble(name, microbatches, looped(ranks, 1), lambda s: in_turn(
        [forward(s, i) for i in range(microbatches)],
        [backward(s, i) for i in range(microbatches)],
        warm_up=h * (ranks - 1 - s), put_off=h * s), split_backward=True)


def interleaved_zero_bubble(ranks: int, microbatches: int, virtual_stages: int = 2) -> Schedule:
    """ZB-H1's rule on the stages of interleaved 1F1B: p-1-r forwards ahead instead of twice as many.

    With v = 1 it is ZB-H1. Zero Bubble, section 2.1, with Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.2.
    """
    return interleave("interleaved zero bubble", ranks, microbatches, virtual_stages,
                      ahead=lambda rank: ranks - 1 - rank, put_off=lambda rank: rank)


def zb_v(ranks: int, microbatches: int) -> Schedule:
    """ZB-V: rank r holds stages r and 2p-1-r, so a micro-batch goes down the ranks and up again.

    The last stage is on rank 0, so that backwards start early: with equal F, B and W, and m of 2p-1 or more, no rank
    idles between its first action and its last, in the memory of 1F1B. Zero Bubble, section 6.
    """
    check_counts(ranks, microbatches)

    def order(rank):
        down, up = rank, 2 * ranks - 1 - rank
        work = Work(max(microbatches, 2 * ranks - 1))
        for _ in range(2 * (ranks - rank) - 1):
            work.f(down)
        for _ in range(rank):
            work.f(up)
            work.f(down)
        for _ in range(ranks - rank):
            work.f(up)
            work.b(up)
            work.w(up)
        while work.forwards_left(up):
            work.f(down)                        # none are left towards the end
            work.b(down)
            work.w(down)
            work.f(up)
            work.b(up)
            work.w(up)
        for _ in range(rank):
            work.b(down)
            work.b(up)
        for _ in range(ranks - rank):
            work.b(down)
            work.w(down)
        for stage in (up, down):
            while any(action.stage == stage for action in work.outstanding):
                work.w(stage)
        return work.order

    return assemble("ZB-V", microbatches, v_shape(ranks), order, split_backward=True)


def dualpipe_v(ranks: int, microbatches: int) -> Schedule:
    """DualPipeV: stages as in ZB-V; in the middle a forward and a backward run as one, each hides the other's messages.

    Listed here one after the other, which is what a rank does that cannot mix them. A backward that does not put off
    its weights' gradient is a B with its W right behind it. The eight steps of DeepSeek-AI's DualPipeV
    (github.com/deepseek-ai/DualPipe, 2025). They need m to be 2p or more.
    """
    check_counts(ranks, microbatches)

    def order(rank):
        down, up = rank, 2 * ranks - 1 - rank
        behind = ranks - 1 - rank               # ranks further down
        work = Work(max(microbatches, 2 * ranks))
        for _ in range(2 * behind):             # 1
            work.f(down)
        for _ in range(rank + 1):               # 2
            work.f(down)
            work.f(up)
        for _ in range(behind):                 # 3
            work.b(up)
            work.w()
            work.f(up)
        for _ in range(work.microbatches - 2 * ranks + rank + 1):   # 4: the main one
            work.f(down)
            work.bw(up)
            work.f(up)
            work.bw(down)
        for _ in range(behind):                 # 5
            work.bw(up)
            work.f(up)
            work.bw(down)
        for turn in range(2 * (rank + 1)):      # 6: the first half of them whole
            backward_of = work.bw if turn <= rank else work.b
            backward_of(down if turn % 2 else up)
        for _ in range(behind):                 # 7
            work.w()
            work.b(down)
        for _ in range(rank + 1):               # 8
            work.w()
        return work.order

    return assemble("DualPipeV", microbatches, v_shape(ranks), order, split_backward=True)
