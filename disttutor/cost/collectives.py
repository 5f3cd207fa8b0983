"""What a collective takes, in closed form: how often α and how many arrays over β the longest way through it has.

Hockney's model: a message of s bytes takes α + s/β; a port carries one message at a time in each direction. There are n
ranks and S bytes of the whole array (of what each rank brings, for all-to-all).

Rings, trees, doubling and halving: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
operations in MPICH", sections 3 and 4; the ring also Patarasuk and Yuan 2009. The others are counted by hand from their
rounds. What stands here agrees with `simulate` of the plan, where the chunks are of equal size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from disttutor.plans import Link
from disttutor.plans.collectives import check_algorithm
from disttutor.plans.moves import check_counts


@dataclass(frozen=True, slots=True)
class Terms:
    """The longest way through a collective: `messages` one after the other, which carry `arrays` whole arrays."""

    messages: float
    arrays: float

    def seconds(self, nbytes: float, link: Link) -> float:
        """messages · α + arrays · nbytes/β. Raises ValueError for a size that is below 0 or no finite number."""
        if isinstance(nbytes, str) or nbytes is None or not 0 <= nbytes < inf:
            raise ValueError(f"nbytes is {nbytes!r}; it must be a number of bytes, 0 or more")
        return self.messages * link.latency + self.arrays * nbytes / link.bandwidth

    def __str__(self) -> str:
        return f"{self.messages:g} α + {self.arrays:g} S/β"


def _tree(n: int) -> int:
    """ceil(log2 n), the rounds of a tree."""
    return (n - 1).bit_length()


def _square(n: int) -> int:
    """The exponent of the largest power of two up to n."""
    return n.bit_length() - 1


def _fold(n: int) -> int:
    """Messages of whole arrays by which ranks that are too many for a power of two hand over and get back."""
    return 2 * (n != 1 << _square(n))


TERMS: dict[tuple[str, str], Callable[[int], Terms]] = {
    ("all_reduce", "naive"): lambda n: Terms(2 * (n - 1), 2 * (n - 1)),
    ("all_reduce", "ring"): lambda n: Terms(2 * (n - 1), 2 * (n - 1) / n),
    ("all_reduce", "tree"): lambda n: Terms(2 * _tree(n), 2 * _tree(n)),
    ("all_reduce", "recursive doubling"): lambda n: Terms(_square(n) + _fold(n), _square(n) + _fold(n)),
    ("all_reduce", "halving-doubling"): lambda n: Terms(
        2 * _square(n) + _fold(n), 2 * (1 - 1 / (1 << _square(n))) + _fold(n)),
    ("broadcast", "ring"): lambda n: Terms(2 * (n - 1), 2 * (n - 1) / n),
    ("broadcast", "tree"): lambda n: Terms(_tree(n), _tree(n)),
    ("broadcast", "scatter-all-gather"): lambda n: Terms(_tree(n) + n - 1, 2 * (n - 1) / n),
    ("reduce", "ring"): lambda n: Terms(2 * (n - 1), 2 * (n - 1) / n),
    ("reduce", "tree"): lambda n: Terms(_tree(n), _tree(n)),
    ("all_gather", "ring"): lambda n: Terms(n - 1, (n - 1) / n),
    ("all_gather", "Bruck"): lambda n: Terms(_tree(n), (n - 1) / n),
    ("reduce_scatter", "ring"): lambda n: Terms(n - 1, (n - 1) / n),
    ("reduce_scatter", "Bruck"): lambda n: Terms(_tree(n), (n - 1) / n),
    ("all_to_all", "ring"): lambda n: Terms(n - 1, (n - 1) / 2),
    ("all_to_all", "pairwise"): lambda n: Terms(n - 1, (n - 1) / n),
}


def terms(kind: str, algorithm: str, ranks: int) -> Terms:
    """How often α and S/β stand in the time of a collective on equal links.

    Raises ValueError for an unknown kind or algorithm, and for the hierarchical all-reduce, which has two links (see
    `hierarchical_terms`).
    """
    check_algorithm(kind, algorithm)
    check_counts(ranks, 0, 1)
    if (kind, algorithm) not in TERMS:
        raise ValueError(f"{algorithm} {kind} goes over two kinds of link; hierarchical_terms gives those of each")
    return TERMS[kind, algorithm](ranks)


def hierarchical_terms(ranks: int, ranks_per_node: int) -> tuple[Terms, Terms]:
    """Of the hierarchical all-reduce: within nodes, and between them, where the ranks of a node share its one link.

    k ranks per node, m nodes: 2(k-1) messages of S/k within; between, 2(m-1) rounds in which k ranks take turns with
    S/(km) each. Raises ValueError for nodes that are not full.
    """
    check_counts(ranks, 0, 1, ranks_per_node=ranks_per_node)
    nodes, rest = divmod(ranks, ranks_per_node)
    if rest:
        raise ValueError(f"{ranks} ranks do not fill nodes of {ranks_per_node}; simulate the plan instead")
    inside, between = 2 * (ranks_per_node - 1), 2 * (nodes - 1)
    return (Terms(inside, inside / ranks_per_node),
            Terms(between * ranks_per_node, between / nodes))


def closed_form(kind: str, algorithm: str, ranks: int, nbytes: float, link: Link, *, ranks_per_node: int = 2,
                between: Link | None = None) -> float:
    """Seconds of a collective of `nbytes` over `ranks`. The hierarchical all-reduce takes, in nodes of
    `ranks_per_node`, `link` within and `between` between them. Raises ValueError as `terms` does."""
    if (kind, algorithm) == ("all_reduce", "hierarchical"):
        if between is None:
            raise ValueError("the hierarchical all-reduce goes over two kinds of link: give between=Link(...) too")
        fast, slow = hierarchical_terms(ranks, ranks_per_node)
        return fast.seconds(nbytes, link) + slow.seconds(nbytes, between)
    return terms(kind, algorithm, ranks).seconds(nbytes, link)
