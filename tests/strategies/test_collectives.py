"""Collectives on real ranks, against torch.distributed's own and sums in float64."""

import pytest
import torch
import torch.distributed as dist

from disttutor.plans import Mesh
from disttutor.plans.collectives import ALGORITHMS, ALL_REDUCES
from disttutor.strategies import group_along
from disttutor.strategies.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    reduce,
    reduce_scatter,
    rounding_differences,
)

LENGTHS = [0, 1, 2, 5, 64, 1001]
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
RANKS = [1, 2, 3, 4]


def array(rank, shape, dtype=torch.float32):
    g = torch.Generator().manual_seed(7 * rank + 1)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)
    return torch.randint(0, 20, (shape,), generator=g).to(dtype)


def arrays(n, shape, dtype=torch.float32):
    return torch.stack([array(r, shape, dtype) for r in range(n)])


# ---------------------------------------------------------------------------------------------------- all-reduce


def reduced(rank, dtypes, ops, lengths):
    out = {}
    for algorithm in ALL_REDUCES:
        for dtype in dtypes:
            for op in ops:
                for length in lengths:
                    mine = array(rank, length, dtype)
                    all_reduce(mine, algorithm=algorithm, op=op)
                    out[algorithm, dtype, op, length] = mine
    return out


def stock(rank, length):
    theirs = array(rank, length)
    if dist.is_initialized():
        dist.all_reduce(theirs)
    return theirs


@pytest.mark.parametrize("n", RANKS)
def test_sums_of_floats_are_the_sum_in_float64_but_for_rounding_and_alike_on_all_ranks(n, clusters):
    out = clusters(n).run(reduced, FLOATS, ["sum", "mean", "max"], LENGTHS)
    for (algorithm, dtype, op, length), mine in out[0].items():
        parts = arrays(n, length, dtype).double()
        exact = {"sum": parts.sum(0), "mean": parts.mean(0), "max": parts.amax(0) if n else None}[op]
        # Each of n-1 additions (and the division) rounds once, by eps/2 of at most the sum of all magnitudes.
        bound = 0 if op == "max" else n * torch.finfo(dtype).eps / 2 * (1 + 2**-7) * parts.abs().sum(0)
        assert (mine.double() - exact).abs().le(bound).all(), (algorithm, dtype, op, length)
        assert all(torch.equal(mine, answer[algorithm, dtype, op, length]) for answer in out)


@pytest.mark.parametrize("n", RANKS)
def test_whole_numbers_are_exact(n, clusters):
    for answer in clusters(n).run(reduced, WHOLE, ["sum", "max"], [0, 3, 50]):
        for (_, dtype, op, length), mine in answer.items():
            parts = arrays(n, length, dtype)
            assert torch.equal(mine, parts.sum(0, dtype=dtype) if op == "sum" else parts.amax(0))


def test_complex_numbers_are_summed_too(clusters):
    for answer in clusters(3).run(reduced, [torch.complex64], ["sum", "mean"], [50]):
        for (_, dtype, op, _), mine in answer.items():
            expected = arrays(3, 50, dtype).sum(0) / (1 if op == "sum" else 3)
            torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", RANKS)
def test_an_all_reduce_is_torchs_own_but_for_rounding(n, clusters):
    theirs = clusters(n).run(stock, 1001)
    ours = clusters(n).run(reduced, [torch.float32], ["sum"], [1001])
    for answer, their in zip(ours, theirs, strict=True):
        for mine in answer.values():
            torch.testing.assert_close(mine, their, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [3, 4])
def test_a_second_run_has_the_same_bits(n, clusters):
    runs = [clusters(n).run(reduced, [torch.float32, torch.bfloat16], ["sum"], [1001]) for _ in range(2)]
    assert all(torch.equal(mine, runs[1][rank][key]) for rank in range(n) for key, mine in runs[0][rank].items())


@pytest.mark.parametrize("n", [5, 6, 7])
def test_numbers_of_ranks_that_are_no_power_of_two(n, clusters):
    for answer in clusters(n).run(reduced, [torch.int64], ["sum"], [0, 4, 100]):
        assert all(torch.equal(mine, arrays(n, key[3], torch.int64).sum(0)) for key, mine in answer.items())


def in_place_of_any_shape(rank):
    whole = torch.full((4, 3, 5), float(rank))
    all_reduce(whole[1:3], algorithm="ring")                    # a view: the rest stays
    scalar = torch.tensor(float(rank), requires_grad=True)
    all_reduce(scalar, algorithm="tree", op="max")
    return whole, scalar


def test_it_works_in_place_on_views_scalars_and_leaves_that_require_a_gradient(clusters):
    for rank, (whole, scalar) in enumerate(clusters(3).run(in_place_of_any_shape)):
        assert whole[[0, 3]].eq(rank).all() and whole[1:3].eq(3).all()
        assert scalar.item() == 2 and scalar.requires_grad


def large(rank):
    mine = torch.arange(3_000_001, dtype=torch.float32) % 1000 + rank
    for algorithm in ALL_REDUCES:
        one = mine.clone()
        all_reduce(one, algorithm=algorithm)
        assert torch.equal(one, 4 * (torch.arange(3_000_001) % 1000).float() + 6), algorithm
    return True


def test_arrays_that_do_not_fit_into_a_sockets_buffer(clusters):
    assert all(clusters(4).run(large))


# ---------------------------------------------------------------------------------------- why the last bits differ


def differences(rank):
    return rounding_differences(array(rank, 4096))


