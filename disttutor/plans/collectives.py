"""Collectives as plans, message by message, and the menu of all of them.

Every plan is for any number of ranks and elements; its goal is a `Collective`, which `check` holds it against. What the
chunks of each kind are is said there.
"""

from collections.abc import Callable

from disttutor.plans.all_reduce import (
    halving_doubling_all_reduce,
    hierarchical_all_reduce,
    naive_all_reduce,
    recursive_doubling_all_reduce,
    ring_all_reduce,
    tree_all_reduce,
)
from disttutor.plans.moves import Move, backwards, bruck, chain, check_counts, cut, plan_of, ring, scatter, tree
from disttutor.plans.partial_sums import ROOTED
from disttutor.plans.plan import Plan


def _from(root: int, world: int) -> list[int]:
    """The ranks in order, the root first."""
    return [(root + i) % world for i in range(world)]


def ring_broadcast(world: int, elements: int, itemsize: int = 4, root: int = 0) -> Plan:
    """The root's n chunks run down the chain root, root+1, ..., one behind the other, in 2(n-1) rounds."""
    check_counts(world, elements, itemsize, root=root)
    return plan_of("broadcast", "ring", world, cut(elements, world), itemsize,
                   [("pass on", chain(_from(root, world), [(c,) for c in range(world)]))], root)


def tree_broadcast(world: int, elements: int, itemsize: int = 4, root: int = 0) -> Plan:
    """Binomial tree: in each of ceil(log2 n) rounds everybody who has the array sends it to one who has not."""
    check_counts(world, elements, itemsize, root=root)
    return plan_of("broadcast", "tree", world, (elements,), itemsize,
                   [("broadcast", backwards(tree(_from(root, world), (0,))))], root)


def scatter_all_gather_broadcast(world: int, elements: int, itemsize: int = 4, root: int = 0) -> Plan:
    """The root deals out its n chunks along a binomial tree, and a ring brings all of them to everybody: as few bytes
    as the ring, in ceil(log2 n) + n-1 rounds. Van de Geijn's; Thakur et al. 2005, section 4.4 (for long messages)."""
    check_counts(world, elements, itemsize, root=root)
    ranks, pieces = _from(root, world), [(c,) for c in range(world)]
    return plan_of("broadcast", "scatter-all-gather", world, cut(elements, world), itemsize,
                   [("scatter", scatter(ranks, pieces)), ("all-gather", ring(ranks, pieces, reduce=False))], root)


def ring_reduce(world: int, elements: int, itemsize: int = 4, root: int = 0) -> Plan:
    """n chunks run up the chain to the root, one behind the other; each rank adds its own part to what passes."""
    check_counts(world, elements, itemsize, root=root)
    return plan_of("reduce", "ring", world, cut(elements, world), itemsize, [
        ("add up", backwards(chain(_from(root, world), [(c,) for c in range(world)]), reduce=True))], root)


def tree_reduce(world: int, elements: int, itemsize: int = 4, root: int = 0) -> Plan:
    """Binomial tree: in each of ceil(log2 n) rounds half of those that are left give their sum to the other half."""
    check_counts(world, elements, itemsize, root=root)
    return plan_of("reduce", "tree", world, (elements,), itemsize, [("reduce", tree(_from(root, world), (0,)))], root)


