"""Collectives on real ranks, against torch.distributed's own and sums in float64."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from disttutor.cluster import RankError
from disttutor.plans import Device, Link, Machine, Mesh, Op, Plan, PlanError
from disttutor.plans.collectives import ALGORITHMS, ALL_REDUCES, collective, ring_all_reduce
from disttutor.plans.partial_sums import Collective, partial_sums
from disttutor.strategies import group_along
from disttutor.strategies.collective_program import Prepared, Program
from disttutor.strategies.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    reduce,
    reduce_scatter,
    rounding_differences,
)
from disttutor.strategies.groups import Group
from disttutor.strategies.interpreter import carry_out
from disttutor.traces import SlowMotion

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


# ------------------------------------------------------------------------------------------------ plan and trace


def one_of_each(rank):
    mine = array(rank, 50)
    for algorithm in ALL_REDUCES:
        all_reduce(mine.clone(), algorithm=algorithm)
    for kind, call in (("broadcast", broadcast), ("reduce", reduce)):
        for algorithm in ALGORITHMS[kind]:
            call(mine.clone(), 1, algorithm=algorithm)
    for algorithm in ALGORITHMS["all_gather"]:
        all_gather(mine.tensor_split(3)[rank], algorithm=algorithm, rows=50)
    for algorithm in ALGORITHMS["reduce_scatter"]:
        reduce_scatter(mine, algorithm=algorithm)
    for algorithm in ALGORITHMS["all_to_all"]:
        all_to_all(mine, algorithm=algorithm)


def test_what_is_recorded_is_the_plan_to_the_byte(clusters):
    """Kind, order, peer, round, chunks and bytes of every message."""
    trace = clusters(3).run(one_of_each, record=True).trace
    kinds = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all")
    plans = [collective(kind, algorithm, 3, 50, 4, root=1 if kind in ("broadcast", "reduce") else 0)
             for kind in kinds for algorithm in ALGORITHMS[kind]]
    for rank in range(3):
        done = [span.op for span in sorted(trace.of(rank), key=lambda s: s.end)]
        assert [replace(op, after=()) for op in done] == [op for plan in plans for op in plan.ops[rank]]


def slowly(rank):
    for _ in range(2):
        all_reduce(torch.ones(4000), algorithm="ring")


def test_slow_motion_takes_what_the_model_says(clusters):
    link = Link(0.02, 4e5)
    trace = clusters(4).run(slowly, slow_motion=SlowMotion(Machine(Device(), link))).trace
    last = max(s.end for s in trace.spans) - min(s.start for s in trace.spans)
    assert last >= 2 * 6 * (0.02 + 4000 / 4e5) * 0.999          # never early: 2 all-reduces of 2 (n-1) messages


# ----------------------------------------------------------------------------------------------------- looking on


def looked_at(rank, algorithm):
    moments, mine = [], torch.tensor([float(10**r) for r in range(6)]) * 0 + 10**rank
    all_reduce(mine, algorithm=algorithm, observe=lambda moment: moments.append((moment, mine.clone())))
    return moments


@pytest.mark.parametrize("algorithm", ALL_REDUCES)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_what_is_seen_after_each_round_is_what_the_plan_says_is_held(algorithm, n, clusters):
    """Rank r brings 10^r, so that a sum says whose parts are in it."""
    plan = collective("all_reduce", algorithm, n, 6)
    steps = partial_sums(plan)
    for rank, moments in enumerate(clusters(n).run(looked_at, algorithm)):
        assert [moment for moment, _ in moments] == [step.moment for step in steps]
        for (_, seen), step in zip(moments, steps, strict=True):
            expected = [sum(10**r for r in parts) for parts, size in
                        zip(step.holds[rank], plan.goal.sizes, strict=True) for _ in range(size)]
            assert seen.tolist() == expected


# --------------------------------------------------------------------------------------------------------- misuse


@pytest.mark.parametrize("call, error, words", [
    (lambda x: all_reduce(x, algorithm="star"), ValueError, "unknown algorithm 'star' for all_reduce; those that"),
    (lambda x: all_reduce(x, op="product"), ValueError, "unknown op 'product'; those that work: sum, mean, max"),
    (lambda x: all_reduce(x.long(), op="mean"), TypeError, "the mean of torch.int64 is not of that type"),
    (lambda x: all_reduce(x.to(torch.complex64), op="max"), TypeError, "torch has no max of two tensors of torch.co"),
    (lambda x: all_reduce(torch.ones(2, 3).T), ValueError, r"strides \(1, 3\) is not contiguous"),
    (lambda x: all_reduce(x.to_sparse()), TypeError, "a collective takes a dense tensor, not torch.sparse_coo"),
    (lambda x: all_reduce([1.0]), TypeError, "a collective takes a dense tensor, not list"),
    (lambda x: all_reduce(x, algorithm="hierarchical", ranks_per_node=0), ValueError, "ranks_per_node is 0"),
    (lambda x: broadcast(x, 1), ValueError, r"root is 1, which is not among the ranks of the group, \[0\]"),
    (lambda x: all_gather(x, rows=7), ValueError, "the shard of rank 0 has 4 rows, but 7 rows on 1 ranks are cut so"),
    (lambda x: carry_out(Prepared(Plan("odd", ((),), Mesh())), Group((0,), 0), {}), ValueError, "is no collective's"),
])
def test_misuse_is_told_before_anything_is_sent(call, error, words):
    with pytest.raises(error, match=words):
        call(torch.ones(4))


def a_wrong_plan(rank):
    plan = ring_all_reduce(2, 4)
    ops = tuple(tuple(op for op in ops if op.round == 0) for ops in plan.ops)
    carry_out(Prepared(replace(plan, ops=ops)), group_along(None, "data"), {})


def test_a_plan_that_does_not_reach_its_goal_is_refused_on_every_rank(clusters):
    with pytest.raises(RankError, match="rank 0's chunk 0 lacks rank 1's part"):
        clusters(2).run(a_wrong_plan)


# ---------------------------------------------------------------------------------- what the plan does not say


def message(kind, rank, peer, number, chunk):
    return Op(kind=kind, rank=rank, peer=peer, round=number, chunks=(chunk,), nbytes=4)


def a_plan_with_late_receivers() -> Plan:
    """Rank 1 takes rank 0's part only after that of rank 2, who waits for rank 0's sum: fine where sends go out beside
    what follows, but not if rank 0 waits until its first message has left before it adds to the chunk."""
    def send(*where):
        return message("send", *where)

    ops = ((send(0, 1, 0, 0), message("recv_reduce", 0, 2, 1, 0), send(0, 2, 2, 0)),
           (message("recv", 1, 2, 3, 1), message("recv_reduce", 1, 0, 0, 0)),
           (send(2, 0, 1, 0), message("recv", 2, 0, 2, 0), send(2, 1, 3, 1)))
    return Plan("late", ops, Mesh(data=3), Anything("all_reduce", 3, (1, 1), 4))


class Anything(Collective):
    """A goal that is content with whatever comes out."""

    def faults(self, plan):
        return []


def test_sends_get_copies_where_ranks_could_wait_for_each_other():
    assert not Program(ring_all_reduce(4, 8), 2).copies and not Program(ring_all_reduce(4, 8), 0).copies
    late = a_plan_with_late_receivers()
    late.check()
    with pytest.raises(PlanError, match="cycle"):
        late.check(blocking_sends=True)
    assert Program(late, 0).copies


def carried_out_late(rank):
    store = {0: torch.tensor([float(10**rank)]), 1: torch.tensor([7.0 + rank])}
    carry_out(Prepared(a_plan_with_late_receivers()), group_along(None, "data"), store,
              observe=(lambda moment: None))
    return store[0].item(), store[1].item()


def test_and_then_come_through(clusters):
    assert list(clusters(3).run(carried_out_late, timeout=30)) == [(101.0, 7.0), (11.0, 9.0), (101.0, 9.0)]


@pytest.mark.parametrize("kind, algorithm", [(kind, a) for kind, named in ALGORITHMS.items() for a in named])
def test_no_algorithm_of_ours_needs_copies(kind, algorithm):
    for n in range(1, 10):
        plan = collective(kind, algorithm, n, 3 * n + 1)
        assert not Program(plan, 2).copies and not Program(plan, 0).copies
