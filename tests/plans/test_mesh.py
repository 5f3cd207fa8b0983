"""Ranks as an array with five axes."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans import Mesh

AXES = ("data", "pipeline", "context", "tensor", "expert")
meshes = st.builds(Mesh, **dict.fromkeys(AXES, st.integers(1, 3)))


def test_ranks_count_along_the_last_axis_first():
    """2 x 2 x 2, worked out by hand: neighbours share data and pipeline, and differ in tensor."""
    mesh = Mesh(data=2, pipeline=2, tensor=2)
    assert mesh.world_size == 8
    assert mesh.group(0, "tensor") == (0, 1)
    assert mesh.group(0, "pipeline") == (0, 2)
    assert mesh.group(0, "data") == (0, 4)
    assert mesh.group(5, "data", "tensor") == (0, 1, 4, 5)
    assert mesh.groups("tensor") == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert mesh.coordinates(6) == {"data": 1, "pipeline": 1, "context": 0, "tensor": 0, "expert": 0}
    assert mesh.rank_at(data=1, tensor=1) == 5
    assert mesh.group(3) == (3,)


@given(meshes)
def test_coordinates_and_ranks_are_one_to_one(mesh):
    places = [mesh.coordinates(rank) for rank in range(mesh.world_size)]
    assert [mesh.rank_at(**place) for place in places] == list(range(mesh.world_size))
    assert len({tuple(place.values()) for place in places}) == mesh.world_size == prod(mesh.sizes.values())


@given(meshes, st.sets(st.sampled_from(AXES)))
def test_groups_hold_each_rank_once_and_all_members_agree_on_them(mesh, axes):
    groups = mesh.groups(*axes)
    assert sorted(rank for group in groups for rank in group) == list(range(mesh.world_size))
    for group in groups:
        assert len(group) == prod(mesh.sizes[axis] for axis in axes)
        assert list(group) == sorted(group)
        assert all(mesh.group(rank, *axes) == group for rank in group)


@pytest.mark.parametrize("size", [0, -1, 1.0, "2", True, None])
def test_sizes_must_be_whole_numbers_from_1_up(size):
    with pytest.raises(ValueError, match=f"'tensor' has size {size!r}; it must be a whole number from 1 up"):
        Mesh(tensor=size)


def test_what_is_outside_the_mesh_is_refused():
    mesh = Mesh(data=2)
    with pytest.raises(ValueError, match="rank 2 is outside the mesh of 2 ranks"):
        mesh.coordinates(2)
    with pytest.raises(ValueError, match="data coordinate 2 is outside the mesh, whose data axis has size 2"):
        mesh.rank_at(data=2)
    with pytest.raises(ValueError, match=r"unknown mesh axes \['depth'\]"):
        mesh.rank_at(depth=0)
    with pytest.raises(ValueError, match="unknown mesh axis 'depth'; axes that work: data, pipeline"):
        mesh.group(0, "depth")
