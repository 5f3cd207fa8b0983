"""A model cut into stages, the layers of each rank, and what passes between them.

Every rank builds the whole model, keeps the weights of its own stages and lets go of the others. A twin without memory
(on torch's meta device) stays whole on every rank: from it the shape of every message is known before one is sent.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from disttutor.plans import StageWork, check_cut, spans, split_by_cost, split_evenly

Shape = tuple[tuple[int, ...], torch.dtype]
KEPT = 256                  # shapes of micro-batches that are remembered
# Layers whose forward changes their buffers.
STATISTICS = (nn.modules.batchnorm._NormBase, nn.utils.parametrizations._SpectralNorm)


class Stage(nn.Sequential):
    """Layers one after the other, each given what the one before has made: a tensor, or a tuple of them.

    spread: whether a tuple is given to a layer as several arguments (as one in a torch.nn.Sequential). like: what the
    stage before has made, without memory, from which it is known how the tensors that come belong together.
    """

    spread = True
    like: Any = None

    def forward(self, *given: Any) -> Any:
        first, *others = self
        passed = first(*given) if self.like is None else self._next(first, _together(given, self.like))
        for layer in others:
            passed = self._next(layer, passed)
        return passed

    def _next(self, layer: nn.Module, passed: Any) -> Any:
        return layer(*passed) if self.spread and isinstance(passed, tuple) else layer(passed)


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The layers that, one after the other, are the model: those of `model.layers_in_order()`, or of a Sequential.

    Raises TypeError for a model that has neither, and for a Sequential that does more than its layers do.
    """
    if hasattr(model, "layers_in_order"):
        return list(model.layers_in_order())
    if isinstance(model, nn.Sequential):
        if type(model).forward is not nn.Sequential.forward:
            raise TypeError(f"a {type(model).__name__} has a forward of its own, of which its layers one after the "
                            "other know nothing: put it as one layer into a torch.nn.Sequential, or give it a method "
                            "layers_in_order() that returns the modules which, one after the other, are the model")
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

    rank_of: the rank of each stage. in_place: whether a stage has a layer that may write over its input, as far as is
    known before the first shapes are asked for. owners: for
    each tensor of the model's state, the ranks that hold it, in order; what lies in no stage is the first stage's
    rank's. last_use: for each parameter, the last stage that holds it.
    """

    def __init__(self, model: nn.Module, stages: list[Stage], rank_of: Sequence[int], rank: int):
        self.model, self.modules, self.rank_of, self.rank = model, stages, list(rank_of), rank
        self.mine = [stage for stage, holder in enumerate(rank_of) if holder == rank]
        _check_statistics(model, stages)
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
        for module in stages:
            module.spread = hasattr(model, "layers_in_order")
        self._twin = _without_memory(stages)
        self._known: dict[tuple, tuple[list[list[Shape]], list[Any]]] = {}

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
        """Shapes and types of the tensors that pass each boundary, for what the whole model (in its mode) is given.

        Raises ValueError where a layer gives anything but tensors, or cannot do without numbers.
        """
        key = self.model.training, *((tuple(t.shape), t.dtype) for t in inputs)
        if key not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = self._ask_twin(inputs)
        shapes, likes = self._known[key]
        for module, like in zip(self.modules[1:], likes, strict=True):
            module.like = like
        return shapes

    def _ask_twin(self, inputs: Sequence[Tensor]) -> tuple[list[list[Shape]], list[Any]]:
        """Of each boundary, the shapes and types, and what passed it, without memory."""
        shapes, likes = [], []
        with torch.inference_mode(False), torch.no_grad():      # in inference nobody counts what is written over
            passed: Any = [torch.empty(t.shape, dtype=t.dtype, device="meta") for t in inputs]
            for stage, (module, real) in enumerate(zip(self._twin, self.modules, strict=True)):
                for twin, part in zip(module.modules(), real.modules(), strict=False):
                    twin.training = part.training
                before = [t._version for t in passed]
                try:
                    made = module(*passed)
                except Exception as error:
                    if stage == len(self._twin) - 1:        # its shapes are not asked for
                        break
                    if "meta" not in str(error).lower():
                        raise
                    raise ValueError(
                        f"the shape of what stage {stage} passes on must be known before anything is sent, and asked "
                        f"without numbers (on torch's meta device) it fails with {type(error).__name__}: {error}. Make "
                        "constants buffers, what forward makes with device=x.device, and shapes not depend on numbers; "
                        "or cut the model so that such a layer is in the last stage") from error
                self.in_place[stage] |= before != [t._version for t in passed]
                if stage < len(self._twin) - 1:
                    passed = as_tensors(made, f"stage {stage}")
                    shapes.append([(tuple(t.shape), t.dtype) for t in passed])
                    self._twin[stage + 1].like = made
                    likes.append(made)
        return shapes, likes

    def _named_owners(self, model: nn.Module) -> list[tuple[str, tuple[int, ...]]]:
        return [(name, self.owners[name]) for name, _ in model.named_parameters()]


def nbytes_of(shapes: Sequence[Shape]) -> int:
    """Bytes of the tensors that pass a boundary."""
    return sum(torch.Size(shape).numel() * dtype.itemsize for shape, dtype in shapes)


def gradients_of(shapes: Sequence[Shape]) -> list[Shape]:
    """Those for which a gradient comes back."""
    return [shape for shape in shapes if has_gradient(shape[1])]


def has_gradient(dtype: torch.dtype) -> bool:
    """Whether a gradient comes back for a tensor of this type that passes a boundary."""
    return dtype.is_floating_point or dtype.is_complex


def as_tensors(passed: Any, who: str) -> list[Tensor]:
    """One tensor or several as a list. Raises ValueError for anything else."""
    tensors = list(passed) if isinstance(passed, tuple | list) else [passed]
    for t in tensors:
        if not isinstance(t, Tensor):
            within = f" within a {type(passed).__name__}" if isinstance(passed, type(t)) and t is not passed else ""
            raise ValueError(f"{who} passes on a {type(t).__name__}{within}; between stages go tensors, or tuples of "
                             "them")
    return tensors


def _without_memory(stages: list[Stage]) -> list[Stage]:
    """Copies of the stages whose weights have a shape and nothing else."""
    memo: dict[int, Any] = {}
    for module in stages:
        for p in module.parameters():
            memo[id(p)] = nn.Parameter(torch.empty_like(p, device="meta"), requires_grad=False)
        for b in module.buffers():
            memo[id(b)] = torch.empty_like(b, device="meta")
        for part in module.modules():
            for t in _tensors_in(list(vars(part).values())):    # in a plain attribute, such as a mask
                memo[id(t)] = torch.empty_like(t, device="meta")
    return deepcopy(stages, memo)


def _tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in lists, tuples and dicts that no module has registered."""
    if isinstance(value, Tensor):
        if not isinstance(value, nn.Parameter):
            yield value
    elif isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(part)


def _together(tensors: Sequence[Tensor], like: Any) -> Any:
    """The tensors as what they were before they were sent: one, a tuple or a list of them."""
    if isinstance(like, Tensor):
        return tensors[0]
    return type(like)(*tensors) if hasattr(like, "_fields") else type(like)(tensors)


def _check_statistics(model: nn.Module, stages: Sequence[nn.Module]) -> None:
    """Raises ValueError for running statistics that several stages update, each its own copy or at its own time."""
    seen: dict[int, int] = {}
    names = {id(part): name for name, part in model.named_modules()}
    for stage, module in enumerate(stages):
        for part in module.modules():
            if isinstance(part, STATISTICS) and any(True for _ in part.buffers()):
                if seen.setdefault(id(part), stage) != stage:
                    raise ValueError(f"{names.get(id(part), type(part).__name__)!r} is in the stages {seen[id(part)]} "
                                     f"and {stage}, and each would have running statistics of its own: make a "
                                     f"{type(part).__name__} for each, or cut the model so that one stage has both")
