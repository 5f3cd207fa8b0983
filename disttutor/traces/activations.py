"""How many micro-batches' activations a rank holds, over time: what its memory grows with."""

from collections.abc import Callable

from disttutor.traces.trace import Trace


def in_flight(trace: Trace, rank: int, size: Callable[[int | None], int] = lambda stage: 1) -> list[tuple[float, int]]:
    """The activations that the rank holds: pairs (seconds, count), from each moment on until the next.

    size: what one micro-batch counts on a stage, such as its bytes there; by default it counts as one.

    A micro-batch counts from the end of its forward until its backward is done; where its backward is split into a
    part for the input and a part for the weights, until both are. A rank with several stages counts each of them
    for itself. The first pair is the trace's start with 0; empty if the rank runs no forward.
    """
    done: dict[tuple, tuple[float, int]] = {}
    released: dict[tuple, tuple[float, int]] = {}
    for place, span in enumerate(trace.of(rank, "compute")):
        about = (span.step, span.op.stage, span.op.microbatch)
        ends = {"forward": done, "backward": released, "backward_weight": released}.get(span.kind)
        if ends is not None:
            ends[about] = max(ends.get(about, (span.end, place)), (span.end, place))
    events = [(*moment, size(about[1])) for about, moment in done.items()]
    events += [(*moment, -size(about[1])) for about, moment in released.items() if about in done]
    count, curve = 0, [(trace.start, 0)] if done else []
    for time, _, change in sorted(events):
        count += change
        curve.append((time, count))
    return curve


def peak_in_flight(trace: Trace, rank: int, size: Callable[[int | None], int] = lambda stage: 1) -> int:
    """Most activations that the rank holds at one time, counted as `in_flight` does; 0 if it runs no forward."""
    return max((count for _, count in in_flight(trace, rank, size)), default=0)
