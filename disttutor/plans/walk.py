"""Walking through a plan as its ranks would, without doing any of it.

Each rank goes through its list until an operation holds it up, and goes on when what it waits for has come. So a walk
ends at the plan's end, or where real ranks would stand for ever.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from disttutor.plans.op import RECEIVES, Key, Op
from disttutor.plans.plan import Plan, partners


class Stuck(Exception):
    """Nobody can go on. `at[rank]` is the operation at which the rank stands; ranks at their end are left out."""

    def __init__(self, at: dict[int, Op]):
        super().__init__(f"ranks {sorted(at)} stand still")
        self.at = at


def walk(plan: Plan, *, blocking_sends: bool = False,
         clock: Sequence[float] | None = None) -> Iterator[tuple[Op, tuple[Op, ...]]]:
    """Every operation once, in an order in which ranks can reach them, with those that are over when it is reached:
    itself, or for a collective nothing while others of the group are missing, and then all its members.

    blocking_sends: a send too holds its rank up, until its receive is reached. clock: each rank's time, kept by the
    caller while the walk goes on; the rank that is earliest goes first, so that what ranks share is taken in the order
    of time. Raises Stuck where no rank can go on. Takes time linear in the number of operations (times the logarithm
    of the number of ranks with a clock).
    """
    clock = clock or [0.0] * plan.world_size
    place = [0] * plan.world_size
    named = plan.named
    over: set[Key] = set()                                  # of the named ones, those that have ended
    sent: set[tuple] = set()                                # messages that have left
    taken: set[tuple] = set()                               # and those whose receive was reached
    entered: dict[tuple, list[Op]] = defaultdict(list)      # collectives, and who is in them
    asleep: dict[tuple, list[int]] = defaultdict(list)      # what is waited for -> the ranks that wait
    awake = [(clock[rank], rank) for rank in range(plan.world_size)]
    heapify(awake)                                          # after a step, no two clocks need show the same

    def wake(what: tuple) -> None:
        for rank in asleep.pop(what, ()):
            heappush(awake, (clock[rank], rank))

    while awake:
        _, rank = heappop(awake)
        ops = plan.ops[rank]
        while place[rank] < len(ops):
            if awake and clock[rank] > awake[0][0]:
                heappush(awake, (clock[rank], rank))        # somebody else is earlier
                break
            op = ops[place[rank]]
            kind = op.kind
            if op.after and (missing := next((key for key in op.after if key not in over), None)):
                asleep[missing].append(rank)
                break
            if kind in RECEIVES:
                what = (op.peer, rank, op.subject)
                if what not in sent:
                    asleep[what].append(rank)
                    break
                if blocking_sends:
                    taken.add(what)
                    wake(("taken", *what))
            elif kind == "send":
                what = (rank, op.peer, op.subject)
                if what not in sent:
                    sent.add(what)
                    if asleep:
                        wake(what)
                if blocking_sends and what not in taken:
                    asleep[("taken", *what)].append(rank)
                    break
            place[rank] += 1
            ended: tuple[Op, ...] = (op,)
            if op.group:
                members = entered[partners(op)]
                members.append(op)
                ended = tuple(members) if len(members) == len(op.group) else ()
            yield op, ended
            if named:
                for done in ended:
                    if done.key in named:
                        over.add(done.key)
                        wake(done.key)
    at = {rank: ops[place[rank]] for rank, ops in enumerate(plan.ops) if place[rank] < len(ops)}
    if at:
        raise Stuck(at)
