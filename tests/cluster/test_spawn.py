"""Where nothing can be forked, ranks are spawned: the same behaviour by the same interface."""

import os
import signal
import time

import psutil
import pytest
from kernel import gone

from disttutor.cluster import Cluster, RankError, server


def test_spawned_ranks(monkeypatch):
    monkeypatch.setattr(server, "can_fork", lambda: False)

    def work(rank, fault=None):
        import torch
        import torch.distributed as dist

        x = torch.tensor([rank + 1.0])
        dist.all_reduce(x)
        print("sum", x.item())
        if rank == 1 and fault == "raise":
            raise ValueError("boom")
        if rank == 1 and fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 1 and fault == "hang":
            time.sleep(600)
        if fault:
            dist.all_reduce(x)
        return x.item()

    lines = []
    with Cluster(2) as cluster:
        assert cluster.run(work, output=lambda *line: lines.append(line), timeout=60) == [3.0, 3.0]
        assert sorted(lines) == [(0, "sum 3.0\n"), (1, "sum 3.0\n")]
        processes = [psutil.Process(pid) for pid in cluster.pids]
        assert all(p.ppid() == os.getpid() for p in processes)
        with pytest.raises(RankError) as caught:
            cluster.run(work, "hang", timeout=1)
        assert caught.value.kind == "timeout" and "time.sleep(600)" in str(caught.value)
        assert gone(processes, within=5) == []
        cluster.run(work)
        processes = [psutil.Process(pid) for pid in cluster.pids]
        with pytest.raises(RankError) as caught:
            cluster.run(work, "die")
        assert str(caught.value).startswith("rank 1 was killed by SIGKILL")
        assert gone(processes, within=5) == []