def ring_all_gather(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Every chunk goes once round the ring, in n-1 rounds."""
    check_counts(world, elements, itemsize)
    return plan_of("all_gather", "ring", world, cut(elements, world), itemsize,
                   [("all-gather", ring(range(world), [(c,) for c in range(world)], reduce=False))])


def bruck_all_gather(world: int, elements: int, itemsize: int = 4) -> Plan:
    """What a rank has doubles from round to round, for any number of ranks: ceil(log2 n) rounds.

    Bruck et al. 1997, "Efficient algorithms for all-to-all communications in multiport message-passing systems",
    section 4 (concatenation).
    """
    check_counts(world, elements, itemsize)
    return plan_of("all_gather", "Bruck", world, cut(elements, world), itemsize, [("all-gather", bruck(world))])


def ring_reduce_scatter(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Chunk r starts at rank r+1 and goes round the ring to rank r; everybody on the way adds its part."""
    check_counts(world, elements, itemsize)
    return plan_of("reduce_scatter", "ring", world, cut(elements, world), itemsize,
                   [("reduce-scatter", ring(range(world), [(c,) for c in range(world)], reduce=True, first=-1))])


def bruck_reduce_scatter(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Bruck's all-gather backwards: the halves that ranks give away shrink from round to round, as in recursive
    halving, but for any number of ranks: ceil(log2 n) rounds."""
    check_counts(world, elements, itemsize)
    return plan_of("reduce_scatter", "Bruck", world, cut(elements, world), itemsize,
                   [("reduce-scatter", backwards(bruck(world), reduce=True))])


def pairwise_all_to_all(world: int, elements: int, itemsize: int = 4) -> Plan:
    """In round k each rank sends its block for the rank k+1 behind it, straight there: n-1 rounds. `elements`: what
    each rank brings. Thakur et al. 2005, section 4.3 (there for long messages)."""
    check_counts(world, elements, itemsize)
    rounds = [[Move(r, (r + k) % world, (r * world + (r + k) % world,)) for r in range(world)]
              for k in range(1, world)]
    return plan_of("all_to_all", "pairwise", world, cut(elements, world) * world, itemsize, [("exchange", rounds)])


def ring_all_to_all(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Every rank hands all its blocks to its neighbour, who keeps its own and hands the others on. Messages go between
    neighbours only, but each block k ranks away is sent k times. `elements`: what each rank brings."""
    check_counts(world, elements, itemsize)
    rounds = []
    for step in range(world - 1):
        moves = []
        for r in range(world):
            src = (r - step) % world                     # whose blocks are passing here
            onward = [(src + k) % world for k in range(step + 1, world)]
            moves.append(Move(r, (r + 1) % world, tuple(src * world + dst for dst in onward)))
        rounds.append(moves)
    return plan_of("all_to_all", "ring", world, cut(elements, world) * world, itemsize, [("pass on", rounds)])


ALL_REDUCES: dict[str, Callable[..., Plan]] = {
    "naive": naive_all_reduce,
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "recursive doubling": recursive_doubling_all_reduce,
    "halving-doubling": halving_doubling_all_reduce,
    "hierarchical": hierarchical_all_reduce,
}
ALGORITHMS: dict[str, dict[str, Callable[..., Plan]]] = {
    "all_reduce": ALL_REDUCES,
    "broadcast": {"ring": ring_broadcast, "tree": tree_broadcast, "scatter-all-gather": scatter_all_gather_broadcast},
    "reduce": {"ring": ring_reduce, "tree": tree_reduce},
    "all_gather": {"ring": ring_all_gather, "Bruck": bruck_all_gather},
    "reduce_scatter": {"ring": ring_reduce_scatter, "Bruck": bruck_reduce_scatter},
    "all_to_all": {"ring": ring_all_to_all, "pairwise": pairwise_all_to_all},
}


def collective(kind: str, algorithm: str, world: int, elements: int, itemsize: int = 4, *, root: int = 0,
               ranks_per_node: int = 2) -> Plan:
    """The plan of a collective by name; see `ALGORITHMS` for what there is. root is for broadcast and reduce alone,
    ranks_per_node for the hierarchical all-reduce.

    Raises ValueError for an unknown kind or algorithm, and for numbers that cannot be.
    """
    check_algorithm(kind, algorithm)
    builder = ALGORITHMS[kind][algorithm]
    if kind in ROOTED:
        return builder(world, elements, itemsize, root)
    if builder is hierarchical_all_reduce:
        return builder(world, elements, itemsize, ranks_per_node)
    return builder(world, elements, itemsize)


def check_algorithm(kind: str, algorithm: str) -> None:
    """Raises ValueError for a kind or an algorithm that is not there."""
    if kind not in ALGORITHMS:
        raise ValueError(f"unknown collective {kind!r}; those that work: {', '.join(ALGORITHMS)}")
    if algorithm not in ALGORITHMS[kind]:
        raise ValueError(f"unknown algorithm {algorithm!r} for {kind}; those that work: "
                         f"{', '.join(ALGORITHMS[kind])}")
