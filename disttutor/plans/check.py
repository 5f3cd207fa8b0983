"""Proves, before anything starts, that a plan can run: every partner is there, nothing waits in a circle, no work is
lost or done twice, and its goal is reached. What is wrong is said with rank and operation."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TypeVar

from disttutor.plans.op import RECEIVES, Key, Op
from disttutor.plans.plan import Plan, PlanError, Report, index, partners
from disttutor.plans.walk import Stuck, walk

Gone = TypeVar("Gone")


def check(plan: Plan, *, blocking_sends: bool = False) -> Report:
    """Check `plan` and count its bytes, messages and micro-batches in flight.

    blocking_sends: prove it for sends that hold their rank up until the receive is reached, as large messages do where
    nobody buffers them; a plan that passes so passes without, too.

    Raises PlanError naming each fault: an operation listed twice, a send without its receive (or the reverse, or of
    another size, or to itself), a collective that some of its group do not enter, do not enter in the same order or
    enter with another size, a wait for an operation that nobody does, a backward without its forward or before it, a
    forward without its backward, a micro-batch that a stage does not process, a cycle; and what the plan's goal misses.
    """
    prove(plan, lambda: all(walk(plan, blocking_sends=blocking_sends)))
    return Report(
        nbytes=tuple(sum(op.nbytes for op in ops if op.kind == "send" or op.group) for ops in plan.ops),
        messages=tuple(sum(op.kind == "send" or bool(op.group) for op in ops) for ops in plan.ops),
        peak_in_flight=tuple(_peak_in_flight(ops) for ops in plan.ops),
    )


def prove(plan: Plan, go_through: Callable[[], Gone]) -> Gone:
    """What `go_through()` gives, which walks through the plan (see `walk`), if the plan is sound; for those who walk
    through it anyway, and need not do so twice. Raises PlanError as `check` does."""
    # Work that is missing comes first: whoever waits for what it would have sent is a consequence.
    known = index(plan)
    _refuse(plan, [*_doubles(plan, known), *_lost_microbatches(plan), *_backward_before_forward(plan),
                   *_unmatched(plan), *_disordered_collectives(plan), *_lost_waits(plan, known)])
    try:
        gone = go_through()         # after those, as a missing partner would hold ranks up too, but say less
    except Stuck as stuck:
        _refuse(plan, [_cycle(plan, stuck.at)])
        raise
    _refuse(plan, plan.goal.faults(plan) if plan.goal else [])
    return gone


def _refuse(plan: Plan, faults: list[str]) -> None:
    if faults:
        raise PlanError(plan.name, faults) from None


def _doubles(plan: Plan, known: dict[Key, Op]) -> list[str]:
    if len(known) == len(plan):
        return []
    counts = Counter(op.key for op in plan)
    return [f"rank {op.rank} does {op.label} {counts[op.key]} times" for op in known.values() if counts[op.key] > 1]


def _unmatched(plan: Plan) -> list[str]:
    faults = []
    sides: dict[tuple, list[Op]] = defaultdict(list)
    for ops in plan.ops:
        for op in ops:
            if op.peer is not None or op.group:
                sides[partners(op)].append(op)
    for (what, *_), ops in sides.items():
        one, other = ops[0], ops[-1]
        if what == "message" and one.nbytes == other.nbytes and one.chunks == other.chunks and one.rank != other.rank:
            continue                                    # nearly all: nothing to complain of
        if what == "message":
            if one.rank == one.peer:
                faults.append(f"rank {one.rank}'s {one.label} goes to itself")
            elif len({op.rank for op in ops}) == 1:
                missing = "receive" if one.kind == "send" else "send"
                faults.append(f"rank {one.rank}'s {one.label} has no {missing} on rank {one.peer}")
        elif len(ops) < len(one.group):
            absent = sorted(set(one.group) - {op.rank for op in ops})
            faults.append(f"{one.label} of ranks {list(one.group)} is not entered by {_ranks(absent)}")
        if any(op.nbytes != one.nbytes for op in ops):
            sizes = ", ".join(f"rank {op.rank}: {op.nbytes}" for op in ops)
            faults.append(f"{one.label} has different sizes in bytes ({sizes})")
        if what == "message" and any(op.chunks != one.chunks for op in ops):
            carried = ", ".join(f"rank {op.rank}: {list(op.chunks)}" for op in ops)
            faults.append(f"{one.label} carries different chunks ({carried})")
    return faults


def _disordered_collectives(plan: Plan) -> list[str]:
    """A group's collectives meet in the order in which each rank enters them, whatever they are called."""
    orders: dict[tuple[int, ...], dict[int, list[Op]]] = defaultdict(dict)
    for op in plan:
        if op.group:
            orders[op.group].setdefault(op.rank, []).append(op)
    faults = []
    for by_rank in orders.values():
        (first, reference), *others = by_rank.items()
        for rank, ops in others:
            for a, b in zip(reference, ops, strict=False):
                if partners(a) != partners(b):
                    faults.append(f"rank {first} enters {a.label} when rank {rank} enters {b.label}")
                    break
    return faults


