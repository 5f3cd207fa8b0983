"""200 runs in a row in one process: memory and open files stay flat, no process is left.

    python benchmarks/soak.py [RUNS]
"""

import os
import sys
import time

import psutil

import disttutor
from disttutor.cluster import server


def work(rank):
    """What each run does: an all-reduce, a print, a result."""
    import torch
    import torch.distributed as dist

    x = torch.ones(1000)
    dist.all_reduce(x)
    print(rank)
    return x


def measure() -> dict[str, float]:
    """This process and the server that ranks are forked from, once the last ranks have gone."""
    me, end = psutil.Process(), time.monotonic() + 5
    while len(me.children(recursive=True)) > 1 and time.monotonic() < end:
        time.sleep(0.05)
    forks = psutil.Process(server.SERVER.pid)
    return {
        "memory of this process, MiB": me.memory_info().rss / 2**20,
        "memory of the server, MiB": forks.memory_info().rss / 2**20,
        "open files of this process": me.num_fds(),
        "open files of the server": forks.num_fds(),
        "threads of this process": me.num_threads(),
        "processes beside the server": len(me.children(recursive=True)) - 1,
        "files in the private folder": len(os.listdir(server.SERVER.folder)),
    }


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    columns, start = {}, time.perf_counter()
    for done in range(1, runs + 1):
        disttutor.run(work, ranks=2, output=lambda rank, text: None)
        if done in (max(1, runs // 10), runs // 2, runs):
            columns[done] = measure()
    seconds = time.perf_counter() - start
    print(f"{runs} runs of 2 fresh ranks in {seconds:.1f} s")
    print(f"{'after':34}" + "".join(f"{f'{n} runs':>12}" for n in columns))
    for name in next(iter(columns.values())):
        print(f"{name:34}" + "".join(f"{column[name]:12.0f}" for column in columns.values()))


if __name__ == "__main__":
    main()
