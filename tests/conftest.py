"""What all tests share: ranks that stay warm (starting them anew for each test would take most of the time), and
property tests without a deadline (a busy machine is no fault)."""

import os
import tempfile

import hypothesis
import pytest

from disttutor.cluster import Cluster

# What a test answers is nobody's progress; kernels and commands that tests start inherit this.
_PROGRESS = tempfile.TemporaryDirectory(prefix="disttutor-progress-")
os.environ["DISTTUTOR_HOME"] = _PROGRESS.name

hypothesis.settings.register_profile("steady", deadline=None, derandomize="CI" in os.environ,
                                     suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("steady")


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