def _lost_waits(plan: Plan, known: dict[Key, Op]) -> list[str]:
    lost = plan.named - known.keys()
    return [f"rank {op.rank}'s {op.label} waits for {_named(key)}, which nobody does"
            for op in plan for key in op.after if key in lost] if lost else []


def _named(key: Key) -> str:
    rank, kind, peer, subject = key
    words = [kind, *(f"{name} {number}" for name, number in subject), *([] if peer is None else [f"with rank {peer}"])]
    return f"rank {rank}'s {' '.join(words)}"


def _lost_microbatches(plan: Plan) -> list[str]:
    """Every stage processes the same micro-batches (stage None: a rank that holds the whole model)."""
    done: dict[tuple, set[int]] = defaultdict(set)
    kinds = set()
    for op in plan:
        if op.microbatch is not None and op.kind in ("forward", "backward", "backward_weight"):
            where = ("rank", op.rank) if op.stage is None else ("stage", op.stage)
            done[(*where, op.kind)].add(op.microbatch)
            kinds.add(op.kind)
    if plan.mesh.pipeline == 1:         # ranks that hold the whole model may differ in their number of micro-batches
        return [f"rank {number} has no backward of micro-batch {lost}" for (word, number, kind), seen in done.items()
                if word == "rank" and kind == "forward" and "backward" in kinds
                for lost in sorted(seen - done.get((word, number, "backward"), set()))]
    everything = set().union(*done.values()) if done else set()
    places = dict.fromkeys((word, number) for word, number, _ in done)
    return [f"{word} {number} has no {kind} of micro-batch {min(lost)}"
            for word, number in places for kind in sorted(kinds)
            if (lost := everything - done.get((word, number, kind), set()))]


def _backward_before_forward(plan: Plan) -> list[str]:
    faults = []
    for rank, ops in enumerate(plan.ops):
        forwards, backwards = set(), set()
        for op in ops:
            about = (op.stage, op.microbatch)
            if op.kind == "forward":
                forwards.add(about)
            elif op.kind == "backward":
                backwards.add(about)
                if about not in forwards:
                    faults.append(f"rank {rank} does {op.label} before its forward")
            elif op.kind == "backward_weight" and about not in backwards:
                faults.append(f"rank {rank} does {op.label} before the backward of its input")
    return faults


def _cycle(plan: Plan, at: dict[int, Op]) -> str:
    """Where ranks stand for ever: each one's operation, what it waits for, and what that comes after."""
    words = [f"rank {here.rank}'s {here.label} waits for rank {other.rank}'s {other.label}"
             + ("" if at.get(other.rank) is other else
                f", which comes after rank {other.rank}'s {at[other.rank].label}")
             for here, other in _ring(plan, at)]
    return "a cycle: " + "; ".join(words)


def _ring(plan: Plan, at: dict[int, Op]) -> list[tuple[Op, Op]]:
    """Pairs (operation at which a rank stands, operation that it waits for), round the cycle."""
    rank, seen, pairs = min(at), {}, []
    while rank not in seen:
        seen[rank] = len(pairs)
        pairs.append((at[rank], _awaited(plan, at, at[rank])))
        rank = pairs[-1][1].rank
    ring = pairs[seen[rank]:]
    first = min(range(len(ring)), key=lambda i: ring[i][0].rank)
    return ring[first:] + ring[:first]


def _awaited(plan: Plan, at: dict[int, Op], op: Op) -> Op:
    """An operation that has not come and that `op` waits for."""
    known = index(plan)
    for key in op.after:
        other = known[key]
        if other.rank not in at or not _is_ahead(plan, at, other):
            if other.group:             # entered here, but not by all: whoever is missing holds it up
                for member in other.group:
                    late = known[(member, other.kind, None, other.subject)]
                    if _is_ahead(plan, at, late):
                        return late
            continue
        return other
    kinds = ("send",) if op.kind in RECEIVES else RECEIVES
    return next(known[key] for kind in kinds if (key := (op.peer, kind, op.rank, op.subject)) in known)


def _is_ahead(plan: Plan, at: dict[int, Op], op: Op) -> bool:
    """Whether its rank has not come past this operation."""
    ops = plan.ops[op.rank]
    return op.rank in at and ops.index(op) >= ops.index(at[op.rank])


def _peak_in_flight(ops: tuple[Op, ...]) -> int:
    last = "backward_weight" if any(op.kind == "backward_weight" for op in ops) else "backward"
    peak = 0
    held: set[tuple] = set()
    for op in ops:
        if op.kind == "forward":
            held.add((op.stage, op.microbatch))
            peak = max(peak, len(held))
        elif op.kind == last and op.bucket in (None, 0):
            held.discard((op.stage, op.microbatch))
    return peak


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks}"
