"""Proves, before anything starts, that a plan can run: every partner is there, nothing waits in a circle, no work is
lost or done twice. What is wrong is said with rank and operation."""

from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter

from disttutor.plans.op import Key, Op
from disttutor.plans.plan import Plan, PlanError, Report, index, partners


def check(plan: Plan) -> Report:
    """Check `plan` and count its bytes, messages and micro-batches in flight.

    Raises PlanError naming each fault: an operation listed twice, a send without its receive (or the reverse, or of
    another size), a collective that some of its group do not enter, do not enter in the same order or enter with
    another size, a wait for an operation that nobody does, a backward without its forward or before it, a micro-batch
    that a stage does not process, a cycle.
    """
    faults = [*_doubles(plan), *_unmatched(plan), *_disordered_collectives(plan), *_lost_waits(plan),
              *_lost_microbatches(plan), *_backward_before_forward(plan)]
    faults = faults or _cycles(plan)        # a missing partner would show up as a cycle too, but say less
    if faults:
        raise PlanError(plan.name, faults)
    return Report(
        nbytes=tuple(sum(op.nbytes for op in ops if op.kind == "send" or op.group) for ops in plan.ops),
        messages=tuple(sum(op.kind == "send" or bool(op.group) for op in ops) for ops in plan.ops),
        peak_in_flight=tuple(_peak_in_flight(ops) for ops in plan.ops),
    )


def dependencies(plan: Plan) -> dict[Key, list[Key]]:
    """For each operation, those that must have ended before it ends: its lane's last one, its `after`, and, through its
    partners, theirs. Sends do not block; partners of a collective leave together, so they share one node: the key of
    the first of them."""
    node = representatives(plan)
    waits: dict[Key, list[Key]] = defaultdict(list)
    for ops in plan.ops:
        last: dict[str, Op] = {}
        for op in ops:
            here = waits[node[op.key]]
            if op.lane in last:
                here.append(node[last[op.lane].key])
            here.extend(node[key] for key in op.after if key in node)
            last[op.lane] = op
    for op in plan:
        if op.kind == "recv":
            waits[op.key].append((op.peer, "send", op.rank, op.subject))
    return dict(waits)


def representatives(plan: Plan) -> dict[Key, Key]:
    """Each operation's key to the key that stands for it and its partners in a collective."""
    first: dict[tuple, Key] = {}
    return {op.key: first.setdefault(partners(op), op.key) if op.group else op.key for op in plan}


def _doubles(plan: Plan) -> list[str]:
    counts = Counter(op.key for op in plan)
    return [f"rank {op.rank} does {op.label} {counts[op.key]} times" for op in index(plan).values()
            if counts[op.key] > 1]


def _unmatched(plan: Plan) -> list[str]:
    faults = []
    sides: dict[tuple, list[Op]] = defaultdict(list)
    for op in index(plan).values():
        sides[partners(op)].append(op)
    for (what, *_), ops in sides.items():
        one = ops[0]
        if what == "message" and len(ops) == 1:
            missing = "receive" if one.kind == "send" else "send"
            faults.append(f"rank {one.rank}'s {one.label} has no {missing} on rank {one.peer}")
        if what == "collective" and len(ops) < len(one.group):
            absent = sorted(set(one.group) - {op.rank for op in ops})
            faults.append(f"{one.label} of ranks {list(one.group)} is not entered by {_ranks(absent)}")
        if what != "alone" and len({op.nbytes for op in ops}) > 1:
            sizes = ", ".join(f"rank {op.rank}: {op.nbytes}" for op in ops)
            faults.append(f"{one.label} has different sizes in bytes ({sizes})")
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


def _lost_waits(plan: Plan) -> list[str]:
    known = index(plan)
    return [f"rank {op.rank}'s {op.label} waits for {' '.join(map(str, key))}, which nobody does"
            for op in plan for key in op.after if key not in known]


def _lost_microbatches(plan: Plan) -> list[str]:
    """Every stage processes the same micro-batches (stage None: a rank that holds the whole model)."""
    faults = []
    done: dict[tuple, set[int]] = defaultdict(set)
    for op in plan:
        if op.kind in ("forward", "backward") and op.microbatch is not None:
            where = ("rank", op.rank) if op.stage is None else ("stage", op.stage)
            done[(*where, op.kind)].add(op.microbatch)
    everything = set().union(*done.values()) if done else set()
    for (word, number, kind), seen in done.items():
        if plan.mesh.pipeline > 1 and everything - seen:
            faults.append(f"{word} {number} has no {kind} of micro-batch {min(everything - seen)}")
    return faults


def _backward_before_forward(plan: Plan) -> list[str]:
    faults = []
    for rank, ops in enumerate(plan.ops):
        forwards = set()
        for op in ops:
            about = (op.stage, op.microbatch)
            if op.kind == "forward":
                forwards.add(about)
            if op.kind == "backward" and about not in forwards:
                faults.append(f"rank {rank} does {op.label} before its forward")
    return faults


def _cycles(plan: Plan) -> list[str]:
    try:
        TopologicalSorter(dependencies(plan)).prepare()
    except CycleError as error:
        known = index(plan)
        ring = [known[key] for key in error.args[1]]
        return ["a cycle: " + ", which waits for ".join(f"rank {op.rank}'s {op.label}" for op in reversed(ring))]
    return []


def _peak_in_flight(ops: tuple[Op, ...]) -> int:
    peak = live = 0
    open_forwards: set[tuple] = set()
    for op in ops:
        about = (op.stage, op.microbatch)
        if op.kind == "forward":
            open_forwards.add(about)
        elif op.kind == "backward" and (op.bucket is None or op.bucket == 0):
            open_forwards.discard(about)
        live = len(open_forwards)
        peak = max(peak, live)
    return peak


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks}"
