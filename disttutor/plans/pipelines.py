"""The plan of one pipeline-parallel training step: a schedule's actions, with the messages that they need.

Before a stage's forward its input comes from the rank before, after it its output goes to the rank behind; backward the
same the other way. Neighbouring stages on one rank pass their tensors on by hand. Huang et al. 2019, "GPipe" (arXiv
1811.06965), section 2; Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from disttutor.plans.mesh import Mesh
from disttutor.plans.op import Op
from disttutor.plans.plan import Plan
from disttutor.plans.schedule import Action, Schedule
from disttutor.plans.schedules import one_f_one_b

# What the ranks add up at the end of a step: loss, count, batch size, updates (as in data parallelism), and the square
# of the gradient's norm.
HEADER_BYTES = 5 * 8
# From an action's stage to the one that its result goes to.
STEP = {"forward": 1, "backward": -1, "backward_weight": 0}


@dataclass(frozen=True, slots=True)
class StageWork:
    """Floating-point operations of one stage for one sample: forward, and the two halves of backward (the gradient of
    the stage's input and that of its weights)."""

    forward: float = 1.0
    backward_input: float = 1.0
    backward_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class EveryMicrobatch:
    """A pipeline's goal: every stage does each micro-batch once, with what its neighbours sent, and sends what it made.

    kinds: what every stage does with each micro-batch. update: whether each rank updates its weights once, after that.
    """

    schedule: Schedule
    kinds: tuple[str, ...]
    update: bool = False

    def faults(self, plan: Plan) -> list[str]:
        """A sentence for each piece of work that is missing, and for each message at the wrong place in the list."""
        faults = []
        ways = _Ways(self.schedule)
        # A rank passes a boundary one way only: what is sent or received there needs no other name.
        places = [{(op.kind, op.boundary if op.stage is None else op.stage, op.microbatch): i
                   for i, op in enumerate(ops)} for ops in plan.ops]
        for stage, rank in enumerate(ways.rank_of):
            place = places[rank]
            for kind in self.kinds:
                source, target = ways.peers(kind, stage)
                before = ways.before(kind, stage)
                for m in range(self.schedule.microbatches):
                    here = place.get((kind, stage, m))
                    if here is None:
                        faults.append(f"stage {stage} has no {kind} of micro-batch {m} on rank {rank}")
                        continue
                    if before is not None and not source and place.get((kind, before, m), here) >= here:
                        faults.append(f"rank {rank} does {plan.ops[rank][here].label} without having done {kind} stage "
                                      f"{before} microbatch {m}, which is its own")
                    if source and place.get(("recv", source[1], m), here) >= here:
                        faults.append(f"rank {rank} does {plan.ops[rank][here].label} without having received what it "
                                      f"needs from rank {source[0]}")
                    if target and place.get(("send", target[1], m), here) <= here:
                        faults.append(f"rank {rank} does not send the result of {plan.ops[rank][here].label} to rank "
                                      f"{target[0]} after it")
        if self.update:
            faults += [fault for rank, ops in enumerate(plan.ops) for fault in self._updates(rank, ops)]
        return faults

    def _updates(self, rank: int, ops: Sequence[Op]) -> Iterator[str]:
        at = [place for place, op in enumerate(ops) if op.kind == "update"]
        if not at:
            yield f"rank {rank} never updates its weights"
        elif late := next((op for op in ops[at[0]:] if op.kind in self.kinds), None):
            yield f"rank {rank} updates its weights before its {late.label}"


def pipeline_step(schedule: Schedule, *, work: StageWork | Sequence[StageWork] = StageWork(),
                  boundary_bytes: int | Callable[[int, int], int] = 0,
                  gradient_bytes: Callable[[int, int], int] | None = None, samples: Sequence[int] | None = None,
                  tied: Sequence[tuple[tuple[int, ...], int]] = (), header_bytes: int = HEADER_BYTES) -> Plan:
    """One step of `schedule` on every rank, up to the update of its weights.

    work: of every stage, or of each. boundary_bytes: of the tensor that passes between two stages, for each sample; or
    a function of (boundary, micro-batch) that gives the whole message's. gradient_bytes: such a function for what comes
    back, if that is another (whole numbers have no gradient). samples: in each micro-batch (default: one).
    tied: for each parameter that several ranks hold, those ranks and its gradient's bytes. header_bytes: of the sums
    that all ranks share at the end.

    Raises ValueError if `work` or `samples` are of another number than the stages or micro-batches.
    """
    works = [work] * schedule.stages if isinstance(work, StageWork) else list(work)
    samples = [1] * schedule.microbatches if samples is None else list(samples)
    for what, given, wanted in (("work", works, schedule.stages), ("samples", samples, schedule.microbatches)):
        if len(given) != wanted:
            raise ValueError(f"{what} has {len(given)} entries, but schedule {schedule.name!r} has {schedule.stages} "
                             f"stages and {schedule.microbatches} micro-batches: it takes {wanted}")
    size = boundary_bytes if callable(boundary_bytes) else lambda boundary, m: boundary_bytes * samples[m]
    back = gradient_bytes or size
    ranks = [[*_work(schedule, rank, works, samples, size, back)] for rank in range(schedule.ranks)]
    for rank, ops in enumerate(ranks):
        ops += _end_of_step(rank, schedule.ranks, tied, header_bytes, ops[-1] if ops else None)
    return Plan(f"{schedule.name}, {schedule.ranks} ranks, {schedule.microbatches} micro-batches",
                tuple(map(tuple, ranks)), Mesh(pipeline=schedule.ranks),
                EveryMicrobatch(schedule, _kinds(schedule), update=True))


def pipedream(ranks: int, minibatches: int, *, work: StageWork | Sequence[StageWork] = StageWork(),
              boundary_bytes: int | Callable[[int, int], int] = 0,
              gradient_bytes: Callable[[int, int], int] | None = None, samples: Sequence[int] | None = None) -> Plan:
    """A stream of whole mini-batches, asynchronously: the order of 1F1B, and each stage updates its weights as soon as
    it has a gradient, whatever is in flight elsewhere.

    Narayanan et al. 2019, PipeDream (SOSP), sections 3.2 and 3.3. The arguments are those of `pipeline_step`, a
    mini-batch taking a micro-batch's place. At the end all ranks learn every mini-batch's loss.
    """
    step = pipeline_step(one_f_one_b(ranks, minibatches), work=work, boundary_bytes=boundary_bytes,
                         gradient_bytes=gradient_bytes, samples=samples, header_bytes=16 * minibatches)
    ops = []
    for rank, mine in enumerate(step.ops):
        ops.append([])
        for before, op in pairwise((None, *mine[:-1])):         # without the update at the end
            ops[-1].append(op)
            # The gradient for the stage before leaves first: others wait for it, nobody for the update.
            if op.kind == "backward" and rank == 0 or op.kind == "send" and before.kind == "backward":
                ops[-1].append(Op(kind="update", rank=rank, stage=rank, microbatch=op.microbatch))
    return Plan(f"PipeDream, {ranks} ranks, {minibatches} mini-batches", tuple(map(tuple, ops)), step.mesh,
                replace(step.goal, update=False))       # not once


def staleness(plan: Plan) -> dict[tuple[int, int], int]:
    """For each (stage, micro-batch): how many updates of the stage's own weights came between its forward and its
    backward. In 1F1B order that is p-1-s for stage s once the pipeline is full, and 0 for the last."""
    out = {}
    for ops in plan.ops:
        updates, at_forward = 0, {}
        for op in ops:
            about = (op.stage, op.microbatch)
            if op.kind == "forward":
                at_forward[about] = updates
            elif op.kind == "backward":
                out[about] = updates - at_forward[about]
            updates += op.kind == "update"
    return out


def forward_pass(stages_of: Sequence[Sequence[int]], microbatches: int,
                 boundary_bytes: int | Callable[[int, int], int] = 0) -> Plan:
    """Forward alone, as an evaluation does it: each micro-batch through all stages, one behind the other."""
    orders = tuple(tuple(Action("forward", stage, m) for m in range(microbatches) for stage in sorted(stages))
                   for stages in stages_of)
    schedule = Schedule("forward pass", orders, tuple(map(tuple, stages_of)), microbatches)
    size = boundary_bytes if callable(boundary_bytes) else lambda boundary, m: boundary_bytes
    ops = tuple(tuple(_work(schedule, rank, [StageWork()] * schedule.stages, [1] * microbatches, size, size))
                for rank in range(schedule.ranks))
    return Plan(schedule.name, ops, Mesh(pipeline=schedule.ranks), EveryMicrobatch(schedule, ("forward",)))


class _Ways:
    """From which rank an action's input comes and to which its result goes."""

    def __init__(self, schedule: Schedule):
        held = {stage: rank for rank, stages in enumerate(schedule.stages_of) for stage in stages}
        self.rank_of = [held[stage] for stage in range(len(held))]

    def peers(self, kind: str, stage: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Source and target of an action, each as (rank, boundary); None where it is the same rank or nobody."""
        step = STEP[kind]
        return self._other(stage, stage - step), self._other(stage, stage + step)

    def before(self, kind: str, stage: int) -> int | None:
        """The stage whose result an action needs; None where it is the first one, or needs only its own stage's."""
        before = stage - STEP[kind]
        return before if before != stage and 0 <= before < len(self.rank_of) else None

    def _other(self, stage: int, other: int) -> tuple[int, int] | None:
        if not 0 <= other < len(self.rank_of) or self.rank_of[other] == self.rank_of[stage]:
            return None
        return self.rank_of[other], min(stage, other)


def _work(schedule: Schedule, rank: int, works: Sequence[StageWork], samples: Sequence[int],
          forth: Callable[[int, int], int], back: Callable[[int, int], int]) -> Iterator[Op]:
    """The rank's actions in order, each between its messages, which are of `forth` or `back` bytes."""
    ways = _Ways(schedule)
    for action in schedule.orders[rank]:
        kind, stage, m = action.kind, action.stage, action.microbatch
        source, target = ways.peers(kind, stage)
        size = forth if kind == "forward" else back
        if source:
            yield _message("recv", rank, *source, m, size)
        flops = samples[m] * _flops(works[stage], kind, schedule)
        yield Op(kind=kind, rank=rank, stage=stage, microbatch=m, flops=flops)
        if target:
            yield _message("send", rank, *target, m, size)


def _message(kind: str, rank: int, peer: int, boundary: int, m: int, size: Callable[[int, int], int]) -> Op:
    return Op(kind=kind, rank=rank, peer=peer, boundary=boundary, microbatch=m, nbytes=size(boundary, m))


def _flops(work: StageWork, kind: str, schedule: Schedule) -> float:
    if kind == "forward":
        return work.forward
    if kind == "backward_weight":
        return work.backward_weight
    return work.backward_input if schedule.split_backward else work.backward_input + work.backward_weight


def _end_of_step(rank: int, ranks: int, tied: Sequence[tuple[tuple[int, ...], int]], header_bytes: int,
                 last: Op | None) -> Iterator[Op]:
    """Gradients of tied weights are added up, then all ranks learn the loss; then each updates its own weights."""
    sums = []
    after = (last.key,) if last and last.peer is None else ()
    for number, (group, nbytes) in enumerate(tied):
        if rank in group:
            sums.append(Op(kind="all_reduce", rank=rank, bucket=number, nbytes=nbytes, group=group, after=after))
    if ranks > 1:
        sums.append(Op(kind="all_reduce", rank=rank, nbytes=header_bytes, group=tuple(range(ranks)), after=after))
    yield from sums
    yield Op(kind="update", rank=rank, after=tuple(op.key for op in sums))


def _kinds(schedule: Schedule) -> tuple[str, ...]:
    return ("forward", "backward", *(("backward_weight",) if schedule.split_backward else ()))
