"""A plan: what every rank does, and in what order. Plain data, without torch; run, predicted and drawn alike."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from disttutor.plans.mesh import Mesh
from disttutor.plans.op import RECEIVES, Key, Op


class Goal(Protocol):
    """What a plan is to achieve."""

    def faults(self, plan: "Plan") -> list[str]:
        """A sentence for each part of it that `plan` misses. The plan is known to run to its end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Every rank's operations, `ops[rank]`, in the order in which the rank works through them, as one thread.

    Compute operations and receives hold the rank up until they are over; a receive waits for its send. A send only
    leaves: it goes out beside what follows, one message after the other. A collective is entered and goes on beside
    what follows, once the whole group is in it; who needs its result names it in `after`. An operation whose `after`
    is not over yet holds the rank up too.

    goal: what it is to achieve (that a sum holds every rank's part once, say), which `check` holds it against.

    Raises ValueError if there is not one list for each rank of the mesh, or an operation stands in another's list.
    """

    name: str
    ops: tuple[tuple[Op, ...], ...]
    mesh: Mesh
    goal: Goal | None = None
    # Keys of the operations that others wait for by name; worked out once.
    named: frozenset[Key] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.ops) != self.mesh.world_size:
            raise ValueError(f"plan {self.name!r} has {len(self.ops)} lists of operations for a mesh of "
                             f"{self.mesh.world_size} ranks; it needs one each")
        for rank, ops in enumerate(self.ops):
            for op in ops:
                if op.rank != rank:
                    raise ValueError(f"plan {self.name!r}: {op.label} of rank {op.rank} stands in the list of rank "
                                     f"{rank}")
        named = frozenset(key for ops in self.ops for op in ops for key in op.after)
        object.__setattr__(self, "named", named)

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.ops)

    def __iter__(self) -> Iterator[Op]:
        for ops in self.ops:
            yield from ops

    def __len__(self) -> int:
        return sum(map(len, self.ops))

    def check(self, *, blocking_sends: bool = False) -> "Report":
        """Prove that the plan runs to its end and reaches its goal; see `disttutor.plans.check`.

        Raises PlanError if it does not.
        """
        from disttutor.plans.check import check

        return check(self, blocking_sends=blocking_sends)


@dataclass(frozen=True, slots=True)
class Report:
    """What `Plan.check` has counted, one entry a rank.

    nbytes: bytes put into sends and collectives (a collective counts its whole array once). messages: sends and
    collectives. peak_in_flight: most micro-batches whose activations the rank holds at one time, which is from the
    forward to the end of the backward (where that is split: of its weight part), counted for each stage it holds.
    """

    nbytes: tuple[int, ...]
    messages: tuple[int, ...]
    peak_in_flight: tuple[int, ...]


class PlanError(ValueError):
    """A plan that cannot run. `faults` holds one sentence for each thing that is wrong, worst first."""

    def __init__(self, name: str, faults: list[str]):
        super().__init__(f"plan {name!r} cannot run: " + "; ".join(faults))
        self.faults = faults


def partners(op: Op) -> tuple:
    """What an operation and its partners on other ranks have in common; operations alone have only themselves."""
    if op.group:
        return ("collective", op.kind, op.group, op.subject)
    if op.kind == "send":
        return ("message", op.rank, op.peer, op.subject)
    if op.kind in RECEIVES:
        return ("message", op.peer, op.rank, op.subject)
    return ("alone", op.key)


def index(plan: Plan) -> dict[Key, Op]:
    """The plan's operations by key."""
    return {op.key: op for op in plan}
