"""What a rank does to carry out its list of a plan, one action after the other: when it offers room for what is to
come, and when it waits until what it sent has left.

A transfer begins when both sides are ready for it, so receives are offered early: the next is under way while the one
before is added up. And a chunk may not be changed while a message of it is still leaving.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from disttutor.plans import RECEIVES, Mesh, Op, Plan, Stuck, walk
from disttutor.plans.partial_sums import Collective

AHEAD = 16              # most receives that are offered at a time: the one that is needed next, and those after it
LINE = 64               # places begin at a multiple of so many bytes, a cache line
ROOM = 2**26            # and most bytes that they take, if there are several


class Action(NamedTuple):
    """send: message `at` of the rank's list leaves. offer: there is room for it from now on. take: it must be here.
    put: it goes to its chunks. left: it must have left."""

    do: str
    at: int


class Program:
    """Every rank's actions for a plan: `actions[rank]`. copies: whether sends need copies of their own. slot_of[rank]:
    for each receive, which of the places beside the array is its own. slots[rank]: how many there are, and bytes of
    each.

    Waiting until a message has left is waiting for its receiver, about which the plan says nothing. Where ranks could
    come to wait for each other so, every message is sent from a copy instead, and nobody waits for it.
    """

    def __init__(self, plan: Plan, ahead: int):
        slots = max(1, ahead)
        receives = [[at for at, op in enumerate(ops) if op.kind in RECEIVES] for ops in plan.ops]
        self.slot_of = tuple({at: k % slots for k, at in enumerate(mine)} for mine in receives)
        self.slots = tuple((min(len(mine), slots), _lines(max((ops[at].nbytes for at in mine), default=0)))
                           for ops, mine in zip(plan.ops, receives, strict=True))
        self.actions = tuple(_actions_of(ops, ahead, copies=False) for ops in plan.ops)
        self.copies = not _runs_to_its_end(plan, self.actions)
        if self.copies:
            self.actions = tuple(_actions_of(ops, ahead, copies=True) for ops in plan.ops)


class Prepared:
    """A collective's plan that has been checked, and what its ranks do to carry it out. Raises PlanError for a plan
    that cannot run, ValueError for one that is no collective's."""

    def __init__(self, plan: Plan):
        if not isinstance(plan.goal, Collective):
            raise ValueError(f"plan {plan.name!r} is no collective's: its goal is {plan.goal!r}")
        plan.check()
        self.plan = plan

    @cached_property
    def eager(self) -> Program:
        """With receives that are offered early."""
        largest = max((op.nbytes for op in self.plan), default=1)
        return Program(self.plan, max(1, min(AHEAD, ROOM // largest)))

    @cached_property
    def stepwise(self) -> Program:
        """In which nothing arrives before its turn, for those who look on."""
        return Program(self.plan, 0)


def _lines(nbytes: int) -> int:
    return -(-nbytes // LINE) * LINE


def _actions_of(ops: Sequence[Op], ahead: int, copies: bool) -> tuple[Action, ...]:
    """One rank's actions. Up to `ahead` receives are offered before their turn, each as soon as that can be."""
    actions: list[Action] = []
    receives = [i for i, op in enumerate(ops) if op.kind in RECEIVES]
    offered = taken = 0
    leaving: dict[int, set[int]] = {}                   # chunk -> sends of it that may not have left

    def await_departures(chunks: tuple[int, ...]) -> None:
        for i in sorted(set().union(*(leaving.get(c, ()) for c in chunks))):
            actions.append(Action("left", i))
            for c in ops[i].chunks:
                leaving[c].discard(i)

    def can_be_offered(i: int, at: int, idle: bool) -> bool:
        """Whether nothing that comes before it still needs the memory in which it will lie."""
        if ops[i].kind == "recv_reduce" or i == at:
            return True                                 # it lies in a place of its own, or its turn has come
        mine = set(ops[i].chunks)
        if any(mine & set(ops[j].chunks) for j in range(at, i)):
            return False
        # What was sent before the last message came has most likely left, but only if nothing is on offer is it worth
        # the risk of being held up.
        return all(idle and j < receives[taken - 1] for c in mine for j in leaving.get(c, ()))

    for at, op in enumerate(ops):
        idle = 0 < taken == offered
        while offered < len(receives):
            i = receives[offered]
            if i != at and (offered - taken >= ahead or not can_be_offered(i, at, idle)):
                break
            if ops[i].kind == "recv":
                await_departures(ops[i].chunks)
            actions.append(Action("offer", i))
            offered += 1
        if op.kind == "send":
            actions.append(Action("send", at))
            if not copies:
                for c in op.chunks:
                    leaving.setdefault(c, set()).add(at)
        else:
            actions.append(Action("take", at))
            taken += 1
            await_departures(op.chunks)
            actions.append(Action("put", at))
    return tuple(actions)


def _runs_to_its_end(plan: Plan, actions: Sequence[Sequence[Action]]) -> bool:
    """Whether all ranks come through, if a message leaves only when its receiver has offered room for it: each offer
    is seen as a message to the sender, which it needs before it can go on after `left`."""
    more = 1 + max((op.round for op in plan if op.round is not None), default=0)
    ranks = []
    for rank, (ops, steps) in enumerate(zip(plan.ops, actions, strict=True)):
        mine = []
        for do, at in steps:
            op = ops[at]
            if do in ("send", "take"):
                mine.append(op)
            elif do in ("offer", "left"):
                mine.append(Op(kind="send" if do == "offer" else "recv", rank=rank, peer=op.peer,
                               round=more + op.round))
        ranks.append(tuple(mine))
    try:
        for _ in walk(Plan(f"{plan.name}, as it is carried out", tuple(ranks), Mesh(data=plan.world_size))):
            pass
    except Stuck:
        return False
    return True
