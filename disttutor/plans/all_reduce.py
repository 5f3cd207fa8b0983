"""Six ways to all-reduce, message by message. n ranks, S bytes, and a link on which a message of s bytes takes α + s/β.

| algorithm | rounds | longest way of all | good for |
|---|---|---|---|
| naive | 2(n-1) | 2(n-1) (α + S/β) | nothing |
| ring | 2(n-1) | 2(n-1) α + 2 (n-1)/n S/β | large arrays |
| tree | 2 log2 n | 2 log2 n (α + S/β) | small arrays, where two ranks must not swap |
| recursive doubling | log2 n | log2 n (α + S/β) | small arrays |
| halving-doubling | 2 log2 n | 2 log2 n α + 2 (n-1)/n S/β | all sizes, if n is a power of two |
| hierarchical | 2(k-1) + 2(n/k-1) | as rings of k within nodes and of n/k between them | slow links between nodes |

Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH", section 4, has the
middle ones and their times; the ring is Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters
of workstations".
"""

from disttutor.plans.moves import (
    Move,
    backwards,
    check_counts,
    cut,
    exchange,
    fold,
    halving,
    plan_of,
    ring,
    side_by_side,
    tree,
)
from disttutor.plans.plan import Plan


def naive_all_reduce(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Every rank sends its whole array to rank 0, which adds them up in turn and sends the sum to each."""
    check_counts(world, elements, itemsize)
    gather = [[Move(r, 0, (0,), True)] for r in range(1, world)]
    hand_out = [[Move(0, r, (0,))] for r in range(1, world)]
    return plan_of("all_reduce", "naive", world, (elements,), itemsize, [("gather", gather), ("broadcast", hand_out)])


def ring_all_reduce(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Reduce-scatter, then all-gather, of n chunks over the ring 0, 1, ..., n-1.

    In each of the first n-1 rounds every rank passes one chunk on and adds what arrives to its own, until rank r holds
    the whole sum of chunk r+1. In n-1 more rounds the finished chunks go round. Each rank sends 2(n-1)/n of the array.
    Patarasuk and Yuan 2009, section 3.
    """
    check_counts(world, elements, itemsize)
    ranks, pieces = range(world), [(c,) for c in range(world)]
    return plan_of("all_reduce", "ring", world, cut(elements, world), itemsize, [
        ("reduce-scatter", ring(ranks, pieces, reduce=True)),
        ("all-gather", ring(ranks, pieces, reduce=False, first=1))])


def tree_all_reduce(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Reduce the whole array to rank 0 along a binomial tree, and broadcast the sum back along the same tree."""
    check_counts(world, elements, itemsize)
    up = tree(range(world), (0,))
    return plan_of("all_reduce", "tree", world, (elements,), itemsize, [("reduce", up), ("broadcast", backwards(up))])


def recursive_doubling_all_reduce(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Pairs swap their whole arrays and add; then pairs of pairs, and so on. Both of a pair compute the same sum.

    Where n is no power of two, the ranks that are too many first give their part to a neighbour, and get the result
    back in the end. Thakur et al. 2005, section 4.5 (there for short arrays).
    """
    check_counts(world, elements, itemsize)
    before, left = fold(range(world), (0,))
    return plan_of("all_reduce", "recursive doubling", world, (elements,), itemsize, [
        ("fold", before), ("exchange", exchange(left, (0,))), ("unfold", backwards(before))])


def halving_doubling_all_reduce(world: int, elements: int, itemsize: int = 4) -> Plan:
    """Rabenseifner's: pairs swap halves and add, then pairs of pairs swap quarters, and so on; then all the way back.

    Reduce-scatter by recursive halving, all-gather by recursive doubling; the large messages go between neighbours. A
    number of ranks that is no power of two is folded, as in recursive doubling. Thakur et al. 2005, section 4.5 (there
    for long arrays).
    """
    check_counts(world, elements, itemsize)
    before, left = fold(range(world), tuple(range(1 << world.bit_length() - 1)))
    halves = halving(left)
    return plan_of("all_reduce", "halving-doubling", world, cut(elements, len(left)), itemsize, [
        ("fold", before), ("halving", halves), ("doubling", backwards(halves)), ("unfold", backwards(before))])


def hierarchical_all_reduce(world: int, elements: int, itemsize: int = 4, ranks_per_node: int = 2) -> Plan:
    """Reduce-scatter within each node, all-reduce between nodes, all-gather within each node; each over rings.

    Of k ranks of a node the j-th gets the node's sum of 1/k of the array, and adds it up with the j-th ranks of the
    other nodes. So 2(n/k-1)/(n/k) of the array leave a node, where a flat ring sends 2(n-1)/n. Ranks are counted node
    by node. The last node may hold fewer; one of its ranks then stands for several.
    """
    check_counts(world, elements, itemsize, ranks_per_node=ranks_per_node)
    width = min(ranks_per_node, world)
    nodes = [range(first, min(first + width, world)) for first in range(0, world, width)]
    # The array in `width` blocks, one for each place in a node; each in a piece for each node.
    blocks = [tuple(range(b * len(nodes), (b + 1) * len(nodes))) for b in range(width)]
    gather_in, between, hand_out = [], [], []
    owner = []                                          # of each node: the rank that has the sum of block b
    for node in nodes:
        shares = cut(width, len(node))
        starts = [sum(shares[:i]) for i in range(len(node))]
        pieces = [sum(blocks[start:start + share], ()) for start, share in zip(starts, shares, strict=True)]
        gather_in.append(ring(node, pieces, reduce=True, first=-1))
        hand_out.append(ring(node, pieces, reduce=False))
        owner.append([rank for rank, share in zip(node, shares, strict=True) for _ in range(share)])
    for b, block in enumerate(blocks):
        owners, pieces = [ranks[b] for ranks in owner], [(c,) for c in block]
        between.append(ring(owners, pieces, reduce=True) + ring(owners, pieces, reduce=False, first=1))
    return plan_of("all_reduce", "hierarchical", world, cut(elements, width * len(nodes)), itemsize, [
        ("reduce-scatter within nodes", side_by_side(*gather_in)),
        ("all-reduce between nodes", side_by_side(*between)),
        ("all-gather within nodes", side_by_side(*hand_out))])
