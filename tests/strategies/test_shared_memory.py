"""All-reduce in shared memory: the values are those of plain arithmetic, and the same to the last bit on all ranks and
in every run."""

import time
from itertools import product

import pytest
import torch
import torch.distributed as dist
from torch import nn

from disttutor.strategies import Group, SharedMemory, group_along
from disttutor.strategies.shared_memory import PIECE

SIZES = (0, 1, 2, 3, 4, 5, 17, 1000, 1003, 1_000_003)
ROUNDING = {torch.float64: 2**-53, torch.float32: 2**-24, torch.float16: 2**-11, torch.bfloat16: 2**-8}


def everybody() -> Group:
    return group_along(None, "data")


def values(rank: int, numel: int, dtype: torch.dtype) -> torch.Tensor:
    g = torch.Generator().manual_seed(1000 * rank + numel)
    if dtype.is_floating_point:
        return torch.randn(numel, generator=g, dtype=torch.float64).to(dtype)
    return torch.randint(0, 50 if dtype.itemsize == 1 else 10**4, (numel,), generator=g, dtype=torch.int64).to(dtype)


def truth(ranks: int, numel: int, dtype: torch.dtype, op: str) -> torch.Tensor:
    """In float64, in which sums of the narrower types are exact."""
    stacked = torch.stack([values(rank, numel, dtype).double() for rank in range(ranks)])
    return {"sum": stacked.sum, "mean": stacked.mean, "max": stacked.amax}[op](0)


def reduced(rank, dtype, op, sizes, shots):
    """Per size: what a tensor of one's own and one in the shared memory hold after the all-reduce, and a second run."""
    out = []
    with SharedMemory(everybody(), sum(SharedMemory.room(n, dtype) for n in sizes)) as shared:
        for numel in sizes:
            inside = shared.empty(numel, dtype)
            assert not inside.any()
            inside.copy_(values(rank, numel, dtype))
            own = [values(rank, numel, dtype) for _ in range(2)]
            for tensor in (*own, inside):
                assert shared.all_reduce(tensor, op, shots) is tensor
            out.append([*own, inside.clone()])
    return out


def check(clusters, ranks, dtype, op, sizes=SIZES, shots=None):
    everybodys = clusters(ranks).run(reduced, dtype, op, sizes, shots)
    for numel, *results in zip(sizes, *everybodys, strict=True):
        first = results[0][0]
        for result in (other for rank in results for other in rank):
            assert torch.equal(result, first), f"{numel} {dtype}: not the same bits on all ranks and in all runs"
        right = truth(ranks, numel, dtype, op)
        if op == "max" or not dtype.is_floating_point:
            assert torch.equal(first.double(), right)
        else:
            # Narrow types are summed in float32 and rounded once. Else each of n-1 additions rounds what has been
            # summed by then, which is no more than the sum of the magnitudes; and the division by n once more.
            magnitudes = truth_of_magnitudes(ranks, numel, dtype) / (ranks if op == "mean" else 1)
            one = ROUNDING[dtype] * right.abs() * 1.001
            allowed = one + ranks * ROUNDING[torch.float32 if dtype.itemsize < 8 else torch.float64] * magnitudes
            assert bool(((first.double() - right).abs() <= allowed + 1e-7 * (dtype == torch.float16)).all())


