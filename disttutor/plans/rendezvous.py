"""The same work in an order that also runs where a send waits until its receive is reached.

A message that nobody buffers is one event for two ranks. If all ranks go through their events in the order of one list
for everybody, none waits for another in a circle: of the events that are left, the first can always happen. So it takes
one order of all events that keeps what each rank needs, and each rank's part of it.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush

from disttutor.plans.op import RECEIVES, Op
from disttutor.plans.plan import Plan, PlanError, partners


def rendezvous(plan: Plan) -> Plan:
    """`plan` with sends and receives moved so that `check(blocking_sends=True)` holds.

    Computation keeps its order on each rank. A send stays behind the computation that it followed, a receive before the
    one that it preceded, and messages about the same chunks keep their order. Where there is a choice, what stood first
    in its list comes first.

    Raises PlanError if the plan cannot run even without blocking, and if no order will do: two ranks that exchange what
    they hold must send and receive at once.
    """
    plan.check()
    members: dict[tuple, list[Op]] = defaultdict(list)      # event -> the operations that are its sides
    place: dict[tuple, int] = {}                            # and where it stands in a list, at the latest
    for ops in plan.ops:
        for i, op in enumerate(ops):
            members[partners(op)].append(op)
            place[partners(op)] = max(i, place.get(partners(op), 0))
    needs = {event: set() for event in members}
    for ops in plan.ops:
        for before, behind in _order_to_keep(ops):
            needs[partners(behind)].add(partners(before))
    followers: dict[tuple, list[tuple]] = defaultdict(list)
    for event, before in needs.items():
        for other in before:
            followers[other].append(event)
    names = {event: n for n, event in enumerate(members)}   # a tie is broken by the order of the lists
    ready = [(place[event], names[event], event) for event, before in needs.items() if not before]
    heapify(ready)
    lists: list[list[Op]] = [[] for _ in plan.ops]
    while ready:
        _, _, event = heappop(ready)
        for op in members[event]:
            lists[op.rank].append(op)
        for other in followers[event]:
            needs[other].remove(event)
            if not needs[other]:
                heappush(ready, (place[other], names[other], other))
    if left := [members[event][0] for event, before in needs.items() if before]:
        raise PlanError(plan.name, [
            f"no order runs with blocking sends: rank {left[0].rank}'s {left[0].label} has to leave before what comes "
            "the other way, and that before it (an exchange sends and receives at once, as MPI_Sendrecv does)"])
    return replace(plan, name=f"{plan.name}, in rendezvous", ops=tuple(map(tuple, lists)))


def _order_to_keep(ops: tuple[Op, ...]) -> Iterator[tuple[Op, Op]]:
    """Pairs of a rank's operations whose order matters, the earlier one first."""
    known = {op.key: op for op in ops}
    last: Op | None = None                                  # the last computation or collective
    waiting: list[Op] = []                                  # receives since
    touched: dict[int, Op] = {}                             # chunk -> the last message about it
    for op in ops:
        yield from ((known[key], op) for key in op.after if key in known)
        for other in {id(o): o for c in op.chunks if (o := touched.get(c))}.values():
            yield other, op
        touched.update(dict.fromkeys(op.chunks, op))
        if op.kind in RECEIVES:
            waiting.append(op)
            continue
        if last is not None:
            yield last, op
        if op.kind != "send":
            yield from ((receive, op) for receive in waiting)
            last, waiting = op, []
