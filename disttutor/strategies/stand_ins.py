"""What the objective sees instead of the model, which no rank of a pipeline has as a whole.

On the first stage it is asked what it gives the model; on the last one it gets what came through all stages.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn

from disttutor.strategies.shares import Batch
from disttutor.strategies.stages import as_tensors


class StandIn(nn.Module):
    """Stands for the whole model in the objective, which may call it and nothing else. training: its mode."""

    def __init__(self, training: bool = True):
        super().__init__()
        self.training = training

    def named_parameters(self, *how: Any, **more: Any) -> Any:
        raise ValueError("the objective asks the model for its weights, and no rank of a pipeline has them all: leave "
                         "them out of the objective (for a penalty on weights take the optimizer's weight_decay)")

    state_dict = named_parameters

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise AttributeError(f"the objective asks the model for {name!r}, and no rank of a pipeline has the whole "
                                 "model: it can be called, and asked whether it is training") from None


class Tail(StandIn):
    """Stands for the whole model in the objective of the last stage: what it is given has come through the others.

    surroundings: a context for the call.
    """

    def __init__(self, stage: nn.Module, received: Sequence[Tensor],
                 surroundings: Callable[[], AbstractContextManager] = nullcontext, training: bool = True):
        super().__init__(training)
        self.stage, self.received, self.surroundings, self.calls = stage, received, surroundings, 0

    def forward(self, *given: Any) -> Any:
        self.calls += 1
        if self.calls > 1:
            raise ValueError("the objective calls the model more than once; a pipeline passes each micro-batch through "
                             "its stages once")
        with self.surroundings():
            return self.stage(*self.received)


class Head(StandIn):
    """Stands for the whole model in the objective of the first stage, to see what the model is given."""

    def forward(self, *given: Any) -> Any:
        raise Caught(given)


class Caught(BaseException):
    """What the objective gives the model. No Exception, so that no objective takes it for a failure of the model."""

    def __init__(self, given: tuple[Any, ...]):
        super().__init__()
        self.given = given


def inputs_of(objective: Any, microbatch: Batch, training: bool = True) -> list[Tensor]:
    """What the objective gives the model (in this mode) of this micro-batch.

    Raises ValueError if it does not call the model, gives it anything but tensors, or wants their gradient.
    """
    try:
        objective(Head(training), microbatch)
    except Caught as caught:
        given = as_tensors(caught.given, "the objective")
        if any(t.requires_grad for t in given):
            raise ValueError("the objective gives the model an input that requires a gradient, which the ranks of a "
                             "pipeline do not bring back to it: train so with Single or DataParallel, or give the "
                             "model .detach()") from None
        return given
    raise ValueError("the objective does not call the model: a pipeline cannot see what its first stage is given")
