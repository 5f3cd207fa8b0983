"""Ranks that stay warm over all tests: starting them anew for each would take most of the time."""

import pytest

from disttutor.cluster import Cluster


@pytest.fixture(scope="session")
def clusters():
    """`clusters(n)`: a Cluster of n kept ranks, one thread each."""
    made: dict[int, Cluster] = {}

    def of(ranks: int) -> Cluster:
        if ranks not in made:
            made[ranks] = Cluster(ranks, threads=1)
        return made[ranks]

    yield of
    for cluster in made.values():
        cluster.close()
