"""Pipeline parallelism: the layers cut into stages, each rank its own stages, micro-batches one behind the other.

What is split: the layers (parameters, gradients and optimizer state of a rank are those of its stages) and the batch
into micro-batches. What is kept whole: nothing; only a weight that two stages share lies on both. What is sent when:
the output of a stage to the next one in forward, its gradient back in backward, once a micro-batch and boundary; at the
end of a step the gradients of shared weights and a few numbers. How many bytes: twice a boundary's activations. (A
word goes ahead from rank to rank, that all were given the same batch: messages of another size than expected would end
the process.)

Huang et al. 2019, "GPipe" (arXiv 1811.06965), section 2. When each rank does what is the schedule's business
(`disttutor.plans.schedules`); the gradient is the same with every one, as it is a sum over micro-batches.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist
from torch import Tensor, nn

from disttutor.models import evaluating
from disttutor.plans import Mesh, Plan, Schedule, StageWork, build_schedule, forward_pass, pipeline_step
from disttutor.plans.pipelines import HEADER_BYTES
from disttutor.strategies.broadcast import broadcast_state, check_alike, describe, sum_over
from disttutor.strategies.checks import check_state, whole_number
from disttutor.strategies.collectives import all_reduce
from disttutor.strategies.groups import Group, pipeline_group, world
from disttutor.strategies.messages import Messages
from disttutor.strategies.pipeline_run import PipelineRun
from disttutor.strategies.random_streams import random_stream
from disttutor.strategies.shares import Batch, move, samples_of, split
from disttutor.strategies.stage_state import StageState
from disttutor.strategies.stages import Shape, Stages, check_stage_work, cut_into, gradients_of, layers_of, nbytes_of
from disttutor.strategies.stand_ins import inputs_of
from disttutor.strategies.strategy import (
    BACKWARD_WORK,
    FORWARD_WORK,
    Objective,
    OptimizerFactory,
    ScheduleFactory,
    Strategy,
)
from disttutor.strategies.tied import TiedWeights
from disttutor.traces import recorder, unrecorded

KEPT = 64               # plans that a rank remembers
ScheduleBuilder = Callable[[int, int], Schedule]


class Pipeline(Strategy):
    """Pipeline-parallel training of `model` on every rank of the mesh's pipeline axis; all start from rank 0's weights.

    Every rank is given the same whole model and the same batches. Afterwards its model holds the weights of its own
    stages only; `full_state` has them all. The model is a Sequential or has `layers_in_order()`.

    schedule: a name in `disttutor.plans.SCHEDULES`, a function of (ranks, micro-batches) that builds one, or a
    Schedule. microbatches: how many a batch is cut into (fewer if there are fewer samples). lr_schedule: that of the
    learning rate (`Strategy`'s schedule). virtual_stages: stages a rank, for the schedules that leave a choice. cut:
    "evenly", "by weights", or the number of layers of each stage. stage_work: floating-point operations of a stage or
    of each, for slow motion and prediction (default: by its number of weights). Dropout draws from a stream of its own
    in each (step, micro-batch, stage). BatchNorm sees one micro-batch at a time. With autocast, what passes between
    stages has the type that it has without. The other arguments are those of `Strategy`, without `accumulate`.

    The objective may call its model, once, and ask for nothing else of it. With a seed, what it draws from torch's
    generator is the same on all ranks.

    Raises ValueError for an unknown schedule or cut, for more stages than layers, and for a mesh that does not fit;
    TypeError for a model that cannot be cut.
    """

    def __init__(self, model: nn.Module, objective: Objective, optimizer: OptimizerFactory, *,
                 mesh: Mesh | None = None, schedule: str | Schedule | ScheduleBuilder = "1F1B", microbatches: int = 4,
                 virtual_stages: int | None = None, cut: str | Sequence[int] = "evenly",
                 lr_schedule: ScheduleFactory | None = None,
                 stage_work: StageWork | Sequence[StageWork] | None = None, **common: Any):
        if "accumulate" in common:
            raise TypeError("a pipeline accumulates over its micro-batches: give microbatches instead of accumulate")
        whole_number("microbatches", microbatches, least=1)
        for what, given in (("objective", objective), ("optimizer", optimizer),
                            ("lr_schedule", lr_schedule or torch.optim.lr_scheduler.ConstantLR)):
            if not callable(given):
                raise TypeError(f"the {what} must be callable, not {type(given).__name__}")
        self.pipe = pipeline_group(mesh)
        self._given_schedule, self._virtual_stages = schedule, virtual_stages
        first = self._schedule(microbatches)
        self.stages = Stages(model, cut_into(layers_of(model), first.stages, cut),
                             [first.rank_of(stage) for stage in range(first.stages)], self.pipe.index)
        self._work = check_stage_work(first.stages, stage_work or [
            StageWork(FORWARD_WORK * n, BACKWARD_WORK / 2 * n, BACKWARD_WORK / 2 * n) for n in self.stages.work])
        if self.pipe.size > 1:
            orders = {f"the order of rank {rank}": first.listing(rank) for rank in range(first.ranks)}
            check_alike(self.pipe, {"the schedule": first.name, "microbatches": microbatches, **orders,
                                    "the cut": [len(module) for module in self.stages.modules]} | describe(model))
            broadcast_state(model, self.pipe)
        self._tied = TiedWeights(model, self.stages.tied, self.pipe)
        self._state = StageState(model, self.stages, self.pipe, optimizer)
        self.stages.let_go()
        super().__init__(model, objective, optimizer, accumulate=microbatches, schedule=lr_schedule, **common)
        if self.schedule:
            self._state.check_groups(self.optimizer)
        self._plans: dict[tuple, Plan] = {}

    def _trained_here(self, model: nn.Module) -> list[tuple[str, nn.Parameter]]:
        # A rank whose stages have no weights trains an empty one: torch has no optimizer of nothing.
        nothing = next(model.parameters(), torch.zeros(0)).detach().new_empty(0)
        return self.stages.own_parameters() or [("nothing", nn.Parameter(nothing))]

    def _schedule(self, microbatches: int) -> Schedule:
        """The schedule for so many micro-batches, which for the last batch may be fewer."""
        given, ranks = self._given_schedule, self.pipe.size
        if isinstance(given, str):
            return build_schedule(given, ranks, microbatches, self._virtual_stages)
        if not callable(given) and not isinstance(given, Schedule):
            raise TypeError(f"schedule is {given!r} of type {type(given).__name__}; it must be a name, a Schedule, or "
                            "a function of (ranks, micro-batches) that builds one")
        built = given if isinstance(given, Schedule) else given(ranks, microbatches)
        if not isinstance(built, Schedule):
            raise TypeError(f"the function {given!r} gave a {type(built).__name__}; it must give a Schedule")
        if (built.ranks, built.microbatches) != (ranks, microbatches):
            raise ValueError(f"schedule {built.name!r} is for {built.ranks} ranks and {built.microbatches} "
                             f"micro-batches; here are {ranks} ranks and {microbatches} micro-batches with samples")
        return built

    # ------------------------------------------------------------------------------------------------- the step

    def _forward_backward(self, microbatches: Sequence[Batch], divisor: int) -> tuple[Tensor, Any]:
        full = [(place, move(m, self.device)) for place, m in enumerate(microbatches) if samples_of(m)]
        self._divisor = divisor
        total, count, self._reached = torch.zeros((), dtype=torch.float64, device=self.device), 0, set()
        places, batches = zip(*full, strict=True) if full else ((), ())
        shapes = [self._shapes_of(m) for m in batches]
        messages = self._meet("step", batches, shapes)
        if not full:
            messages.finish()
            return total, count
        plan = self._plan(batches, shapes)
        run = self._run(messages, batches, shapes, divisor, lambda stage, m: self._surroundings(stage, places[m]),
                        split=any(op.kind == "backward_weight" for op in plan))
        run.execute(plan.ops[self.pipe.index])
        self._reached = run.reached
        for m in sorted(run.losses):
            total, count = total + run.losses[m][0], count + run.losses[m][1]
        return total, count

    def _meet(self, what: str, batches: Sequence[Batch], shapes: Sequence[Any]) -> Messages:
        """Each rank holds what it was given against what the rank before was given, before other messages come.

        Raises ValueError if they differ.
        """
        messages = Messages(self.pipe)
        if self.pipe.size == 1:
            return messages
        samples = [samples_of(m) for m in batches]
        same = what, samples, shapes, self._tied.trained()
        mine = [sum(samples), len(samples), self.updates, crc32(repr(same).encode())]
        numbers = torch.tensor(mine, device=self.device)
        if differs := messages.differs_from_before(list(dict.fromkeys(self.stages.rank_of)), numbers):
            other, (n, k, updates, _) = differs
            same = ([n, k, updates] == mine[:-1]) * (
                ", of other shapes or for something else (or other weights are frozen here)")
            raise ValueError(f"rank {world()[0]} was given {mine[0]} samples in {mine[1]} micro-batches for its {what} "
                             f"after {self.updates} updates, and rank {other} {n} in {k} after {updates}{same}: a "
                             "pipeline's ranks take the same batches, and the same number of steps")
        return messages

    def _run(self, messages: Messages, batches: Sequence[Batch], shapes: Sequence[Any], divisor: float,
             surroundings: Callable, *, objective: Any = None, split: bool = False) -> PipelineRun:
        return PipelineRun(self.stages, messages, shapes, objective or self.objective, batches, divisor=divisor,
                           surroundings=surroundings, device=self.device, split=split)

    def _surroundings(self, stage: int, place: int, update: int | None = None) -> ExitStack:
        inside = ExitStack()
        inside.enter_context(self._stream(stage, place, update))
        if self.autocast:
            inside.enter_context(torch.autocast(self.device.type, self.autocast))
        return inside

    def _stream(self, stage: int, place: int, update: int | None = None) -> AbstractContextManager:
        if self.seed is None:
            return nullcontext()
        own = (stage,) if stage else ()                 # with one stage the stream is that of one process
        return random_stream(self.device, self.seed, self.updates if update is None else update, place, *own)

    def _exchange(self, total: Tensor, count: Any) -> tuple[float, float]:
        reached = [float(boundary in self._reached) for boundary in range(len(self.stages.modules) - 1)]
        if self.pipe.size == 1:
            self.stages.forget_zeros(reached)
            return super()._exchange(total, count)
        self._tied.add_up(self._sum)
        row = torch.tensor([float(total), float(count), self._divisor, self.updates, self._squares(), *reached],
                           dtype=torch.float64, device=self.device)
        self._sum_few(row)
        total, count, divisors, updates, self._all_squares, *reached = row.tolist()
        self.stages.forget_zeros(reached)
        if divisors != self.pipe.size * self._divisor or updates != self.pipe.size * self.updates:
            raise ValueError(f"rank {world()[0]} was given {self._divisor} samples in update {self.updates}, and all "
                             f"{self.pipe.size} ranks together {divisors:g} and {updates:g}: a pipeline's ranks take "
                             "the same batches, and the same number of steps")
        return total, count

    def _sum(self, buffer: Tensor, group: Group, **about: int) -> None:
        log = recorder()
        begun = log.begin()
        dist.all_reduce(buffer, group=group.handle)
        log.end(begun, "all_reduce", nbytes=buffer.nbytes, group=group.ranks, process_group=group.handle, **about)

    def _sum_few(self, row: Tensor) -> None:
        """The sum of a few numbers over all ranks. By our own messages, as gloo's all-reduce takes milliseconds however
        little it carries (benchmarks/collectives.py)."""
        if self.device.type != "cpu":
            self._sum(row, self.pipe)
            return
        log = recorder()
        begun = log.begin()
        with unrecorded():
            all_reduce(row, self.pipe, "recursive doubling")
        log.end(begun, "all_reduce", nbytes=row.nbytes, group=self.pipe.ranks, process_group=self.pipe.handle)

    def _squares(self) -> float:
        """The sum of this rank's squared gradients; those of a shared weight count on its first rank only."""
        if self.clip_norm is None:
            return 0.0
        counted = [p.grad for name, p in self.stages.own_parameters()
                   if p.grad is not None and self.stages.owners[name][0] == self.pipe.index]
        return sum(float((torch.view_as_real(g) if g.is_complex() else g).double().square().sum()) for g in counted)

    def _clip(self, scale: float) -> float:
        if self.pipe.size == 1:
            return super()._clip(scale)
        norm = torch.tensor(scale * self._all_squares**0.5, dtype=torch.float64, device=self.device)
        nn.utils.clip_grads_with_norm_(self.parameters, self.clip_norm, norm)
        return float(norm)

    # ------------------------------------------------------------------------------------------------- the plan

    def plan(self, batch: Batch) -> Plan:
        """What every rank does in one step on a global batch like this one, before it is done."""
        full = [m for m in split(batch, self.accumulate) if samples_of(m)]
        return self._plan(full, [self._shapes_of(m) for m in full])

    def _plan(self, batches: Sequence[Batch], shapes: Sequence[list[list[Shape]]]) -> Plan:
        key = (tuple((samples_of(m), *map(tuple, s)) for m, s in zip(batches, shapes, strict=True)),
               tuple(self._tied.trained()))
        if key not in self._plans:
            plan = pipeline_step(
                self._schedule(len(batches)), work=self._work, samples=[samples_of(m) for m in batches],
                boundary_bytes=lambda boundary, m: nbytes_of(shapes[m][boundary]),
                gradient_bytes=lambda boundary, m: nbytes_of(gradients_of(shapes[m][boundary])),
                header_bytes=HEADER_BYTES + 8 * (len(self.stages.modules) - 1),
                tied=[(owners, nbytes) for _, owners, nbytes in self._tied.trained()])
            plan.check()
            if len(self._plans) >= KEPT:
                self._plans.clear()                     # sentences of ever other lengths must not fill the memory
            self._plans[key] = plan
        return self._plans[key]

    def _shapes_of(self, microbatch: Batch, objective: Any = None) -> list[list[Shape]]:
        if self.pipe.size == 1 and len(self.stages.modules) == 1:
            return []
        with random_stream(self.device, 0):                     # nobody's numbers are drawn to learn a shape
            before = torch.get_rng_state() if self.seed is None else None
            inputs = inputs_of(objective or self.objective, microbatch, self.model.training)
            if before is not None and not torch.equal(before, torch.get_rng_state()):
                raise ValueError("the objective draws random numbers for what it gives the model, and seed is None: "
                                 "the first and the last rank of a pipeline would draw different ones. Give a seed")
            return self.stages.boundary_shapes(inputs)

    # ------------------------------------------------------------------------------------------------- the state

    def full_state(self) -> dict[str, Any]:
        return self._state.whole(self.optimizer) | {
            "optimizer kind": type(self.optimizer).__name__, "updates": self.updates,
            "schedule": self.schedule.state_dict() if self.schedule else None}

    def load_state(self, state: dict[str, Any]) -> None:
        check_state(state, self.optimizer, self.schedule)
        self._state.load(state, self.optimizer)
        if self.schedule:
            self.schedule.load_state_dict(dict(state["schedule"]))
        self.updates = state["updates"]

    @torch.no_grad()
    def evaluate(self, measure: Objective, data: Batch, batch_size: int = 1024) -> float:
        whole_number("batch_size", batch_size, least=1)
        pieces = [p for p in split(data, max(1, -(-samples_of(data) // batch_size))) if samples_of(p)]
        total, count = torch.zeros((), dtype=torch.float64, device=self.device), 0
        # The stages too: a layer between them may be no part of the model.
        with evaluating(nn.ModuleList([self.model, *self.stages.modules])):
            shapes = [self._shapes_of(p, measure) for p in pieces]
            messages = self._meet("evaluation", pieces, shapes)
            if pieces:
                recorder().next_step(self.updates)
                run = self._run(messages, [move(p, self.device) for p in pieces], shapes, 1,
                                lambda stage, m: self._stream(stage, m), objective=measure)
                stages_of = [[s for s, r in enumerate(self.stages.rank_of) if r == rank]
                             for rank in range(self.pipe.size)]
                run.execute(forward_pass(stages_of, len(pieces)).ops[self.pipe.index])
                for m in sorted(run.losses):
                    total, count = total + run.losses[m][0], count + run.losses[m][1]
        summed = sum_over(self.pipe, total, count)
        return summed[0] / summed[1] if summed[1] else 0.0
