"""A model cut into stages, the layers of each rank, and what passes between them.

Every rank builds the whole model, keeps the weights of its own stages and lets go of the others. A twin without memory
(on torch's meta device) stays whole on every rank: from it the shape of every message is known before one is sent.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from disttutor.plans import StageWork, check_cut, spans, split_by_cost, split_evenly
from disttutor.strategies.shares import Batch

Shape = tuple[tuple[int, ...], torch.dtype]


class Stage(nn.Sequential):
    """Layers one after the other, each given what the one before has made: a tensor, or a tuple of them."""

    def forward(self, *given: Any) -> Any:
        passed: Any = given
        for layer in self:
            passed = layer(*passed) if isinstance(passed, tuple) else layer(passed)
        return passed


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The layers that, one after the other, are the model: those of `model.layers_in_order()`, or of a Sequential.

    Raises TypeError for a model that has neither.
    """
    if hasattr(model, "layers_in_order"):
        return list(model.layers_in_order())
    if isinstance(model, nn.Sequential):
        return list(model)
    raise TypeError(f"a {type(model).__name__} cannot be cut into stages: make it a torch.nn.Sequential, or give it a "
                    "method layers_in_order() that returns the modules which, one after the other, are the model")


def cut_into(layers: Sequence[nn.Module], stages: int, cut: str | Sequence[int]) -> list[Stage]:
    """The stages: `cut` is "evenly" (sizes differ by at most one), "by weights" (the stage with the most parameters
    has as few as can be), or the sizes by hand. Raises ValueError for a cut that cannot be, TypeError for none."""
    if cut == "evenly":
        sizes = split_evenly(len(layers), stages)
    elif cut == "by weights":
        sizes = split_by_cost([sum(p.numel() for p in layer.parameters()) for layer in layers], stages)
    elif isinstance(cut, str):
        raise ValueError(f"unknown cut {cut!r}; cuts that work: 'evenly', 'by weights', or the number of layers of "
                         "each stage")
    elif not isinstance(cut, Sequence):
        raise TypeError(f"cut is {cut!r} of type {type(cut).__name__}; it must be 'evenly', 'by weights', or the "
                        "number of layers of each stage")
    else:
        sizes = check_cut(cut, len(layers))
        if len(sizes) != stages:
            raise ValueError(f"the cut {tuple(sizes)} has {len(sizes)} stages, but the schedule has {stages}; give "
                             f"{stages} sizes that add up to {len(layers)} layers")
    return [Stage(*layers[start:stop]) for start, stop in spans(sizes)]


def check_stage_work(stages: int, work: Any) -> StageWork | list[StageWork]:
    """`work`, if it is one StageWork or one for each stage. Raises TypeError or ValueError if it is not."""
    if isinstance(work, StageWork):
        return work
    if not isinstance(work, Sequence) or not all(isinstance(w, StageWork) for w in work):
        raise TypeError(f"stage_work is {work!r} of type {type(work).__name__}; it must be a StageWork or one for each "
                        "stage")
    if len(work) != stages:
        raise ValueError(f"stage_work has {len(work)} entries, but the schedule has {stages} stages; give one for each")
    return list(work)


