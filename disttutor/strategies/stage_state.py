"""The whole state of a model whose stages lie on several ranks: gathered as one process would have it, and given back.

An optimizer's state is numbered by its parameters. Which number a parameter has in one process is asked of an optimizer
that is made for the whole model, of weights without memory.
"""

from copy import deepcopy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from disttutor.strategies.checks import check_steps
from disttutor.strategies.groups import Group
from disttutor.strategies.stages import Stages


class StageState:
    """Gathers and hands out the state of `model`. Made before the ranks let go of each other's weights."""

    def __init__(self, model: nn.Module, stages: Stages, pipe: Group, optimizer: Any):
        self.model, self.stages, self.pipe = model, stages, pipe
        twins = [(name, nn.Parameter(torch.empty_like(p, device="meta"), requires_grad=p.requires_grad))
                 for name, p in model.named_parameters()]
        made = optimizer(twins)
        check_steps(made, None)
        self.layout = _names(made, {id(p): name for name, p in twins})

    def check_groups(self, optimizer: torch.optim.Optimizer) -> None:
        """Raises ValueError for an optimizer of this rank with other groups than that of the whole model, by whose
        number a learning-rate schedule goes."""
        if (mine := len(optimizer.param_groups)) != (n := len(self.layout)):
            raise ValueError(f"for the weights of this rank the optimizer has {mine} groups, and for those of the "
                             f"whole model {n}, to each of which the learning-rate schedule belongs: make the same "
                             "groups everywhere, also where one is empty")

    def whole(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """"model" and "optimizer" of the full state, the same on every rank. On every rank."""
        return {"model": self._tensors(), "optimizer": self._optimizer(optimizer)}

    def load(self, state: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
        """This rank's part of a full state into its weights and its optimizer.

        Raises ValueError if the state is of another model, or of other parameter groups.
        """
        saved, mine = state["model"], self.model.state_dict(keep_vars=True)
        if saved.keys() != mine.keys():
            raise ValueError(f"the saved state is of another model: it differs in {sorted(saved.keys() ^ mine.keys())}")
        for name, (shape, _) in self.stages.shapes.items():
            if tuple(saved[name].shape) != shape:
                raise ValueError(f"the saved state is of another model: {name!r} is {tuple(saved[name].shape)} there "
                                 f"and {shape} here")
        held, wanted = ([len(group["params"]) for group in state["optimizer"]["param_groups"]],
                        [len(group) for group in self.layout])
        if held != wanted:
            raise ValueError(f"the saved state is of another optimizer: it has parameter groups of {held} parameters, "
                             f"and this strategy's optimizer of {wanted}")
        with torch.no_grad():
            for name, tensor in mine.items():
                if self.pipe.index in self.stages.owners[name]:
                    tensor.copy_(saved[name])
        optimizer.load_state_dict(self._part(state["optimizer"], optimizer))

    def _tensors(self) -> dict[str, Tensor]:
        """Every tensor of the model's state, from the first rank that holds it; those of one rank travel together."""
        mine, out = self.model.state_dict(), {}
        for owner in range(self.pipe.size):
            names = [name for name, owners in self.stages.owners.items() if owners[0] == owner]
            for dtype in dict.fromkeys(self.stages.shapes[name][1] for name in names):
                alike = [name for name in names if self.stages.shapes[name][1] == dtype]
                sizes = [torch.Size(self.stages.shapes[name][0]).numel() for name in alike]
                flat = (torch.cat([mine[name].reshape(-1) for name in alike]) if owner == self.pipe.index
                        else torch.empty(sum(sizes), dtype=dtype, device=_device(mine)))
                if self.pipe.size > 1:
                    dist.broadcast(flat, src=self.pipe.ranks[owner], group=self.pipe.handle)
                for name, piece in zip(alike, flat.split(sizes), strict=True):
                    out[name] = piece.view(self.stages.shapes[name][0]).clone()
        return {name: out[name] for name in self.stages.owners}

    def _optimizer(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The optimizer's state as that of one process for the whole model."""
        names = {id(p): name for name, p in self.stages.own_parameters()}
        state = {names[id(p)]: values for p, values in optimizer.state.items() if id(p) in names}
        options = [({k: v for k, v in group.items() if k not in ("params", "param_names")},
                    [names[id(p)] for p in group["params"] if id(p) in names]) for group in optimizer.param_groups]
        everybodys: list[Any] = [(state, options)]
        if self.pipe.size > 1:
            everybodys = [None] * self.pipe.size
            dist.all_gather_object(everybodys, (state, options), group=self.pipe.handle)
        states, option_of = {}, {}
        for theirs, groups in reversed(everybodys):
            states |= theirs
            option_of |= {name: values for values, held in groups for name in held}
        packed: dict[str, Any] = {"state": {}, "param_groups": []}
        number = 0
        for held in self.layout:
            indices = list(range(number, number + len(held)))
            number += len(held)
            packed["state"] |= {i: deepcopy(states[name]) for i, name in zip(indices, held, strict=True)
                                if name in states}
            packed["param_groups"].append(deepcopy(option_of[held[0]] if held else options[0][0]) | {"params": indices})
        return packed

    def _part(self, packed: dict[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """What of one process's optimizer state is this rank's, numbered as its own optimizer has it."""
        where = {name: (g, i) for g, (held, group) in enumerate(zip(self.layout, packed["param_groups"], strict=True))
                 for name, i in zip(held, group["params"], strict=True)}
        names = {id(p): name for name, p in self.stages.own_parameters()}
        part = deepcopy(optimizer.state_dict())
        part["state"] = {}
        for own, group in zip(part["param_groups"], optimizer.param_groups, strict=True):
            for index, p in zip(own["params"], group["params"], strict=True):
                if id(p) in names:
                    g, i = where[names[id(p)]]
                    own |= {k: deepcopy(v) for k, v in packed["param_groups"][g].items()
                            if k not in ("params", "param_names")}
                    if i in packed["state"]:
                        part["state"][index] = deepcopy(packed["state"][i])
        return part


def _names(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> list[list[str]]:
    return [[names[id(p)] for p in group["params"]] for group in optimizer.param_groups]


def _device(tensors: dict[str, Tensor]) -> torch.device:
    return next(iter(tensors.values())).device
