"""Settings that cannot be, refused before anything starts: what was given, why it cannot be, what would work."""

from inspect import signature
from operator import index
from typing import Any

import torch
from torch import nn


def whole_number(what: str, value: Any, least: int | None = None) -> int:
    """`value` as an int. Raises TypeError for what is no whole number, ValueError for one below `least`."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{what} is {value!r} of type {type(value).__name__}; it must be a whole number")
    if least is not None and number < least:
        raise ValueError(f"{what} is {number}; it must be {least} or more")
    return number


def check_clip_norm(limit: Any, model: nn.Module) -> None:
    """Raises ValueError for a limit that is not positive, and for a model with sparse gradients, whose norm torch does
    not take."""
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise ValueError(f"clip_norm is {limit!r}; it must be a number greater than 0, or None for no clipping")
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse:
            raise ValueError(f"clip_norm is {limit}, and {name or 'the model'!r} has sparse gradients, of which torch "
                             "takes no norm: leave clip_norm out, or make the embedding with sparse=False")


def check_autocast(dtype: Any) -> None:
    """Raises ValueError for a type that autocast does not have on every device."""
    if dtype not in (None, torch.bfloat16, torch.float16):
        raise ValueError(f"autocast is {dtype!r}; types that work: torch.bfloat16, torch.float16, or None for none")


def sum_and_count(given: Any) -> tuple[Any, Any]:
    """What an objective gave, if that is a sum of losses and their number; else raises TypeError or ValueError."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(f"the objective gave a {type(given).__name__}; it must give the sum of the losses and how many "
                        "there are, such as cross_entropy(model(x), y, reduction='sum'), len(y)")
    if isinstance(given[0], torch.Tensor) and given[0].numel() != 1:
        raise ValueError(f"the objective gave losses of shape {tuple(given[0].shape)}; it must give their sum, one "
                         "number, and how many there are")
    return given[0], given[1]


def check_steps(optimizer: Any, schedule: Any) -> None:
    """Raises TypeError for an optimizer or a learning-rate schedule whose step cannot be taken without an argument."""
    for what, given, instead in (("optimizer", optimizer, "one such as SGD or AdamW"),
                                 ("learning-rate schedule", schedule, "one that goes by the number of updates")):
        if given is None:
            continue
        step = getattr(type(given), "step", None)           # of the type: a schedule wraps that of the optimizer
        if not callable(step):
            raise TypeError(f"the {what} that was made is of type {type(given).__name__}, which has no step()")
        _, *others = signature(step).parameters.items()     # without self
        needed = [name for name, p in others
                  if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if needed:
            raise TypeError(f"{type(given).__name__}.step needs {', '.join(needed)}, and a step of training takes the "
                            f"{what}'s step() without anything: take {instead}")


def check_state(state: Any, optimizer: torch.optim.Optimizer, schedule: Any) -> None:
    """Raises ValueError for what is no full state, or one that does not fit this optimizer and schedule."""
    wanted = {"model", "optimizer", "optimizer kind", "schedule", "updates"}
    if not isinstance(state, dict) or not wanted <= state.keys():
        missing = sorted(wanted - set(state)) if isinstance(state, dict) else sorted(wanted)
        raise ValueError(f"this is not the full state of a strategy: it lacks {', '.join(missing)}")
    for name, kind in (("model", dict), ("optimizer", dict), ("updates", int)):
        if not isinstance(state[name], kind) or (name == "optimizer" and "param_groups" not in state[name]):
            raise ValueError(f"this is not the full state of a strategy: its {name!r} is of type "
                             f"{type(state[name]).__name__}, and not what full_state() puts there")
    mine, theirs = type(optimizer).__name__, state["optimizer kind"]
    if mine != theirs:
        raise ValueError(f"the saved state is of the optimizer {theirs}, and this strategy has {mine}: make it with "
                         f"{theirs}, or load only state['model'] into the model")
    if (schedule is None) != (state["schedule"] is None):
        without = "this strategy" if schedule is None else "the saved state"
        raise ValueError(f"the learning-rate schedule is missing: {without} has none. Both must have one, or neither")
