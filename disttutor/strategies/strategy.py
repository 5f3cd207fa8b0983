"""What all strategies share: one training step on a global batch, and the full state back.

A step is: every share of the batch forward and backward, gradients summed, divided once by the number of samples that
the whole batch holds, clipped, applied. How shares lie on ranks, and what is sent when, is each strategy's own.

The objective returns the SUM of the losses and the number of samples (or valid tokens) that it sums over. Only so is
the mean right when shares, micro-batches or token counts differ.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from disttutor.models import evaluating
from disttutor.strategies.checks import (
    check_autocast,
    check_clip_norm,
    check_state,
    check_steps,
    sum_and_count,
    whole_number,
)
from disttutor.strategies.random_streams import random_stream
from disttutor.strategies.shares import Batch, move, samples_of, split
from disttutor.traces import recorder

# What travels with the gradients to other ranks: this rank's sum of losses and their count, what its gradients are
# divided by so far, and its number of updates. The last two must be the same on every rank.
Header = tuple[Tensor, Any, int, int]
Objective = Callable[[nn.Module, Batch], tuple[Tensor, Any]]
OptimizerFactory = Callable[[list[tuple[str, Tensor]]], torch.optim.Optimizer]
ScheduleFactory = Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]

# Floating-point operations for each weight and sample, as in dense layers: a multiplication and an addition in forward,
# twice that in backward (Kaplan et al. 2020, arXiv 2001.08361, section 2.1).
FORWARD_WORK, BACKWARD_WORK = 2.0, 4.0


class Strategy:
    """One replica (or part) of a model in training; `Single` and its distributed siblings differ in `_exchange`.

    model: trained in place. objective: (model, batch) -> (sum of losses, count). optimizer: called with the model's
    named parameters, e.g. `partial(torch.optim.SGD, lr=0.1)`. schedule: called with the optimizer; advanced once an
    update, whatever the number of ranks or micro-batches. accumulate: micro-batches that each rank cuts its share into.
    clip_norm: upper limit for the 2-norm of the whole gradient. autocast: e.g. torch.bfloat16. seed: of the dropout
    streams; None leaves torch's own generator alone.

    Raises ValueError for sizes that cannot be, TypeError for an objective or optimizer that cannot be called, and for
    an optimizer or schedule whose step needs an argument (LBFGS, ReduceLROnPlateau).
    """

    ranks = 1        # among how many ranks the batch is shared
    index = 0        # which of them this is

    def __init__(self, model: nn.Module, objective: Objective, optimizer: OptimizerFactory, *, accumulate: int = 1,
                 clip_norm: float | None = None, schedule: ScheduleFactory | None = None,
                 autocast: torch.dtype | None = None, seed: int | None = 0):
        whole_number("accumulate", accumulate, least=1)
        if seed is not None:
            whole_number("seed", seed)
        check_clip_norm(clip_norm, model)
        check_autocast(autocast)
        for what, given in (("objective", objective), ("optimizer", optimizer)):
            if not callable(given):
                raise TypeError(f"the {what} must be callable, not {type(given).__name__}")
        self.model, self.objective = model, objective
        named = self._trained_here(model)
        self.parameters = [p for _, p in named]          # looked up once: walking the modules costs more than a bucket
        self.accumulate, self.clip_norm, self.autocast, self.seed = accumulate, clip_norm, autocast, seed
        self.optimizer = optimizer(named)
        self.schedule = schedule(self.optimizer) if schedule else None
        check_steps(self.optimizer, self.schedule)
        self.updates = 0
        self.grad_norm: float | None = None

    def _trained_here(self, model: nn.Module) -> list[tuple[str, nn.Parameter]]:
        """The parameters that this rank updates, by name."""
        return list(model.named_parameters())

    @property
    def device(self) -> torch.device:
        """Where the model lies."""
        return self.parameters[0].device if self.parameters else torch.device("cpu")

    def step(self, batch: Batch) -> float:
        """One update on a global batch, the same on every rank; the mean loss over it before the update.

        The batch is cut into ranks x accumulate shares (3, 3, 2, 2 for 10 samples in 4); this rank works on its own.
        """
        shares = split(batch, self.ranks * self.accumulate)
        mine = shares[self.index * self.accumulate:(self.index + 1) * self.accumulate]
        return self._train(mine, samples_of(batch))

    def step_local(self, microbatches: Sequence[Batch], samples: int | None = None) -> float:
        """One update on micro-batches that each rank brings itself; the mean loss over those of all ranks.

        samples: how many samples all ranks' micro-batches hold together, if known; saves a pass over the gradients
        where the objective counts samples. Raises ValueError without micro-batches.
        """
        return self._train(microbatches, samples)

    def _train(self, microbatches: Sequence[Batch], samples: int | None) -> float:
        if not microbatches:
            raise ValueError("a step needs at least one micro-batch (an empty one will do)")
        log = recorder()
        log.next_step(self.updates)
        self.optimizer.zero_grad(set_to_none=True)
        divisor = max(1, samples or 1)
        total, count = self._forward_backward(microbatches, divisor)
        total, count = self._exchange(total, count)
        begun = log.begin()
        self._apply(divisor, count)
        log.end(begun, "update")
        self.updates += 1
        return total / count if count else 0.0

    def _forward_backward(self, microbatches: Sequence[Batch], divisor: int) -> tuple[Tensor, Any]:
        """Leave in `.grad` the gradients of the sum of losses / divisor; return that sum and its count."""
        log = recorder()
        total, count = torch.zeros((), device=self.device, dtype=torch.float64), 0
        for m, microbatch in enumerate(microbatches):
            microbatch = move(microbatch, self.device)
            samples = samples_of(microbatch)
            log.microbatch = m                             # for layers that meet other ranks inside the model
            begun = log.begin()
            summed, counted = self._forward(microbatch, samples, m)
            log.end(begun, "forward", microbatch=m, flops=self.forward_work(samples))
            self._backward(summed / divisor, samples, m, last=m == len(microbatches) - 1,
                           header=(total + summed.detach(), count + counted, divisor, self.updates))
            total, count = total + summed.detach(), count + counted
        return total, count

    def _forward(self, microbatch: Batch, samples: int, m: int) -> tuple[Tensor, Any]:
        if not samples and not self._joins_empty():
            return torch.zeros((), device=self.device), 0
        share = self.index * self.accumulate + m
        stream = nullcontext() if self.seed is None else random_stream(self.device, self.seed, self.updates, share)
        cast = torch.autocast(self.device.type, self.autocast) if self.autocast else nullcontext()
        with stream, cast:
            return sum_and_count(self.objective(self.model, microbatch))

    def _backward(self, loss: Tensor, samples: int, m: int, last: bool, header: Header) -> None:
        log = recorder()
        begun = log.begin()
        if loss.requires_grad:
            loss.backward()
        log.end(begun, "backward", microbatch=m, flops=self.backward_work(samples))

    def _joins_empty(self) -> bool:
        """Whether a rank without samples must run the model all the same (it meets other ranks inside it)."""
        return False

    def _exchange(self, total: Tensor, count: Any) -> tuple[float, float]:
        """Sum the gradients of all ranks; return the sums of `total` and `count` over all ranks."""
        return float(total), float(count)

    def _apply(self, divisor: int, count: float) -> None:
        """Turn gradients of sum/divisor into gradients of the mean, clip them, update the weights."""
        if count and count != divisor:
            for p in self.parameters:
                if p.grad is not None:
                    p.grad.mul_(divisor / count)
        if self.clip_norm is not None:
            self.grad_norm = self._clip(divisor / count if count else 1.0)
        self.optimizer.step()
        if self.schedule:
            self.schedule.step()

    def _clip(self, scale: float) -> float:
        """Shorten the whole gradient to `clip_norm` if it is longer; its length before. scale: what the gradients were
        multiplied by since the exchange."""
        return float(nn.utils.clip_grad_norm_(self.parameters, self.clip_norm))

    def forward_work(self, samples: int) -> float:
        """Floating-point operations of one forward, for slow motion and prediction."""
        return FORWARD_WORK * samples * sum(p.numel() for p in self.parameters)

    def backward_work(self, samples: int) -> float:
        """Floating-point operations of one backward, for slow motion and prediction."""
        return BACKWARD_WORK * samples * sum(p.numel() for p in self.parameters if p.requires_grad)

    def full_state(self) -> dict[str, Any]:
        """The whole state, the same on every rank, to save or to load on any number of ranks."""
        return {"model": {k: v.detach().clone() for k, v in self.model.state_dict().items()},
                "optimizer": deepcopy(self.optimizer.state_dict()),
                "optimizer kind": type(self.optimizer).__name__,
                "schedule": deepcopy(self.schedule.state_dict()) if self.schedule else None,
                "updates": self.updates}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a `full_state`, whatever strategy and number of ranks it came from. On every rank.

        Raises ValueError for what is no such state, or is one of another optimizer, or of a training with a schedule
        where this has none (or the reverse).
        """
        check_state(state, self.optimizer, self.schedule)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(deepcopy(state["optimizer"]))
        if self.schedule:
            self.schedule.load_state_dict(deepcopy(state["schedule"]))
        self.updates = state["updates"]

    @torch.no_grad()
    def evaluate(self, measure: Objective, data: Batch, batch_size: int = 1024) -> float:
        """Mean of `measure` (a sum and a count, like an objective) over `data`, each sample once.

        It is the same on every rank. The model is in evaluation mode meanwhile, and all ranks hold the same buffers.
        """
        whole_number("batch_size", batch_size, least=1)
        total, count = torch.zeros((), device=self.device, dtype=torch.float64), 0
        mine = split(data, self.ranks)[self.index]
        pieces = max(1, -(-samples_of(mine) // batch_size))
        with evaluating(self.model):
            for piece in split(mine, pieces):
                if samples_of(piece):
                    summed, counted = sum_and_count(measure(self.model, move(piece, self.device)))
                    total, count = total + summed, count + counted
        total, count = self._sum_over_ranks(total, count)
        return total / count if count else 0.0

    def _sum_over_ranks(self, total: Tensor, count: Any) -> tuple[float, float]:
        return float(total), float(count)
