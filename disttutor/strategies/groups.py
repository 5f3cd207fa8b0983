"""Process groups along the axes of a mesh. With one rank there need not be any group at all."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import torch.distributed as dist

from disttutor.plans import Mesh


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks of one group, this process's place among them, and torch's handle (None where it is alone).

    down: the handle of a second group of the same ranks, for messages from higher to lower places (see `two_way`).
    """

    ranks: tuple[int, ...]
    index: int
    handle: Any = None
    down: Any = None

    def __reduce__(self) -> tuple:
        # A group does not travel: what a rank returns to the notebook stands alone there.
        return (Group, ((self.ranks[self.index],), 0))

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)


def world() -> tuple[int, int]:
    """This process's rank and the world size; 0 and 1 in a process without a group."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def group_along(mesh: Mesh | None, *axes: str) -> Group:
    """This rank's group along `axes` of the mesh (None: all ranks along the data axis). Every rank must call this.

    Raises ValueError if the mesh has another number of ranks than there are.
    """
    rank, size = world()
    mesh = mesh or Mesh(data=size)
    if mesh.world_size != size:
        raise ValueError(f"the mesh {mesh.sizes} has {mesh.world_size} ranks, but {size} are running")
    mine = mesh.group(rank, *axes)
    if len(mine) == 1:
        return Group(mine, 0)
    if len(mine) == size:
        return Group(mine, rank, dist.group.WORLD)
    handles = {ranks: dist.new_group(ranks) for ranks in mesh.groups(*axes)}
    return Group(mine, mine.index(rank), handles[mine])


_MAKING = Lock()
_DOWN: dict[tuple[int, ...], tuple[Any, Any]] = {}          # ranks -> the handle of their group, and of its second one


def two_way(group: Group) -> Group:
    """The group with connections of their own for messages up and down.

    Two messages that cross on one connection hinder each other: gloo holds its lock while it reads, and who wants to
    send has to wait for it (1F1B on two ranks lost a third of its time so). Every rank of the group must call this.
    Where there is another backend than gloo, nothing changes.
    """
    if group.size == 1 or dist.get_backend(group.handle) != "gloo":
        return group
    with _MAKING:
        whose, down = _DOWN.get(group.ranks, (None, None))
        if whose is not group.handle:                       # a new world has new groups
            down = dist.new_group(list(group.ranks), use_local_synchronization=True)
            _DOWN[group.ranks] = group.handle, down
    return replace(group, down=down)


def pipeline_group(mesh: Mesh | None) -> Group:
    """This rank's place in the pipeline. Raises ValueError for a mesh with other axes."""
    mesh = mesh or Mesh(pipeline=world()[1])
    if mesh.world_size != mesh.pipeline:
        raise ValueError(f"pipeline parallelism alone needs a mesh with only a pipeline axis, not {mesh.sizes}")
    return two_way(group_along(mesh, "pipeline"))


def subgroups(group: Group, members: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], Group]:
    """Groups of some of `group`'s ranks, named by their places in it. Every rank of the world must call this, with the
    same members; those that are not in a group have no handle of it."""
    out = {}
    for places in dict.fromkeys(members):
        ranks = tuple(group.ranks[place] for place in places)
        handle = group.handle if len(places) == group.size else dist.new_group(ranks)
        if group.index in places:
            out[places] = Group(ranks, places.index(group.index), handle)
    return out
