"""When each operation of a plan starts and ends, given how long each one lasts.

The one place where a plan's order is turned into time: replay gives it measured durations, the simulator a model's.
"""

from collections.abc import Callable, Hashable, Sequence

from disttutor.plans import RECEIVES, Key, Op, Plan, walk

Lane = tuple[Hashable, str]
Times = tuple[float, float]


def nothing(op: Op) -> float:
    """A transfer that takes no time."""
    return 0.0


def own_port(op: Op) -> Hashable:
    """Each rank has a port of its own."""
    return op.rank


def lay_out(plan: Plan, seconds: Callable[[Sequence[Op]], float], *, transit: Callable[[Op], float] = nothing,
            port: Callable[[Op], Hashable] = own_port, free: dict[Lane, float] | None = None) -> list[list[Times]]:
    """Start and end of each operation: `[rank][i]` is of `plan.ops[rank][i]`.

    A compute operation lasts `seconds([op])` from when its rank reaches it. A send lasts that long too, from when its
    rank's port is free to send; the rank goes on meanwhile. A message is there when its send has ended and the
    receiver's port, which takes in one at a time, has been busy with it for `transit(recv)`; a receive ends then, plus
    `seconds([recv])`. A collective lasts `seconds(members)` from when its last rank has entered it and the one before
    is over on each, and ends on all together.

    port: what a send or receive occupies, where ranks share one. free: when each (rank or port, lane) becomes free;
    it is brought up to date, so that the next step's plan can be laid out after this one.
    """
    free = {} if free is None else free
    thread = [free.get((rank, "compute"), 0.0) for rank in range(plan.world_size)]
    named = plan.named
    ended: dict[Key, float] = {}                        # of the named ones
    sent: dict[tuple, float] = {}                       # messages under way -> when their send ends
    entered: dict[Key, tuple[int, float]] = {}          # collectives -> their place in the rank's list, and since when
    times: list[list[Times]] = [[] for _ in plan.ops]
    for op, over in walk(plan, clock=thread):
        rank, kind = op.rank, op.kind
        start = thread[rank]
        for key in op.after:
            start = max(start, ended[key])
        if op.group:
            thread[rank] = start
            entered[op.key] = (len(times[rank]), start)
            times[rank].append((start, start))          # the rest is known when all are in it
            if over:
                _meet(over, seconds(over), entered, times, free)
                ended.update((member.key, free[member.rank, "collective"]) for member in over)
            continue
        if kind == "send":
            thread[rank] = start
            lane = (port(op), "send")
            start = max(start, free.get(lane, 0.0))
            end = free[lane] = sent[rank, op.peer, op.subject] = start + seconds(over)
        elif kind in RECEIVES:
            lane = (port(op), "recv")
            there = free[lane] = max(sent[op.peer, rank, op.subject], free.get(lane, 0.0) + transit(op))
            end = thread[rank] = max(start, there) + seconds(over)
        else:
            end = thread[rank] = start + seconds(over)
        times[rank].append((start, end))
        if named and op.key in named:
            ended[op.key] = end
    free.update({(rank, "compute"): at for rank, at in enumerate(thread)})
    return times


def _meet(members: Sequence[Op], seconds: float, entered: dict[Key, tuple[int, float]], times: list[list[Times]],
          free: dict[Lane, float]) -> None:
    """A collective begins when its last rank is in it and done with the one before; all end together."""
    starts = [max(entered[op.key][1], free.get((op.rank, "collective"), 0.0)) for op in members]
    end = max(starts) + seconds
    for op, start in zip(members, starts, strict=True):
        times[op.rank][entered[op.key][0]] = (start, end)
        free[op.rank, "collective"] = end
