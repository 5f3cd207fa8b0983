"""When each operation of a plan starts and ends, given how long each one lasts.

The one place where a plan's order is turned into time: replay gives it measured durations, the simulator a model's.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from graphlib import TopologicalSorter

from disttutor.plans import Key, Op, Plan, dependencies, representatives

Lane = tuple[int, str]


def lay_out(plan: Plan, seconds: Callable[[Sequence[Op]], float],
            free: dict[Lane, float] | None = None) -> dict[Key, tuple[float, float]]:
    """Start and end of each operation, by key.

    An operation starts when its lane is free and what it waits for has ended. A collective lasts `seconds(members)`
    from when its last rank has entered it, and ends on all together. A receive ends when its send has, plus
    `seconds([recv])`. Every other operation lasts `seconds([op])`. `free`: when each (rank, lane) becomes free; it is
    brought up to date, so that the next step's plan can be laid out after this one.
    """
    free = {} if free is None else free
    members: dict[Key, list[Op]] = defaultdict(list)
    node = representatives(plan)
    for op in plan:
        members[node[op.key]].append(op)
    times: dict[Key, tuple[float, float]] = {}
    for key in TopologicalSorter(dependencies(plan)).static_order():
        ops = members[key]
        starts = [max([free.get((op.rank, op.lane), 0.0), *(times[k][1] for k in op.after if k in node)])
                  for op in ops]
        begin = max(starts)
        if ops[0].kind == "recv":
            begin = max(begin, times[(ops[0].peer, "send", ops[0].rank, ops[0].subject)][1])
        end = begin + seconds(ops)
        for op, start in zip(ops, starts, strict=True):
            times[op.key] = (start, end)
            free[op.rank, op.lane] = end
    return times