class Stages:
    """A model's stages as this rank sees them: `mine` are kept, the others' weights are let go of.

    rank_of: the rank of each stage. in_place: whether a stage has a layer that may write over its input. owners: for
    each tensor of the model's state, the ranks that hold it, in order; what lies in no stage is the first stage's
    rank's. last_use: for each parameter, the last stage that holds it.
    """

    def __init__(self, model: nn.Module, stages: list[Stage], rank_of: Sequence[int], rank: int):
        self.model, self.modules, self.rank_of, self.rank = model, stages, list(rank_of), rank
        self.mine = [stage for stage, holder in enumerate(rank_of) if holder == rank]
        holders: dict[int, set[int]] = {}
        for stage, module in enumerate(stages):
            for tensor in (*module.parameters(), *module.buffers()):
                holders.setdefault(id(tensor), set()).add(rank_of[stage])
        last = {id(p): stage for stage, module in enumerate(stages) for p in module.parameters()}
        self.last_use = {name: last.get(id(p), 0) for name, p in model.named_parameters()}
        state = model.state_dict(keep_vars=True)
        self.owners = {name: tuple(sorted(holders.get(id(t), {rank_of[0]}))) for name, t in state.items()}
        self.shapes = {name: (tuple(t.shape), t.dtype) for name, t in state.items()}
        self.tied = {name: owners for name, owners in self._named_owners(model) if len(owners) > 1}
        self.work = [sum(p.numel() for p in module.parameters()) for module in stages]
        self.in_place = [any(getattr(part, "inplace", False) for part in module.modules()) for module in stages]
        self._twin = _without_memory(stages)

    def let_go(self) -> None:
        """Free the weights and buffers of other ranks' stages."""
        for name, tensor in self.model.state_dict(keep_vars=True).items():
            if self.rank not in self.owners[name]:
                tensor.data = tensor.new_empty(0)

    def own_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """This rank's parameters with their names in the whole model, each once."""
        return [(name, p) for name, p in self.model.named_parameters() if self.rank in self.owners[name]]

    def forget_zeros(self, reached: Sequence[float]) -> None:
        """reached: for each boundary, whether a gradient came back over it. Where none did (a layer behind detaches
        its input), zeros went: in one process the weights before it have no gradient at all, and no decay either."""
        cut_off = max((boundary for boundary, ranks in enumerate(reached) if not ranks), default=-1)
        for name, p in self.own_parameters() if cut_off >= 0 else ():
            if self.last_use[name] <= cut_off:
                p.grad = None

    def boundary_shapes(self, inputs: Sequence[Tensor]) -> list[list[Shape]]:
        """Shapes and types of the tensors that pass each boundary, for what the whole model is given.

        Raises ValueError where a layer gives anything but tensors.
        """
        passed: Any = [torch.empty(t.shape, dtype=t.dtype, device="meta") for t in inputs]
        shapes = []
        with torch.no_grad():
            for stage, module in enumerate(self._twin[:-1]):
                passed = as_tensors(module(*passed), f"stage {stage}")
                shapes.append([(tuple(t.shape), t.dtype) for t in passed])
        return shapes

    def _named_owners(self, model: nn.Module) -> list[tuple[str, tuple[int, ...]]]:
        return [(name, self.owners[name]) for name, _ in model.named_parameters()]


class Tail(nn.Module):
    """Stands for the whole model in the objective of the last stage: what it is given has come through the others."""

    def __init__(self, stage: nn.Module, received: Sequence[Tensor]):
        super().__init__()
        self.stage, self.received, self.calls = stage, received, 0

    def forward(self, *given: Any) -> Any:
        self.calls += 1
        if self.calls > 1:
            raise ValueError("the objective calls the model more than once; a pipeline passes each micro-batch through "
                             "its stages once")
        return self.stage(*self.received)


class Head(nn.Module):
    """Stands for the whole model in the objective of the first stage, to see what the model is given."""

    def forward(self, *given: Any) -> Any:
        raise Caught(given)


class Caught(BaseException):
    """What the objective gives the model. No Exception, so that no objective takes it for a failure of the model."""

    def __init__(self, given: tuple[Any, ...]):
        super().__init__()
        self.given = given


def inputs_of(objective: Any, microbatch: Batch) -> list[Tensor]:
    """What the objective gives the model of this micro-batch. Raises ValueError if it does not call the model, or gives
    it anything but tensors."""
    try:
        objective(Head(), microbatch)
    except Caught as caught:
        return as_tensors(caught.given, "the objective")
    raise ValueError("the objective does not call the model: a pipeline cannot see what its first stage is given")


def as_tensors(passed: Any, who: str) -> list[Tensor]:
    """One tensor or several as a list. Raises ValueError for anything else."""
    tensors = list(passed) if isinstance(passed, tuple | list) else [passed]
    for t in tensors:
        if not isinstance(t, Tensor):
            raise ValueError(f"{who} passes on a {type(t).__name__}; between stages go tensors, or tuples of them")
    return tensors


def _without_memory(stages: list[Stage]) -> list[Stage]:
    """Copies of the stages whose weights have a shape and nothing else, in evaluation mode."""
    memo: dict[int, Any] = {}
    for module in stages:
        for p in module.parameters():
            memo[id(p)] = nn.Parameter(torch.empty_like(p, device="meta"), requires_grad=False)
        for b in module.buffers():
            memo[id(b)] = torch.empty_like(b, device="meta")
        for part in module.modules():
            for t in vars(part).values():               # a plain attribute, such as a mask
                if isinstance(t, Tensor):
                    memo[id(t)] = torch.empty_like(t, device="meta")
    return [module.eval() for module in deepcopy(stages, memo)]