def truth_of_magnitudes(ranks: int, numel: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.stack([values(rank, numel, dtype).double().abs() for rank in range(ranks)]).sum(0)


@pytest.mark.parametrize("shots", [1, 2, None])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_sums_of_any_length(ranks, shots, clusters):
    check(clusters, ranks, torch.float32, "sum", shots=shots)


@pytest.mark.parametrize("shots", [1, 2])
@pytest.mark.parametrize(("dtype", "op"), [
    *product((torch.float64, torch.float16, torch.bfloat16), ("sum", "mean", "max")),
    *product((torch.int64, torch.int32, torch.uint8), ("sum", "max"))])
def test_other_types_and_operations(dtype, op, shots, clusters):
    check(clusters, 3, dtype, op, sizes=(0, 5, 70_001, PIECE), shots=shots)


def test_eight_ranks(clusters):
    check(clusters, 8, torch.float32, "sum", sizes=(7, 8, 300_001))


def test_bfloat16_is_rounded_once(clusters):
    def work(rank):
        with SharedMemory(everybody()) as shared:
            return [shared.all_reduce(torch.tensor([256.0 if rank == 0 else 1.0], dtype=torch.bfloat16), shots=shots)
                    for shots in (1, 2)]

    # bfloat16 has 8 bits: 256 + 1 is a tie that rounds back to 256, and so it would twice; 256 + 1 + 1 = 258 is exact.
    assert [x.item() for result in clusters(3).run(work) for x in result] == [258.0] * 6


def test_a_nan_comes_through(clusters):
    def work(rank):
        x = torch.tensor([float("nan") if rank == 1 else 1.0, float("inf")])
        with SharedMemory(everybody()) as shared:
            return shared.all_reduce(x.clone(), "max"), shared.all_reduce(x.clone())

    for result in clusters(2).run(work):
        for x in result:
            assert x.isnan().tolist() == [True, False] and x[1] == float("inf")


def test_any_shape_and_tensors_that_autograd_knows(clusters):
    def work(rank):
        weight = nn.Parameter(torch.full((2, 3, 4), rank + 1.0))
        scalar = torch.tensor(rank + 1.0)
        row = torch.zeros(3, 5)
        row[1] += rank                                       # a part of a tensor
        with SharedMemory(everybody()) as shared:
            shared.all_reduce(weight)
            shared.all_reduce(scalar, "mean")
            shared.all_reduce(row[1], "max")
        return weight.detach(), scalar, row

    for weight, scalar, row in clusters(3).run(work):
        assert torch.equal(weight, torch.full((2, 3, 4), 6.0)) and scalar == 2.0
        assert row.tolist() == [[0.0] * 5, [2.0] * 5, [0.0] * 5]


def test_many_calls_of_all_kinds_one_after_the_other(clusters):
    """Halves of the memory are used in turn: a rank that is ahead must never write where another still reads."""

    def work(rank, calls):
        n = dist.get_world_size()
        g = torch.Generator().manual_seed(0)                 # the same on every rank
        wrong = 0
        with SharedMemory(everybody(), 1 << 20) as shared:
            inside = shared.empty(200_000)
            for call in range(calls):
                numel = int(torch.randint(0, 200_000, (), generator=g))
                kind = int(torch.randint(0, 3, (), generator=g))
                if (call * 7 + rank) % 5 == 0:
                    time.sleep(0.001 * (rank + 1))           # other ranks come late each time
                x = inside[:numel].fill_(rank + call) if kind == 2 else torch.full((numel,), float(rank + call))
                shared.all_reduce(x, shots=1 + kind % 2 if kind < 2 else None)
                wrong += bool((x != n * call + n * (n - 1) / 2).any())
        return wrong

    assert clusters(4).run(work, 150) == [0] * 4


def test_several_at_once_and_of_parts_of_the_ranks(clusters):
    def work(rank):
        world = everybody()
        halves = {ranks: dist.new_group(ranks) for ranks in ((0, 2), (1, 3))}
        mine = (0, 2) if rank % 2 == 0 else (1, 3)
        half = Group(mine, mine.index(rank), halves[mine])
        with SharedMemory(world) as a, SharedMemory(half, 4096) as b, SharedMemory(world, 4096) as c:
            inside = b.empty(100, torch.int64).fill_(rank)
            return (a.all_reduce(torch.tensor([rank])).item(), b.all_reduce(inside)[99].item(),
                    c.all_reduce(c.empty(1) + rank, "max").item(), b.all_reduce(torch.tensor(rank)).item())

    assert clusters(4).run(work) == [(6, 2, 3.0, 2), (6, 4, 3.0, 4)] * 2


def test_tensors_live_longer_than_the_memory_they_came_from(clusters):
    def work(rank):
        with SharedMemory(everybody(), 4096) as shared:
            x = shared.empty(1000).fill_(rank)
            shared.all_reduce(x)
        x += 1
        return x

    assert all(torch.equal(x, torch.full((1000,), 2.0)) for x in clusters(2).run(work))


def test_without_what_only_linux_has(clusters):
    """A segment that has a name at first, and counters in place of semaphores: what macOS runs."""

    def work(rank, calls):
        from disttutor.strategies import shared_memory, shared_segment
        from disttutor.strategies.shared_barrier import Counters

        whole = shared_segment.LINUX, shared_memory.make_barrier
        shared_segment.LINUX, shared_memory.make_barrier = False, Counters
        try:
            out = []
            with SharedMemory(group_along(None, "data"), 1 << 20) as shared:
                inside = shared.empty(100_003, torch.float64)
                for call in range(calls):
                    if (call + rank) % 20 == 0:
                        time.sleep(0.002)
                    x = inside.fill_(rank + call) if call % 2 else torch.full((70_001 + call,), rank + call)
                    out.append(shared.all_reduce(x, shots=1 + call // 2 % 2).unique().tolist())
            return out
        finally:
            shared_segment.LINUX, shared_memory.make_barrier = whole

    for out in clusters(3).run(work, 60):
        assert out == [[3 * call + 3] for call in range(60)]
