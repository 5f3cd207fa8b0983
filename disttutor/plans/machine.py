"""A machine model in three numbers: what slow motion stretches a run to, and what the simulator prices a plan with.

A message of S bytes takes α + S/β: latency plus size over bandwidth (Hockney 1994). Compute of F operations takes
F divided by the rate that the device reaches in practice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from numbers import Real


def _check_number(what: str, value: float, unit: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{what} is {value!r}, of type {type(value).__name__}; it must be a number of {unit}")


def _check_positive(what: str, value: float, unit: str) -> None:
    _check_number(what, value, unit)
    if not value > 0:
        raise ValueError(f"{what} is {value!r} {unit}; it must be greater than 0")


@dataclass(frozen=True, slots=True)
class Device:
    """A device of `flops` floating-point operations a second (the rate reached, not the datasheet's peak)."""

    flops: float = inf
    name: str = "device"

    def __post_init__(self) -> None:
        _check_positive(f"the rate of {self.name}", self.flops, "flop/s")

    def seconds(self, flops: float) -> float:
        """Time of `flops` operations, in seconds."""
        return flops / self.flops


@dataclass(frozen=True, slots=True)
class Link:
    """A link of `latency` seconds (α) and `bandwidth` bytes a second and direction (β)."""

    latency: float = 0.0
    bandwidth: float = inf
    name: str = "link"

    def __post_init__(self) -> None:
        _check_number(f"the latency of {self.name}", self.latency, "seconds")
        if not 0 <= self.latency < inf:
            raise ValueError(f"the latency of {self.name} is {self.latency!r} s; it must be 0 or more")
        _check_positive(f"the bandwidth of {self.name}", self.bandwidth, "bytes/s")

    def seconds(self, nbytes: float) -> float:
        """Time of one message of `nbytes`, in seconds: α + bytes/β."""
        return self.latency + nbytes / self.bandwidth


@dataclass(frozen=True, slots=True)
class Machine:
    """Equal devices, joined by equal links; if `node` is given, in nodes of so many, with slower links between nodes.

    node: ranks of a node, counted from rank 0 on. between: a link that joins a node with all others. nics: so many of
    them has a node; its ranks are dealt out to them, and those at the same one take turns. Raises TypeError for
    anything else in their places, ValueError for a node without such a link, the link without nodes, and a node of less
    than one rank or network card.
    """

    device: Device = field(default_factory=Device)
    link: Link = field(default_factory=Link)
    node: int | None = None
    between: Link | None = None
    nics: int = 1

    def __post_init__(self) -> None:
        for name, kind, example in (("device", Device, "Device(flops=1e12)"),
                                    ("link", Link, "Link(latency=1e-5, bandwidth=1e10)")):
            if not isinstance(value := getattr(self, name), kind):
                raise TypeError(f"the {name} of a machine is {value!r}, of type {type(value).__name__}; "
                                f"give a {kind.__name__}, such as {example}")
        if (self.node is None) != (self.between is None):
            raise ValueError(f"node={self.node!r} and between={self.between!r}: a machine of several nodes needs both, "
                             "the ranks of a node and the link between nodes; one of a single node needs neither")
        if self.node is not None and (type(self.node) is not int or self.node < 1):
            raise ValueError(f"node={self.node!r}: it must be a whole number of ranks from 1 up")
        if type(self.nics) is not int or self.nics < 1:
            raise ValueError(f"nics={self.nics!r}: it must be a whole number of network cards from 1 up")
        if self.between is not None and not isinstance(self.between, Link):
            raise TypeError(f"the link between nodes is {self.between!r}, of type {type(self.between).__name__}; "
                            "give a Link, such as Link(latency=1e-5, bandwidth=1e10)")

    def path(self, one: int, other: int) -> Link:
        """The link by which a message goes from one rank to the other."""
        return self.link if self.node is None or one // self.node == other // self.node else self.between

    def port(self, rank: int, peer: int) -> tuple[int, ...]:
        """What a message between `rank` and `peer` occupies at the side of `rank`: its own port (rank,), or one of its
        node's network cards (node, card)."""
        if self.node is None or rank // self.node == peer // self.node:
            return (rank,)
        return rank // self.node, rank % self.node % self.nics

    def collective_seconds(self, kind: str, nbytes: float, group: int | Sequence[int]) -> float:
        """Time of a collective over a ring of the ranks of `group` (a number: of so many ranks, which lie together from
        rank 0 on), in seconds; `nbytes` is the whole array (as nccl-tests count).

        All-reduce is 2(n-1) steps of nbytes/n each (Patarasuk and Yuan 2009); all-gather and reduce-scatter are n-1
        such steps; broadcast and reduce send the array down the ring in n pieces, 2(n-1) steps of which each link
        carries n. Over several nodes each step is as slow as its slowest hop. Raises ValueError for a kind that has no
        ring.
        """
        ranks = group if isinstance(group, int) else len(group)
        steps = {"all_reduce": 2 * (ranks - 1), "all_gather": ranks - 1, "reduce_scatter": ranks - 1,
                 "all_to_all": ranks - 1, "broadcast": 2 * (ranks - 1), "reduce": 2 * (ranks - 1),
                 "barrier": 2 * (ranks - 1)}
        if kind not in steps:
            raise ValueError(f"no ring is known for {kind!r}; kinds that work: {', '.join(steps)}")
        if ranks == 1:
            return 0.0
        nodes = {rank // (self.node or inf) for rank in (range(ranks) if isinstance(group, int) else group)}
        hops = [self.link] * (len(nodes) < ranks) + [self.between] * (len(nodes) > 1)
        return steps[kind] * max(link.seconds(nbytes / ranks) for link in hops)
