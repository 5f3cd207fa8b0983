"""The patterns in which collectives move chunks about: rings, trees, halves, and their plan.

A round is a list of moves that go on side by side; an algorithm is a list of rounds. Run backwards, what adds up a
chunk on one rank hands it out from there: a broadcast is a reduction backwards, an all-gather a reduce-scatter.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from operator import index
from typing import Any, NamedTuple

from disttutor.plans.mesh import Mesh
from disttutor.plans.op import Op
from disttutor.plans.partial_sums import ROOTED, Collective
from disttutor.plans.plan import Plan


class Move(NamedTuple):
    """Chunks that go from rank to rank in one message, to be added to what is there (reduce) or to replace it."""

    src: int
    dst: int
    chunks: tuple[int, ...]
    reduce: bool = False


Round = list[Move]
Chunks = tuple[int, ...]


def plan_of(kind: str, algorithm: str, world: int, sizes: Sequence[int], itemsize: int,
            phases: Sequence[tuple[str, list[Round]]], root: int | None = None) -> Plan:
    """The plan of a collective's rounds, phase by phase. In a round each rank sends first and then receives. Chunks
    without elements are not sent; a message without others is left out, and a round stays one with no message left."""
    goal = Collective(kind, world, tuple(sizes), itemsize, root if kind in ROOTED else None,
                      tuple((name, len(rounds)) for name, rounds in phases if rounds))
    ops: list[list[Op]] = [[] for _ in range(world)]
    for number, moves in enumerate(moves for _, rounds in phases for moves in rounds):
        moves = [move._replace(chunks=full) for move in moves if (full := tuple(c for c in move.chunks if sizes[c]))]
        for src, dst, chunks, _ in moves:
            ops[src].append(Op(kind="send", rank=src, peer=dst, round=number, chunks=chunks,
                               nbytes=goal.nbytes(chunks)))
        for src, dst, chunks, reduce in moves:
            ops[dst].append(Op(kind="recv_reduce" if reduce else "recv", rank=dst, peer=src, round=number,
                               chunks=chunks, nbytes=goal.nbytes(chunks)))
    return Plan(f"{algorithm} {kind}", tuple(map(tuple, ops)), Mesh(data=world), goal)


def cut(elements: int, parts: int) -> tuple[int, ...]:
    """Sizes of `parts` chunks that differ by one at most, the larger ones first (as torch.tensor_split cuts)."""
    least, more = divmod(elements, parts)
    return tuple(least + (i < more) for i in range(parts))


def backwards(rounds: Iterable[Round], *, reduce: bool = False) -> list[Round]:
    """The last round first, and each message the other way."""
    return [[Move(dst, src, chunks, reduce) for src, dst, chunks, _ in moves] for moves in reversed(list(rounds))]


def side_by_side(*groups: list[Round]) -> list[Round]:
    """Several groups' rounds at the same time: the first of each together, then the second."""
    return [[move for moves in together for move in moves] for together in zip_longest(*groups, fillvalue=[])]


def ring(members: Sequence[int], pieces: Sequence[Chunks], *, reduce: bool, first: int = 0) -> list[Round]:
    """n-1 rounds round the ring of `members`, in which piece i+first starts at the i-th and passes all others once."""
    n = len(members)
    return [[Move(members[i], members[(i + 1) % n], pieces[(i + first - step) % n], reduce) for i in range(n)]
            for step in range(n - 1)]


def chain(members: Sequence[int], pieces: Sequence[Chunks]) -> list[Round]:
    """All pieces from the first member on to the last, one behind the other: while one goes on, the next follows."""
    hops = len(members) - 1
    return [[Move(members[i], members[i + 1], pieces[step - i]) for i in range(hops) if 0 <= step - i < len(pieces)]
            for step in range(len(pieces) + hops - 1)] if hops else []


def tree(members: Sequence[int], chunks: Chunks) -> list[Round]:
    """Reduce to the first member along a binomial tree: in round k the i-th with i an odd multiple of 2^k sends to the
    one 2^k before it."""
    n = len(members)
    return [[Move(members[i], members[i - (1 << k)], chunks, True) for i in range(1 << k, n, 2 << k)]
            for k in range((n - 1).bit_length())]


def scatter(members: Sequence[int], pieces: Sequence[Chunks]) -> list[Round]:
    """Piece i from the first member to the i-th, along the tree: each passes on what is meant for its branches."""
    n = len(members)
    return [[Move(members[i - (1 << k)], members[i], sum(pieces[i:i + (1 << k)], ())) for i in range(1 << k, n, 2 << k)]
            for k in reversed(range((n - 1).bit_length()))]


def fold(members: Sequence[int], chunks: Chunks) -> tuple[list[Round], list[int]]:
    """Make the members a power of two: of so many pairs at the front as there are too many, the first adds its part to
    the second's and stands aside. That round (none if there is no need), and who is left."""
    extra = len(members) - (1 << len(members).bit_length() - 1)
    pairs = [(members[2 * i], members[2 * i + 1]) for i in range(extra)]
    return ([[Move(src, dst, chunks, True) for src, dst in pairs]] if pairs else [],
            [dst for _, dst in pairs] + list(members[2 * extra:]))


def exchange(members: Sequence[int], chunks: Chunks) -> list[Round]:
    """In round k each of 2^m members swaps the sum of what it knows with the one whose number differs in bit k."""
    return [[Move(members[i], members[i ^ (1 << k)], chunks, True) for i in range(len(members))]
            for k in range(len(members).bit_length() - 1)]


def halving(members: Sequence[int]) -> list[Round]:
    """Reduce-scatter of 2^m chunks over 2^m members: in round k each pairs with the one whose number differs in bit k,
    and each takes over one half of what both were at."""
    n = len(members)
    mine, rounds = [tuple(range(n))] * n, []
    for k in range(n.bit_length() - 1):
        half = [(chunks[:len(chunks) // 2], chunks[len(chunks) // 2:]) for chunks in mine]
        rounds.append([Move(members[i], members[i ^ (1 << k)], half[i][~i >> k & 1], True) for i in range(n)])
        mine = [half[i][i >> k & 1] for i in range(n)]
    return rounds


def bruck(world: int) -> list[Round]:
    """All-gather of any number of ranks in ceil(log2 n) rounds: in round k each passes what it has, which are its own
    chunk and the 2^k - 1 that follow, to the one 2^k before it; in the last round only what is still missing."""
    return [[Move(r, (r - (1 << k)) % world, tuple((r + i) % world for i in range(min(1 << k, world - (1 << k)))))
             for r in range(world)] for k in range((world - 1).bit_length())]


def check_counts(world: Any, elements: Any, itemsize: Any, *, root: Any = 0, ranks_per_node: Any = 1) -> None:
    """Raises TypeError for what is no whole number and ValueError for one that cannot be."""
    for name, value, least in (("the world size", world, 1), ("the number of elements", elements, 0),
                               ("itemsize", itemsize, 1), ("root", root, 0), ("ranks_per_node", ranks_per_node, 1)):
        try:
            if isinstance(value, bool) or index(value) is None:
                raise TypeError
        except TypeError:
            raise TypeError(f"{name} is {value!r}, of type {type(value).__name__}; it must be a whole number") from None
        if value < least:
            raise ValueError(f"{name} is {value}; it must be {least} or more")
    if root >= world:
        raise ValueError(f"root is {root}, but the ranks are 0 to {world - 1}")
