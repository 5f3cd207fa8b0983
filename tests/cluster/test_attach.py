"""Processes that torchrun started are a Cluster too."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import os, sys
import torch, torch.distributed as dist
from disttutor.cluster import Cluster, rank, run, world_size

cluster = Cluster()
def work(r, base):
    x = torch.tensor([base + r])
    dist.all_reduce(x)
    print("hello")
    return r, x, torch.full((200_000,), float(r))

results = cluster.run(work, 10, record=True)
with open(f"{sys.argv[1]}-{rank()}", "w") as file:      # every rank has every result
    print([(r, x.item(), y.sum().item()) for r, x, y in results], world_size(), results.trace.world_size, file=file)
print("printed once", cluster.ranks, len(set(cluster.pids)))
try:
    run(work, 1)
except RuntimeError as problem:
    print(problem)

def fail(r):
    if r == 1:
        raise ValueError("boom")
    dist.all_reduce(torch.ones(1))
cluster.run(fail, timeout=60)
"""


def test_two_ranks_of_torchrun(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(
        [*command, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    for rank in range(2):
        assert (tmp_path / f"out-{rank}").read_text() == "[(0, 21, 0.0), (1, 21, 200000.0)] 2 2\n"
    lines = done.stdout.splitlines()
    assert sorted(lines) == sorted([
        "[rank 0] hello", "[rank 1] hello", "printed once 2 2",
        "run() starts ranks of its own, but this process is one of torchrun's ranks: use Cluster().run(...)",
    ])  # fmt: skip
    assert done.returncode == 1
    headline = 'RankError: rank 1 raised ValueError: boom  (script.py, line 24: `raise ValueError("boom")`)'
    assert done.stderr.count(headline) == 1
    assert done.stderr.count("RankError:") == 1
