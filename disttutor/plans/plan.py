"""A plan: what every rank does, and in what order. Plain data, without torch; run, predicted and drawn alike."""

from collections.abc import Iterator
from dataclasses import dataclass

from disttutor.plans.mesh import Mesh
from disttutor.plans.op import Key, Op


@dataclass(frozen=True, slots=True)
class Plan:
    """Every rank's operations, `ops[rank]`, in the order in which the rank issues them.

    Operations on one lane of a rank run one after the other in that order. Those on its other lane run beside them,
    held back only by what their `after` names. An operation waits for its partners too: a receive for its send, a
    collective for the whole group.

    Raises ValueError if there is not one list for each rank of the mesh, or an operation stands in another's list.
    """

    name: str
    ops: tuple[tuple[Op, ...], ...]
    mesh: Mesh

    def __post_init__(self) -> None:
        if len(self.ops) != self.mesh.world_size:
            raise ValueError(f"plan {self.name!r} has {len(self.ops)} lists of operations for a mesh of "
                             f"{self.mesh.world_size} ranks; it needs one each")
        for rank, ops in enumerate(self.ops):
            for op in ops:
                if op.rank != rank:
                    raise ValueError(f"plan {self.name!r}: {op.label} of rank {op.rank} stands in the list of rank "
                                     f"{rank}")

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.ops)

    def __iter__(self) -> Iterator[Op]:
        for ops in self.ops:
            yield from ops

    def __len__(self) -> int:
        return sum(map(len, self.ops))

    def check(self) -> "Report":
        """Prove that the plan can run to its end; see `disttutor.plans.check`. Raises PlanError if it cannot."""
        from disttutor.plans.check import check

        return check(self)


@dataclass(frozen=True, slots=True)
class Report:
    """What `Plan.check` has counted, one entry a rank.

    nbytes: bytes put into sends and collectives (a collective counts its whole array once). messages: sends and
    collectives. peak_in_flight: most micro-batches whose forward is done and whose backward is not, at one time.
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
    if op.kind == "recv":
        return ("message", op.peer, op.rank, op.subject)
    return ("alone", op.key)


def index(plan: Plan) -> dict[Key, Op]:
    """The plan's operations by key."""
    return {op.key: op for op in plan}
