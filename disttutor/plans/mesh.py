"""The mesh: the ranks as an array with one axis for each way of splitting the work.

Rank numbers count along the last axis first, so that the axis that talks most (tensor, expert) joins neighbours, as in
Megatron-LM (Narayanan et al. 2021, arXiv 2104.04473, section 3). A mesh is a plain value that is passed along; nothing
here is global.
"""

from dataclasses import dataclass, fields
from itertools import product
from math import prod


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Sizes of the five axes; their product is the world size.

    Raises ValueError for a size that is not a positive whole number.
    """

    data: int = 1
    pipeline: int = 1
    context: int = 1
    tensor: int = 1
    expert: int = 1

    def __post_init__(self) -> None:
        for axis, size in self.sizes.items():
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise ValueError(f"mesh axis {axis!r} has size {size!r}; it must be a whole number from 1 up")

    @property
    def sizes(self) -> dict[str, int]:
        """Axis name to size, in the order in which ranks are counted (last axis fastest)."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return prod(self.sizes.values())

    def coordinates(self, rank: int) -> dict[str, int]:
        """Where `rank` stands on each axis. Raises ValueError if the mesh has no such rank."""
        self._check_rank(rank)
        where = {}
        for axis, size in reversed(self.sizes.items()):
            rank, where[axis] = divmod(rank, size)
        return {axis: where[axis] for axis in self.sizes}

    def rank_at(self, **coordinates: int) -> int:
        """The rank at these coordinates (axes left out are 0). Raises ValueError for one outside the mesh."""
        rank = 0
        for axis, size in self.sizes.items():
            at = coordinates.pop(axis, 0)
            if not 0 <= at < size:
                raise ValueError(f"{axis} coordinate {at} is outside the mesh, whose {axis} axis has size {size}")
            rank = rank * size + at
        if coordinates:
            raise ValueError(f"unknown mesh axes {sorted(coordinates)}; axes that work: {', '.join(self.sizes)}")
        return rank

    def group(self, rank: int, *axes: str) -> tuple[int, ...]:
        """The ranks that share all of `rank`'s coordinates except those on `axes`, in order."""
        for axis in axes:
            if axis not in self.sizes:
                raise ValueError(f"unknown mesh axis {axis!r}; axes that work: {', '.join(self.sizes)}")
        here = self.coordinates(rank)
        spans = [range(size) if axis in axes else (here[axis],) for axis, size in self.sizes.items()]
        return tuple(self.rank_at(**dict(zip(self.sizes, at, strict=True))) for at in product(*spans))

    def groups(self, *axes: str) -> list[tuple[int, ...]]:
        """Every group along `axes`: together they hold each rank once."""
        found: dict[int, tuple[int, ...]] = {}
        for rank in range(self.world_size):
            if rank not in found:
                found.update(dict.fromkeys(group := self.group(rank, *axes), group))
        return list(dict.fromkeys(found.values()))

    def _check_rank(self, rank: int) -> None:
        if not 0 <= rank < self.world_size:
            raise ValueError(f"rank {rank} is outside the mesh of {self.world_size} ranks")
