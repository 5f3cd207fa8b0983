"""Who could get in: nothing listens beyond the loopback interface, nothing that others may write to."""

import os
import stat
from pathlib import Path

import psutil

from disttutor.cluster import Cluster, run, server


def test_only_loopback_listens():
    def meet(rank):
        import torch
        import torch.distributed as dist

        dist.all_reduce(torch.ones(2))
        group = dist.new_group([0, 1])
        dist.all_reduce(torch.ones(2), group=group)

    with Cluster(2) as cluster:
        cluster.run(meet)
        processes = [psutil.Process(pid) for pid in [*cluster.pids, server.SERVER.pid, os.getpid()]]
        listening = [
            [c for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN or (c.laddr and not c.raddr)]
            for p in processes
        ]
        assert [len(sockets) > 0 for sockets in listening[:2]] == [True, True]
        assert listening[2] == []
        for sockets in listening[:2]:
            assert {c.laddr.ip for c in sockets} <= {"127.0.0.1", "::1"}


def test_the_rendezvous_is_private():
    def folder(rank):
        import os

        import torch.distributed as dist

        dist.barrier()
        return {path for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")
                and "disttutor-" in (path := os.readlink(f"/proc/self/fd/{fd}"))}  # fmt: skip

    with Cluster(2) as cluster:
        files = [Path(path) for path in cluster.run(folder)[0]]
        assert sorted(file.name for file in files) == ["crash-0", "stack-0"]
        (group,) = {file.parent for file in files}
        assert (group / "store").exists()
        for private in (group, group.parent):
            mode = private.stat()
            assert stat.S_IMODE(mode.st_mode) == 0o700 and mode.st_uid == os.getuid()
    assert not group.exists()


def test_no_file_is_left_behind():
    run(lambda rank: rank)                              # starts the server, if no test has done so
    before = set(os.listdir(server.SERVER.folder))      # folders of the ranks that other tests keep warm
    run(lambda rank: rank)
    assert set(os.listdir(server.SERVER.folder)) == before