def test_algorithms_differ_in_the_last_bits_alone_and_each_is_the_same_on_all_ranks(clusters):
    out = clusters(4).run(differences)
    exact = arrays(4, 4096).double().sum(0)
    magnitude = arrays(4, 4096).double().abs().sum(0)
    assert list(out[0]) == list(ALL_REDUCES)
    for name, mine in out[0].items():
        assert all(torch.equal(mine, other[name]) for other in out)
        # (n-1) u of the sum of magnitudes: Higham 2002, Accuracy and Stability of Numerical Algorithms, section 4.2.
        assert (mine.double() - exact).abs().le(3 * 2**-24 * 1.001 * magnitude).all()
    results = list(out[0].values())
    assert not all(torch.equal(results[0], other) for other in results)


# ------------------------------------------------------------------------------------------------ the other kinds


def the_others(rank, rows):
    n, out = (dist.get_world_size() if dist.is_initialized() else 1), {}
    mine = array(rank, (rows, 3), torch.float64)
    for algorithm in ALGORITHMS["broadcast"]:
        for root in range(n):
            got = mine.clone()
            broadcast(got, root, algorithm=algorithm)
            out["broadcast", algorithm, root] = got
    for algorithm in ALGORITHMS["reduce"]:
        for root in range(n):
            for op in ("sum", "mean", "max"):
                got = mine.clone()
                reduce(got, root, algorithm=algorithm, op=op)
                out["reduce", algorithm, root, op] = got
    for algorithm in ALGORITHMS["all_gather"]:
        out["all_gather", algorithm] = all_gather(mine.tensor_split(n)[rank], algorithm=algorithm, rows=rows)
        for op in ("sum", "mean", "max"):
            out["reduce_scatter", algorithm, op] = reduce_scatter(mine, algorithm=algorithm, op=op)
    for algorithm in ALGORITHMS["all_to_all"]:
        out["all_to_all", algorithm] = all_to_all(mine, algorithm=algorithm)
    assert torch.equal(mine, array(rank, (rows, 3), torch.float64))
    return out


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("rows", [0, 1, 4, 7, 12])
def test_the_other_collectives(n, rows, clusters):
    parts = arrays(n, (rows, 3), torch.float64)
    total = {"sum": parts.sum(0), "mean": parts.mean(0), "max": parts.amax(0)}
    whole = torch.cat([parts[r].tensor_split(n)[r] for r in range(n)])
    for rank, answer in enumerate(clusters(n).run(the_others, rows)):
        for (kind, _, *about), mine in answer.items():
            if kind == "broadcast":
                expected = parts[about[0]]
            elif kind == "reduce":
                expected = total[about[1]] if rank == about[0] else parts[rank]
            elif kind == "all_gather":
                expected = whole
            elif kind == "reduce_scatter":
                expected = total[about[0]].tensor_split(n)[rank]
            else:
                expected = torch.cat([parts[r].tensor_split(n)[rank] for r in range(n)])
            torch.testing.assert_close(mine, expected, rtol=0, atol=1e-14)


def as_torch_does(rank):
    mine = array(rank, (8, 3))
    shard, gathered, swapped = torch.empty(2, 3), torch.empty(32, 3), torch.empty(8, 3)
    dist.reduce_scatter_tensor(shard, mine.clone())
    dist.all_gather_into_tensor(gathered, mine)
    dist.all_to_all_single(swapped, mine)
    return [(reduce_scatter(mine), shard), (all_gather(mine), gathered), (all_to_all(mine), swapped)]


def test_equal_shares_give_what_torch_gives(clusters):
    for answer in clusters(4).run(as_torch_does):
        for ours, theirs in answer:
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def of_scalars(rank):
    return all_gather(torch.tensor(rank)), reduce_scatter(torch.tensor(rank)), all_gather(torch.ones(2, 0))


def test_scalars_are_one_row_and_rows_may_be_empty(clusters):
    for rank, (gathered, shard, empty) in enumerate(clusters(3).run(of_scalars)):
        assert gathered.tolist() == [0, 1, 2] and shard.tolist() == ([3] if rank == 0 else [])
        assert empty.shape == (6, 0)


# ----------------------------------------------------------------------------------------------------- subgroups


def in_subgroups(rank):
    group = group_along(Mesh(data=2, tensor=2), "data")         # ranks 0 and 2, 1 and 3
    mine, root = torch.tensor([float(rank)]), torch.tensor([float(rank)])
    all_reduce(mine, group)
    broadcast(root, group.ranks[1], group)
    return mine.item(), root.item(), all_gather(torch.tensor([rank]), group).tolist()


def test_subgroups_keep_to_themselves_and_are_recorded_by_their_global_ranks(clusters):
    run = clusters(4).run(in_subgroups, record=True)
    assert list(run) == [(2.0, 2.0, [0, 2]), (4.0, 3.0, [1, 3]), (2.0, 2.0, [0, 2]), (4.0, 3.0, [1, 3])]
    assert {(s.rank, s.op.peer) for s in run.trace.spans} == {(0, 2), (2, 0), (1, 3), (3, 1)}


def test_one_process_needs_no_group():
    mine = torch.arange(3.0)
    for algorithm in ALL_REDUCES:
        all_reduce(mine, algorithm=algorithm, op="mean")
    broadcast(mine)
    reduce(mine)
    assert mine.tolist() == [0, 1, 2] and all_gather(mine).tolist() == [0, 1, 2]
    assert reduce_scatter(mine).tolist() == all_to_all(mine).tolist() == [0, 1, 2]
