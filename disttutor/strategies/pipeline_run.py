"""The interpreter of a pipeline's plan: this rank's list, executed with real tensors and real messages.

A table leads from the kind of an operation to the method that does it. The order is the plan's alone, so one
interpreter runs every schedule, and what it writes down can be held against the plan operation by operation.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from disttutor.plans import RECEIVES, Op
from disttutor.strategies.checks import sum_and_count
from disttutor.strategies.messages import Expected, Messages
from disttutor.strategies.shares import Batch
from disttutor.strategies.split_backward import SplitBackward
from disttutor.strategies.stages import Shape, Stages, as_tensors, has_gradient
from disttutor.strategies.stand_ins import Tail, inputs_of
from disttutor.traces import recorder

# Messages for which there is room before they are needed: they come in while the rank computes. With room for two only,
# a sender waits for its receiver: GPipe took up to twice as long on small layers (benchmarks/pipeline.py).
AHEAD = 8
At = tuple[int, int]                                    # (stage, micro-batch)


class PipelineRun:
    """One run of a plan on this rank.

    shapes[m][boundary]: of the tensors that pass it in micro-batch m. divisor: what each loss is divided by before its
    backward. surroundings(stage, m): a context for the forward (random stream, autocast); the objective is in that of
    stage 0 on every rank, so that what it draws for the first stage is what it draws for its loss. split: whether
    backward and backward_weight come apart.
    """

    def __init__(self, stages: Stages, messages: Messages, shapes: Sequence[Sequence[Sequence[Shape]]],
                 objective: Callable, microbatches: Sequence[Batch], *, divisor: float,
                 surroundings: Callable[[int, int], AbstractContextManager], device: torch.device, split: bool = False):
        self.stages, self.messages, self.shapes = stages, messages, shapes
        self.objective, self.microbatches, self.divisor = objective, microbatches, divisor
        self.surroundings, self.device, self.split = surroundings, device, split
        self.last = len(stages.modules) - 1
        self.losses: dict[int, tuple[Tensor, Any]] = {}             # micro-batch -> sum of its losses, their count
        self.given: dict[At, list[Tensor]] = {}                     # what a stage's forward is given
        self.kept: dict[At, tuple[list[Tensor], list[Tensor]]] = {}     # given and made: the activations in flight
        self.gradients: dict[At, list[Tensor | None]] = {}          # of what a stage made, from the stage behind
        self.reached: set[int] = set()                              # boundaries over which some gradient came back
        self.outgoing: dict[At, list[Tensor]] = {}                  # gradients for the stage before
        self.halves: dict[At, SplitBackward] = {}
        self.sent: dict[tuple[int, int], list[Any]] = {}            # activations under way: (boundary, micro-batch)
        self.do = {"forward": self.forward, "backward": self.backward, "backward_weight": self.backward_weight,
                   "send": self.send, "recv": self.recv}

    def execute(self, ops: Sequence[Op]) -> None:
        """All of `ops` that are a pipeline's, in their order."""
        self.to_come = deque(op for op in ops if op.kind in RECEIVES)
        self.expected: dict[tuple, list[Expected]] = {}
        for _ in range(AHEAD):
            self._make_room()
        for op in ops:
            if op.kind in self.do:
                self.do[op.kind](op)
        self.messages.finish()

    # ------------------------------------------------------------------------------------------------- computing

    def module(self, stage: int, m: int) -> torch.nn.Module:
        """The stage as micro-batch m goes through it."""
        return self.stages.modules[stage]

    def divided_by(self, count: Any) -> float:
        """What a loss that sums over `count` is divided by before its backward."""
        return self.divisor

    def forward(self, op: Op) -> None:
        stage, m = at = op.stage, op.microbatch
        log = recorder()
        begun = log.begin()
        module, microbatch = self.module(stage, m), self.microbatches[m]
        training = self.stages.model.training
        given = self.given.pop(at) if stage else None
        # What was received is needed as it is: for its gradient, and by the stage before if that is on this rank.
        passed = [t.clone() for t in given] if stage and self.stages.in_place[stage] else given
        with self.surroundings(0 if stage == self.last else stage, m):
            if stage == self.last:
                own = partial(self.surroundings, stage, m)
                model = module if passed is None else Tail(module, passed, own, training)
                total, count = sum_and_count(self.objective(model, microbatch))
                total = torch.as_tensor(total, device=self.device)  # a measure may give a plain number
                self.losses[m] = (total.detach(), count)
                made = [total / self.divided_by(count)]
            else:
                if given is None:                                   # the first stage takes it from the batch
                    given = passed = inputs_of(self.objective, microbatch, training)
                made = as_tensors(module(*passed), f"stage {stage}")
                self._check_shapes(stage, m, made)
                made = [t.to(dtype) for t, (_, dtype) in zip(made, self.shapes[m][stage], strict=True)]
        if torch.is_grad_enabled():
            self.kept[at] = given or [], made
        if stage < self.last and self.stages.rank_of[stage + 1] == self.stages.rank:
            self.given[stage + 1, m] = [_leaf(t.detach()) for t in made]
        elif stage < self.last:
            self.outgoing[stage, m] = [_as_it_lies(t.detach()) for t in made]
        log.end(begun, "forward", stage=stage, microbatch=m, flops=op.flops)

    def _check_shapes(self, stage: int, m: int, made: Sequence[Tensor]) -> None:
        """Raises ValueError if the stage behind expects something else: it would take the numbers in another order, or
        be torn down by a message of another size."""
        expected = [shape for shape, _ in self.shapes[m][stage]]
        if [tuple(t.shape) for t in made] != expected:
            raise ValueError(f"stage {stage} passes on {[tuple(t.shape) for t in made]} for micro-batch {m}, and of an "
                             f"input of this shape {expected} was expected: the shape of what goes between stages may "
                             "not depend on the numbers in it. Cut the model so that such a layer and the one behind "
                             "it are in one stage")

    def backward(self, op: Op) -> None:
        stage, m = at = op.stage, op.microbatch
        log = recorder()
        begun = log.begin()
        given, made = self.kept.pop(at)
        gradients = None if stage == self.last else self.gradients.pop(at)
        pairs = [(t, None if gradients is None else g) for t, g in zip(made, gradients or made, strict=True)
                 if t.requires_grad]
        outputs, into = [t for t, _ in pairs], None if gradients is None else [g for _, g in pairs]
        inputs = [t for t in given if t.requires_grad]
        found = self.back(at, outputs, inputs, into)
        if any(g is not None for g in found):
            self.reached.add(stage - 1)
        found = [torch.zeros_like(t) if g is None else g for t, g in zip(inputs, found, strict=True)]
        if stage > 0 and self.stages.rank_of[stage - 1] == self.stages.rank:
            self.gradients[stage - 1, m] = _among(found, self.kept[stage - 1, m][1])
        elif stage > 0:
            self.outgoing[stage, m] = [_as_it_lies(g) for g in found]
        log.end(begun, "backward", stage=stage, microbatch=m, flops=op.flops)

    def back(self, at: At, outputs: list[Tensor], inputs: list[Tensor],
             into: list[Tensor] | None) -> list[Tensor | None]:
        """Leave gradients in the weights (or, split, for later), and return those of `inputs`. into: the gradients of
        `outputs`; None for the loss."""
        if self.split:
            half = self.halves[at] = SplitBackward(outputs, inputs, self.stages.modules[at[0]].parameters())
            return half.input_gradients(into)
        if outputs:
            torch.autograd.backward(outputs, into)
        return [t.grad for t in inputs]

    def backward_weight(self, op: Op) -> None:
        log = recorder()
        begun = log.begin()
        self.halves.pop((op.stage, op.microbatch)).weight_gradients()
        log.end(begun, "backward_weight", stage=op.stage, microbatch=op.microbatch, flops=op.flops)

    # ------------------------------------------------------------------------------------------------- messages

    def send(self, op: Op) -> None:
        boundary, m = op.boundary, op.microbatch
        forward = self.stages.rank_of[boundary] == self.stages.rank
        tensors = self.outgoing.pop((boundary if forward else boundary + 1, m))
        works = self.messages.send(tensors, self.messages.group.ranks[op.peer], tag=self._tag(boundary, m, forward),
                                   boundary=boundary, microbatch=m)
        if forward:
            self.sent[boundary, m] = works

    def recv(self, op: Op) -> None:
        boundary, m = op.boundary, op.microbatch
        tensors = self.messages.receive(self.expected.pop(op.key), boundary=boundary, microbatch=m)
        self._make_room()
        if self.stages.rank_of[boundary] != self.stages.rank:
            self.given[boundary + 1, m] = [_leaf(t) for t in tensors]
            return
        for work in self.sent.pop((boundary, m), ()):                # its gradient is back: the activation has left
            self.messages.settle(work)
        self.gradients[boundary, m] = _among(tensors, self.kept[boundary, m][1])

    def _make_room(self) -> None:
        """Offer the network room for the next message that has none yet."""
        if not self.to_come:
            return
        op = self.to_come.popleft()
        backward = self.stages.rank_of[op.boundary] == self.stages.rank
        room = [torch.empty(shape, dtype=dtype, device=self.device)
                for shape, dtype in self.shapes[op.microbatch][op.boundary] if has_gradient(dtype) or not backward]
        self.expected[op.key] = self.messages.expect(room, self.messages.group.ranks[op.peer],
                                                     tag=self._tag(op.boundary, op.microbatch, not backward))

    def _tag(self, boundary: int, microbatch: int, forward: bool) -> int:
        """Messages between the same two ranks may overtake one another: each has a number of its own."""
        return (boundary * len(self.microbatches) + microbatch) * 2 + forward


def _as_it_lies(tensor: Tensor) -> Tensor:
    """Its numbers in one row of memory, as they will be sent: no view of others' (transposed, conjugated, negated)."""
    return tensor.resolve_conj().resolve_neg().contiguous()


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.requires_grad_() if has_gradient(tensor.dtype) and torch.is_grad_enabled() else tensor


def _among(gradients: Sequence[Tensor], made: Sequence[Tensor]) -> list[Tensor | None]:
    """The gradients, one for each tensor that has one, each at the place of its tensor among all that were made."""
    rest = iter(gradients)
    return [next(rest) if has_gradient(t.dtype) else None for t in made]
