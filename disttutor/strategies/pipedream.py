"""PipeDream: a pipeline that is never emptied. Each stage updates its weights after every mini-batch's backward.

What is split: the layers, as in `Pipeline`; but the batches are whole mini-batches of one stream, several of which are
in flight at once. What is kept whole: nothing; each stage keeps a copy of its weights for each mini-batch in flight
(weight stashing), so that its backward meets the weights of its forward. What is sent when: activations and gradients,
as in `Pipeline`. How many bytes: the same.

Narayanan et al. 2019, "PipeDream: Generalized Pipeline Parallelism for DNN Training" (SOSP), section 3.3. It is not the
training of one process: with n stages, the gradient of mini-batch t is taken at weights that lack updates,
w(t+1) = w(t) - lr · grad f(w_1(t-n+1), w_2(t-n+2), ..., w_n(t)).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from disttutor.plans import Op, Plan, pipedream
from disttutor.strategies.pipeline import Pipeline
from disttutor.strategies.pipeline_run import PipelineRun
from disttutor.strategies.shares import Batch, move, samples_of
from disttutor.strategies.stages import gradients_of, nbytes_of
from disttutor.strategies.strategy import Objective, OptimizerFactory
from disttutor.traces import recorder


class PipeDream(Pipeline):
    """Asynchronous pipeline training on every rank of the mesh's pipeline axis, one stage a rank.

    Its arguments are those of `Pipeline` without schedule, microbatches and virtual_stages. Raises ValueError also for
    clip_norm (the whole gradient's length is known nowhere) and for weights that two stages share (each would have
    versions of its own).
    """

    def __init__(self, model: nn.Module, objective: Objective, optimizer: OptimizerFactory, **how: Any):
        if unfit := [name for name in ("schedule", "microbatches", "virtual_stages") if name in how]:
            raise TypeError(f"PipeDream has an order of its own and takes whole mini-batches: leave out {unfit[0]}")
        if how.get("clip_norm") is not None:
            raise ValueError(f"clip_norm is {how['clip_norm']}: a PipeDream stage updates its weights before other "
                             "stages have their gradients, so nobody knows the whole gradient's length")
        super().__init__(model, objective, optimizer, schedule="1F1B", microbatches=1, **how)
        if self.stages.tied:
            name = next(iter(self.stages.tied))
            raise ValueError(f"{name!r} lies on several stages, whose versions of it would drift apart: PipeDream "
                             "needs weights that one stage has for itself (make the model untied)")

    def step(self, batch: Batch) -> float:
        """One mini-batch all the way and back: the training of one process, as nothing else is in flight."""
        return self.stream([batch])[0]

    def step_local(self, microbatches: Sequence[Batch], samples: int | None = None) -> float:
        raise TypeError("PipeDream updates after every mini-batch: give them to stream(batches)")

    def stream(self, batches: Sequence[Batch]) -> list[float]:
        """One update of each stage for every mini-batch, several of which are in flight; the mean loss of each, as its
        forward found it. Every rank must be given the same. At the end the pipeline is empty.

        Raises ValueError for no mini-batch, for one without samples, for a stage that detaches its input, and if ranks
        were given other ones.
        """
        sizes = [samples_of(b) for b in batches]
        if not sizes or not all(sizes):
            raise ValueError(f"a stream takes one or more mini-batches, each with samples; these have {sizes}")
        log = recorder()
        log.next_step(self.updates)
        shapes, first = [self._shapes_of(b) for b in batches], self.updates
        messages, plan = self._meet("stream", batches, shapes), self.plan_stream(batches)
        run = StashingRun(self.stages, messages, shapes, self.objective,
                          [move(b, self.device) for b in batches], divisor=1.0, device=self.device,
                          surroundings=lambda stage, m: self._surroundings(stage, 0, first + m), update=self._update)
        run.execute(plan.ops[self.pipe.index])
        return self._losses(run, len(batches))

    def plan_stream(self, batches: Sequence[Batch]) -> Plan:
        """What every rank does in `stream(batches)`, before it is done."""
        shapes = [self._shapes_of(b) for b in batches]
        plan = pipedream(self.pipe.size, len(batches), work=self._work, samples=[samples_of(b) for b in batches],
                         boundary_bytes=lambda boundary, m: nbytes_of(shapes[m][boundary]),
                         gradient_bytes=lambda boundary, m: nbytes_of(gradients_of(shapes[m][boundary])))
        plan.check()
        return plan

    def _update(self) -> None:
        self.optimizer.step()
        if self.schedule:
            self.schedule.step()
        self.updates += 1

    def _losses(self, run: PipelineRun, minibatches: int) -> list[float]:
        rows = torch.zeros(minibatches, 2, dtype=torch.float64, device=self.device)
        for m, (total, count) in run.losses.items():
            rows[m, 0], rows[m, 1] = total, count
        if self.pipe.size > 1:
            self._sum(rows, self.pipe)
        return [total / count if count else 0.0 for total, count in rows.tolist()]


class StashingRun(PipelineRun):
    """The interpreter with a version of the weights for each mini-batch in flight. update(): an optimizer's step."""

    def __init__(self, *parts: Any, update: Any, **more: Any):
        super().__init__(*parts, **more)
        self.apply_update = update
        self.do["update"] = self.update
        self.latest: dict[str, Tensor] | None = None        # shared by all forwards between two updates
        self.stashed: dict[int, dict[str, Tensor]] = {}     # mini-batch -> the weights of its forward

    def module(self, stage: int, m: int) -> nn.Module:
        module = self.stages.modules[stage]
        if self.latest is None:
            self.latest = {name: p.detach().clone().requires_grad_() for name, p in module.named_parameters()
                           if p.requires_grad}
        self.stashed[m] = self.latest
        return Version(module, self.latest)

    def divided_by(self, count: Any) -> float:
        return max(1, float(count))         # each update is of one mini-batch, whose count the last stage knows

    def back(self, at: tuple[int, int], outputs: list[Tensor], inputs: list[Tensor],
             into: list[Tensor] | None) -> list[Tensor | None]:
        stage, m = at
        weights = self.stashed.pop(m)
        wanted = [*inputs, *weights.values()]
        found = (torch.autograd.grad(outputs, wanted, into, allow_unused=True) if outputs and wanted
                 else [None] * len(wanted))
        own = dict(self.stages.modules[stage].named_parameters())
        for name, gradient in zip(weights, found[len(inputs):], strict=True):
            own[name].grad = gradient
        back = list(found[:len(inputs)])
        if stage and inputs and all(gradient is None for gradient in back):
            # The stage before would update by zeros, and decay, before anybody could tell it to leave its weights.
            raise ValueError(f"stage {stage} has no gradient for what it was given (something in it detaches its "
                             "input): in one process the layers before it would not be trained. PipeDream cannot "
                             "leave them alone; Pipeline does")
        return back

    def update(self, op: Op) -> None:
        log = recorder()
        begun = log.begin()
        self.apply_update()
        self.latest = None
        log.end(begun, "update", stage=op.stage, microbatch=op.microbatch)


class Version(nn.Module):
    """A stage with other weights than its own."""

    def __init__(self, stage: nn.Module, weights: dict[str, Tensor]):
        super().__init__()
        self.stage, self.weights = stage, weights

    def forward(self, *given: Any) -> Any:
        return functional_call(self.stage, self.weights, given)
