"""What collectives take on a model of a machine, against closed forms that are worked out by hand here."""

from math import log2

import pytest

from disttutor.cost import simulate
from disttutor.cost.collectives import closed_form, hierarchical_terms, terms
from disttutor.plans import Link, Machine, Mesh, Op, Plan
from disttutor.plans.collectives import ALGORITHMS, collective, ring_all_reduce
from disttutor.traces import Trace, bandwidth

ALPHA, BETA, S = 1e-5, 1e9, 5040 * 4           # 5040 elements can be cut into 1 to 10 equal chunks
LINK = Link(ALPHA, BETA)
WHOLE = ALPHA + S / BETA                       # a message of the whole array

POWERS = [1, 2, 4, 8]
ANY = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def predicted(kind, algorithm, n, machine=None, **more) -> float:
    return simulate(collective(kind, algorithm, n, S // 4, 4, **more), machine or Machine(link=LINK)).makespan


def chunked(messages, n):
    """So many messages of an n-th each."""
    return messages * (ALPHA + S / n / BETA)


def rounds_of_a_tree(n):
    return next(k for k in range(9) if 2**k >= n)


# Each worked out from what the rank with the most to do sends and waits for, one message after the other.
BY_HAND = {
    ("all_reduce", "naive"): lambda n: 2 * (n - 1) * WHOLE,
    ("all_reduce", "ring"): lambda n: chunked(2 * (n - 1), n),
    ("all_reduce", "tree"): lambda n: 2 * rounds_of_a_tree(n) * WHOLE,
    ("broadcast", "ring"): lambda n: chunked(2 * (n - 1), n),      # n-1 hops for the last of n chunks, n-1 chunks first
    ("broadcast", "tree"): lambda n: rounds_of_a_tree(n) * WHOLE,
    ("broadcast", "scatter-all-gather"): lambda n: (rounds_of_a_tree(n) * ALPHA + (n - 1) / n * S / BETA
                                                    + chunked(n - 1, n)),
    ("reduce", "ring"): lambda n: chunked(2 * (n - 1), n),
    ("reduce", "tree"): lambda n: rounds_of_a_tree(n) * WHOLE,
    ("all_gather", "ring"): lambda n: chunked(n - 1, n),
    ("all_gather", "Bruck"): lambda n: rounds_of_a_tree(n) * ALPHA + (n - 1) / n * S / BETA,
    ("reduce_scatter", "ring"): lambda n: chunked(n - 1, n),
    ("reduce_scatter", "Bruck"): lambda n: rounds_of_a_tree(n) * ALPHA + (n - 1) / n * S / BETA,
    ("all_to_all", "pairwise"): lambda n: chunked(n - 1, n),
    ("all_to_all", "ring"): lambda n: sum(ALPHA + k * S / n / BETA for k in range(1, n)),
}


@pytest.mark.parametrize("n", ANY)
@pytest.mark.parametrize("kind, algorithm", BY_HAND)
def test_a_collective_takes_what_is_worked_out_by_hand(kind, algorithm, n):
    expected = BY_HAND[kind, algorithm](n)
    assert predicted(kind, algorithm, n) == pytest.approx(expected, rel=1e-9)
    assert closed_form(kind, algorithm, n, S, LINK) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", POWERS)
def test_recursive_doubling_takes_log2_n_whole_arrays(n):
    assert predicted("all_reduce", "recursive doubling", n) == pytest.approx(log2(n) * WHOLE)


@pytest.mark.parametrize("n", [3, 5, 6, 7, 9])
def test_ranks_too_many_for_a_power_of_two_cost_two_messages_more(n):
    p = 2 ** int(log2(n))
    assert predicted("all_reduce", "recursive doubling", n) == pytest.approx((log2(p) + 2) * WHOLE)
    halves = 2 * log2(p) * ALPHA + 2 * (p - 1) / p * S / BETA
    assert predicted("all_reduce", "halving-doubling", n) == pytest.approx(halves + 2 * WHOLE)


@pytest.mark.parametrize("n", POWERS)
def test_rabenseifner_has_the_rings_bytes_in_the_trees_messages(n):
    assert predicted("all_reduce", "halving-doubling", n) == pytest.approx(
        2 * log2(n) * ALPHA + 2 * (n - 1) / n * S / BETA)


@pytest.mark.parametrize("n", ANY)
@pytest.mark.parametrize("algorithm", ["recursive doubling", "halving-doubling"])
def test_the_closed_form_of_doubling_and_halving_is_the_simulations(algorithm, n):
    assert closed_form("all_reduce", algorithm, n, S, LINK) == pytest.approx(predicted("all_reduce", algorithm, n))


def test_there_is_a_closed_form_for_everything_on_equal_links():
    everything = {(kind, algorithm) for kind, named in ALGORITHMS.items() for algorithm in named}
    known = set(BY_HAND) | {("all_reduce", a) for a in ("recursive doubling", "halving-doubling", "hierarchical")}
    assert known == everything
    assert str(terms("all_reduce", "ring", 4)) == "6 α + 1.5 S/β"
    with pytest.raises(ValueError, match="two kinds of link"):
        terms("all_reduce", "hierarchical", 4)
    with pytest.raises(ValueError, match="unknown algorithm 'star' for all_reduce; those that work: naive, ring, tree"):
        terms("all_reduce", "star", 4)


# ------------------------------------------------------------------------------------------------------ A-32, K32


@pytest.mark.parametrize("n, all_reduce, half", [(4, 0.15, 0.075), (2, 0.1, 0.05), (1, 0.0, 0.0)])
def test_a_ring_of_1e9_bytes_on_links_of_1e10_bytes_a_second(n, all_reduce, half):
    machine = Machine(link=Link(0.0, 10e9))
    times = {kind: simulate(collective(kind, "ring", n, 10**9, 1), machine).makespan
             for kind in ("all_reduce", "all_gather", "reduce_scatter")}
    assert times == pytest.approx({"all_reduce": all_reduce, "all_gather": half, "reduce_scatter": half})


def test_a_millisecond_a_message_adds_6_milliseconds():
    with_latency = simulate(ring_all_reduce(4, 10**9, 1), Machine(link=Link(1e-3, 10e9)))
    assert with_latency.makespan == pytest.approx(0.156)


def test_algorithm_rate_and_bus_rate_of_that_ring():
    """As one collective it takes what its messages take; 1e9 bytes in 0.15 s, and 1.5 times that on the wires."""
    ops = tuple((Op(kind="all_reduce", rank=r, nbytes=10**9, group=(0, 1, 2, 3)),) for r in range(4))
    whole = simulate(Plan("one operation", ops, Mesh(data=4)), Machine(link=Link(0.0, 10e9)))
    assert whole.makespan == pytest.approx(0.15)
    rates = bandwidth(whole.spans)
    assert rates.algorithm == pytest.approx(6.67e9, rel=1e-3) and rates.bus == pytest.approx(10e9)


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_each_rank_of_a_ring_sends_2_of_n_minus_1_nths(n):
    report = ring_all_reduce(n, 5040, 4).check()
    assert report.nbytes == (2 * (n - 1) * S // n,) * n
    assert report.messages == (2 * (n - 1),) * n


# ---------------------------------------------------------------------------------------------------- two levels


FAST, SLOW = Link(1e-6, 100e9), Link(1e-5, 10e9)


@pytest.mark.parametrize("nodes, k", [(1, 4), (2, 2), (2, 4), (3, 2), (4, 4), (5, 1)])
def test_two_levels_take_a_ring_within_and_one_between_in_which_the_ranks_of_a_node_take_turns(nodes, k):
    size = 4 * nodes * k * 10**6
    machine = Machine(link=FAST, node=k, between=SLOW)
    plan = collective("all_reduce", "hierarchical", nodes * k, size // 4, 4, ranks_per_node=k)
    inside = 2 * (k - 1) * (1e-6 + size / k / 100e9)
    between = 2 * (nodes - 1) * k * (1e-5 + size / (nodes * k) / 10e9)
    assert simulate(plan, machine).makespan == pytest.approx(inside + between)
    assert closed_form("all_reduce", "hierarchical", nodes * k, size, FAST, ranks_per_node=k,
                       between=SLOW) == pytest.approx(inside + between)


def test_two_levels_beat_the_flat_ring_where_links_between_nodes_are_slow():
    """Two nodes of four: a flat ring brings 7/4 of the array over the slow link, two levels one."""
    machine = Machine(link=FAST, node=4, between=SLOW)
    size = 10**9
    times = {name: simulate(collective("all_reduce", name, 8, size // 4, 4, ranks_per_node=4), machine).makespan
             for name in ("ring", "hierarchical")}
    assert times["ring"] == pytest.approx(14 * (1e-5 + size / 8 / 10e9))
    assert times["hierarchical"] < 0.7 * times["ring"]
    equal = Machine(link=FAST)
    flat, two = (simulate(collective("all_reduce", name, 8, size // 4, 4, ranks_per_node=4), equal).makespan
                 for name in ("ring", "hierarchical"))
    assert two == pytest.approx(flat, rel=1e-3)         # the same bytes, fewer messages, on equal links


def test_hierarchical_terms_need_full_nodes_and_a_second_link():
    assert [str(t) for t in hierarchical_terms(8, 4)] == ["6 α + 1.5 S/β", "8 α + 1 S/β"]
    with pytest.raises(ValueError, match="7 ranks do not fill nodes of 2"):
        hierarchical_terms(7, 2)
    with pytest.raises(ValueError, match="give between=Link"):
        closed_form("all_reduce", "hierarchical", 4, S, FAST)


def test_small_arrays_want_few_messages_and_large_ones_few_bytes():
    """Why libraries choose by size: recursive doubling wins at 1 KB, ring and halving-doubling at 100 MB."""
    def best(nbytes: float) -> str:
        return min(("naive", "ring", "tree", "recursive doubling"),
                   key=lambda name: closed_form("all_reduce", name, 8, nbytes, LINK))

    assert best(1e3) == "recursive doubling" and best(1e8) == "ring"
    assert isinstance(simulate(ring_all_reduce(3, 9), Machine(link=LINK)), Trace)
