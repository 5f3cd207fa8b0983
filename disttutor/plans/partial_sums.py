"""What every rank holds of an array while a collective runs: whose parts are in which of its chunks.

A plan is followed without any numbers. Each chunk of each rank is a set of contributions: at first its own, then those
that arrive. So it is seen, before anything starts, whether everything ends where it should, and once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from disttutor.plans.op import RECEIVES, Op
from disttutor.plans.plan import Plan
from disttutor.plans.walk import walk

KINDS = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all")
ROOTED = ("broadcast", "reduce")
MOST = 20               # sentences about one plan; a thousand ranks could have a million faults

# Whose parts a chunk holds, as two sets of ranks, bit r for rank r: those that are in it, and of these those that are
# in it more than once. Two integers, since a simulation of hundreds of ranks adds up millions of them.
Content = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Step:
    """A round of a collective. moment: its name, such as `reduce-scatter 1 of 3`, or `before`. messages: (source,
    destination, chunks), each once. holds[rank][chunk]: the ranks whose parts are in it afterwards, in order; one that
    is in it more than once is named twice, and () is a chunk that is not there."""

    moment: str
    messages: tuple[tuple[int, int, tuple[int, ...]], ...]
    holds: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class Collective:
    """The goal of a plan: a collective of `kind` over `world` ranks.

    sizes: elements of each chunk; itemsize: bytes of an element. root: of a broadcast or reduce. phases: what the
    plan's rounds are called, as (name, number of rounds).

    all_reduce: every rank has every chunk at first, and the sum of all in the end; reduce: so has the root in the end.
    broadcast: the root's chunks go to everybody. all_gather: rank r brings chunk r, everybody gets all. reduce_scatter:
    everybody brings all, rank r gets the sum of chunk r. all_to_all: chunk s * world + d goes from rank s to rank d.
    Chunks without elements count for nothing.
    """

    kind: str
    world: int
    sizes: tuple[int, ...]
    itemsize: int
    root: int | None = None
    phases: tuple[tuple[str, int], ...] = ()

    @property
    def moments(self) -> tuple[str, ...]:
        """`before`, and a name for the moment after each round."""
        return ("before", *(f"{name} {i + 1} of {rounds}" for name, rounds in self.phases for i in range(rounds)))

    def nbytes(self, chunks: Sequence[int]) -> int:
        """Size of these chunks together, in bytes."""
        return self.itemsize * sum(self.sizes[c] for c in chunks)

    def at_first(self, rank: int) -> tuple[int, ...]:
        """The chunks that the rank has before anything is sent."""
        everything = range(len(self.sizes))
        if self.kind == "all_gather":
            return (rank,)
        if self.kind == "all_to_all":
            return tuple(everything[rank * self.world:(rank + 1) * self.world])
        return () if self.kind == "broadcast" and rank != self.root else tuple(everything)

    def in_the_end(self, rank: int) -> dict[int, int]:
        """The chunks that the rank must have in the end, and the ranks whose parts must be in each (bit r: rank r)."""
        everything, everybody = range(len(self.sizes)), (1 << self.world) - 1
        if self.kind == "broadcast":
            return dict.fromkeys(everything, 1 << self.root)
        if self.kind == "all_gather":
            return {c: 1 << c for c in everything}
        if self.kind == "all_to_all":
            return {s * self.world + rank: 1 << s for s in range(self.world)}
        if self.kind == "reduce_scatter":
            return {rank: everybody}
        return dict.fromkeys(everything, everybody) if self.kind == "all_reduce" or rank == self.root else {}

    def faults(self, plan: Plan) -> list[str]:
        """A sentence for each chunk that is missing, incomplete, or holds what does not belong there; for each message
        of what its sender does not have; and for messages of chunks that are not there or of another size than theirs.
        """
        if plan.world_size != self.world:
            return [f"it is of {plan.world_size} ranks, and its goal of {self.world}"]
        faults = _unknown_chunks(plan, self)
        if not faults:
            holds, faults = follow(plan, self)
            faults = faults or [fault for rank, held in enumerate(holds) for chunk, wanted in
                                self.in_the_end(rank).items() if self.sizes[chunk]
                                for fault in _compare(rank, chunk, held.get(chunk), wanted)]
        rest = len(faults) - MOST
        return faults if rest <= 0 else [*faults[:MOST], f"and {rest} more of the kind"]


def partial_sums(plan: Plan) -> list[Step]:
    """What every rank holds before anything is sent, and after each round of `plan`, whose goal is a `Collective`.

    Raises ValueError for another plan, and whatever `walk` raises for one that does not run to its end.
    """
    goal = plan.goal
    if not isinstance(goal, Collective):
        raise ValueError(f"plan {plan.name!r} is no collective's: its goal is {goal!r}; those of "
                         "disttutor.plans.collectives have one")
    rounds = 1 + max([len(goal.moments) - 2, *(op.round for op in plan if op.round is not None)])
    seen: list[list[dict[int, Content]]] = [[] for _ in range(plan.world_size)]

    def look(op: Op, held: dict[int, Content]) -> None:
        # What a rank holds when it comes to its first operation of round k is what it holds after round k - 1.
        while op.round is not None and len(seen[op.rank]) <= op.round:
            seen[op.rank].append(dict(held))

    holds, _ = follow(plan, goal, look)
    for held, moments in zip(holds, seen, strict=True):
        moments += [held] * (rounds + 1 - len(moments))
    messages = [tuple((op.rank, op.peer, op.chunks) for op in plan if op.kind == "send" and op.round == k)
                for k in range(-1, rounds)]
    names = [*goal.moments, *(f"round {k}" for k in range(len(goal.moments), rounds + 1))]
    return [Step(names[k], messages[k], tuple(_ranks_in(moments[k], len(goal.sizes)) for moments in seen))
            for k in range(rounds + 1)]


def follow(plan: Plan, goal: Collective, look: Callable[[Op, dict[int, Content]], None] | None = None
           ) -> tuple[list[dict[int, Content]], list[str]]:
    """Go through the messages of a plan that runs to its end: what each rank holds then (chunk to content), and a
    sentence for each message of nothing. look(op, held) is called before each operation.

    A message holds what its sender has when it leaves.
    """
    holds = [dict.fromkeys(goal.at_first(rank), (1 << rank, 0)) for rank in range(plan.world_size)]
    under_way: dict[tuple, list[Content]] = {}
    faults = []
    for op, _ in walk(plan):
        held = holds[op.rank]
        if look:
            look(op, held)
        if op.kind == "send":
            faults += [f"rank {op.rank}'s {op.label} carries chunk {c}, of which it has nothing"
                       for c in op.chunks if c not in held]
            under_way[op.rank, op.peer, op.subject] = [held.get(c, (0, 0)) for c in op.chunks]
        elif op.kind in RECEIVES:
            arrived = zip(op.chunks, under_way.pop((op.peer, op.rank, op.subject)), strict=True)
            if op.kind == "recv":
                held.update(arrived)
                continue
            for chunk, (parts, doubled) in arrived:
                if chunk not in held:
                    faults.append(f"rank {op.rank}'s {op.label} adds to chunk {chunk}, of which it has nothing")
                mine, twice = held.get(chunk, (0, 0))
                held[chunk] = mine | parts, twice | doubled | mine & parts
    return holds, faults


def _unknown_chunks(plan: Plan, goal: Collective) -> list[str]:
    faults = []
    for op in plan:
        if op.peer is None:
            continue
        if unknown := [c for c in op.chunks if not 0 <= c < len(goal.sizes)]:
            faults.append(f"rank {op.rank}'s {op.label} carries chunk {unknown[0]}; there are {len(goal.sizes)}")
        elif op.nbytes != (size := goal.nbytes(op.chunks)):
            faults.append(f"rank {op.rank}'s {op.label} has {op.nbytes} bytes, and its chunks {list(op.chunks)} {size}")
    return faults


def _compare(rank: int, chunk: int, content: Content | None, wanted: int) -> list[str]:
    if content is None:
        return [f"rank {rank} has no chunk {chunk}"]
    parts, doubled = content
    name = f"rank {rank}'s chunk {chunk}"
    return [f"{name} {verb} {_parts(ranks)}{rest}" for verb, ranks, rest in (
        ("lacks", wanted & ~parts, ""), ("holds", doubled, " twice"),
        ("holds", parts & ~wanted & ~doubled, " which does not belong there")) if ranks]


def _parts(ranks: int) -> str:
    first, *others = _members(ranks)
    return f"the parts of ranks {', '.join(map(str, (first, *others)))}" if others else f"rank {first}'s part"


def _members(ranks: int) -> tuple[int, ...]:
    return tuple(r for r in range(ranks.bit_length()) if ranks >> r & 1)


def _ranks_in(held: dict[int, Content], chunks: int) -> tuple[tuple[int, ...], ...]:
    contents = (held.get(c, (0, 0)) for c in range(chunks))
    return tuple(tuple(sorted(_members(parts) + _members(doubled))) for parts, doubled in contents)
