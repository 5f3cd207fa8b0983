"""Model states: the bytes of weights, gradients and optimizer state that each device holds while it trains.

Of one parameter there are several numbers. In mixed precision with Adam: a weight and a gradient of 2 bytes each, and
12 bytes that the optimizer keeps in float32 (a copy of the weight and two moments): 16 bytes a parameter.

Tensor and pipeline ranks each hold a part of the parameters. Data-parallel ranks hold copies of the same part, unless
ZeRO deals them out: stage 1 the optimizer state, stage 2 the gradients as well, stage 3 the weights as well.

Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (arXiv 1910.02054),
section 3.1 for the 16 bytes, section 5 for the stages. Activations, buffers and fragments come on top.
"""

from dataclasses import dataclass
from math import ceil, inf
from numbers import Real

from disttutor.plans import Mesh

STAGES = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a parameter is stored in training, in bytes: its weight, its gradient, and what the optimizer keeps of it."""

    name: str
    weight: float
    gradient: float
    optimizer: float

    @property
    def total(self) -> float:
        """Bytes a parameter, all together."""
        return self.weight + self.gradient + self.optimizer


MIXED_ADAM = Recipe("mixed-precision Adam", 2, 2, 12)       # optimizer: weight, first and second moment in float32
ADAM = Recipe("float32 Adam", 4, 4, 8)                      # two moments
MOMENTUM_SGD = Recipe("float32 SGD with momentum", 4, 4, 4)
SGD = Recipe("float32 SGD", 4, 4, 0)


@dataclass(frozen=True, slots=True)
class ModelStates:
    """What one device holds, in bytes."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """Bytes of all three."""
        return self.weights + self.gradients + self.optimizer


def model_states(parameters: float, recipe: Recipe = MIXED_ADAM, *, data: int = 1, tensor: int = 1, pipeline: int = 1,
                 zero: int = 0) -> ModelStates:
    """Bytes of model states on each device, with the parameters cut into equal parts.

    data, tensor, pipeline: ranks on each axis of the mesh. zero: the stage of ZeRO among the data-parallel ranks, 0 for
    plain copies. Raises ValueError for a number of parameters that is not above 0, for a stage that there is not, and
    for a count of ranks below 1.
    """
    _check(parameters, "parameters", "a number of parameters")
    if zero not in STAGES:
        raise ValueError(f"zero is {zero!r}; ZeRO has the stages 1, 2 and 3, and 0 means plain copies")
    mesh = Mesh(data=data, tensor=tensor, pipeline=pipeline)
    here = parameters / (mesh.tensor * mesh.pipeline)
    shard = here / mesh.data
    return ModelStates(
        weights=recipe.weight * (shard if zero >= 3 else here),
        gradients=recipe.gradient * (shard if zero >= 2 else here),
        optimizer=recipe.optimizer * (shard if zero >= 1 else here),
    )


def fewest_devices(parameters: float, capacity: float, recipe: Recipe = MIXED_ADAM, *, zero: int = 3, tensor: int = 1,
                   pipeline: int = 1) -> int:
    """The smallest number of devices of `capacity` bytes each that hold the model states.

    `tensor` and `pipeline` are given, and data-parallel ranks are added until it fits. A device that is filled to the
    last byte counts as fitting, so a real training needs more: activations come on top. Raises ValueError where no
    number of them is enough, since what every rank copies is too large already.
    """
    _check(capacity, "capacity", "a number of bytes")
    alone = model_states(parameters, recipe, tensor=tensor, pipeline=pipeline, zero=zero)
    dealt = sum((alone.optimizer, alone.gradients, alone.weights)[:zero])
    copied = alone.total - dealt
    if copied + dealt <= capacity:
        return tensor * pipeline
    if copied >= capacity:
        raise ValueError(f"with ZeRO stage {zero} every device keeps {copied / 1e9:g} GB whole, which leave no "
                         f"room in {capacity / 1e9:g} GB, however many devices there are; a higher stage, or more "
                         "tensor or pipeline ranks, make that smaller")
    return ceil(dealt / (capacity - copied)) * tensor * pipeline


def _check(value: float, name: str, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < inf:
        raise ValueError(f"{name} is {value!r}; it must be {what}, more than 0")
