"""One notebook kernel for all tests of this room: most of a test's time would be its start."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kernel import Kernel, gone  # noqa: E402

SETUP = """
import os, signal, sys, threading, time, warnings
import disttutor
from disttutor import Cluster, RankError, progress, run
import torch, torch.distributed as dist
"""


@pytest.fixture(scope="session")
def notebook(tmp_path_factory):
    kernel = Kernel(tmp_path_factory.mktemp("notebook"))
    kernel.ok(SETUP, timeout=120)
    kernel.ok("run(lambda rank: rank, ranks=2)", timeout=120)
    yield kernel
    processes = kernel.family()
    kernel.close()
    assert gone(processes, within=10) == []


@pytest.fixture
def new_kernel(tmp_path):
    """`new_kernel()`: a kernel of the test's own, in which nothing has run."""
    kernels = []

    def make(**options):
        kernels.append(Kernel(tmp_path, **options))
        return kernels[-1]

    yield make
    for kernel in kernels:
        kernel.close()
