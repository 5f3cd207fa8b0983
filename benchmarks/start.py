"""From "run this on two ranks" to the results: our fresh and kept ranks against torch's own ways to start.

Each way starts 2 ranks, all-reduces once, and hands the sums back. All ways are measured in turn in one run, so that
a busy machine slows them alike; read the ratios. Then, from a live notebook kernel: the time from the end of the
notebook's own `import torch` to the first result, with the server started in the background by `import disttutor`.

    python benchmarks/start.py [ROUNDS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 3
OF_OURS = 10  # runs of ours for each run of the others: they take a hundredth of the time
ROOT = Path(__file__).resolve().parents[1]

TORCHRUN_SCRIPT = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(4)
dist.all_reduce(x)
open(f"{sys.argv[1]}-{dist.get_rank()}", "w").write(str(x[0].item()))
dist.destroy_process_group()
"""

FIRST_RESULT = """
import time
def work(rank):
    import torch, torch.distributed as dist
    x = torch.ones(4)
    dist.all_reduce(x)
    return x[0].item()
start = time.perf_counter()
assert disttutor.run(work, ranks=2) == [2.0, 2.0]
time.perf_counter() - start
"""


def all_reduce(rank: int) -> float:
    """The work of one of our ranks."""
    import torch
    import torch.distributed as dist

    x = torch.ones(4)
    dist.all_reduce(x)
    return x[0].item()


def spawned(rank: int, folder: str) -> None:
    """The same in a process that torch.multiprocessing.spawn started."""
    import torch
    import torch.distributed as dist

    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    Path(f"{folder}/out-{rank}").write_text(str(all_reduce(rank)))
    torch.distributed.destroy_process_group()


def by_spawn() -> None:
    import torch.multiprocessing

    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(spawned, args=(folder,), nprocs=2)
        assert [Path(f"{folder}/out-{rank}").read_text() for rank in range(2)] == ["2.0", "2.0"]


def by_torchrun() -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(TORCHRUN_SCRIPT)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
        subprocess.run([*command, f"{folder}/out"], check=True, stderr=subprocess.DEVNULL)
        assert [Path(f"{folder}/out-{rank}").read_text() for rank in range(2)] == ["2.0", "2.0"]


def seconds(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(rounds: int) -> dict[str, list[float]]:
    """Seconds of every run of every way, taken in turn."""
    import disttutor

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    taken: dict[str, list[float]] = {"kept ranks": [], "fresh ranks": [], "torch.multiprocessing.spawn": [],
                                     "torchrun": []}  # fmt: skip
    disttutor.run(all_reduce)
    time.sleep(3)  # the server makes itself cheap to fork when nobody asks for ranks
    with disttutor.Cluster(2) as cluster:
        cluster.run(all_reduce)
        for _ in range(rounds):
            for _ in range(OF_OURS):
                taken["kept ranks"].append(seconds(lambda: cluster.run(all_reduce)))
            for _ in range(OF_OURS):
                taken["fresh ranks"].append(seconds(lambda: disttutor.run(all_reduce)))
                time.sleep(0.1)  # as between two cells; the old ranks' memory is then given back
            taken["torch.multiprocessing.spawn"].append(seconds(by_spawn))
            taken["torchrun"].append(seconds(by_torchrun))
    return taken


def first_results(times: int, prewarmed: bool) -> list[float]:
    """Seconds from the end of a new kernel's `import torch` to its first result."""
    sys.path.insert(0, str(ROOT / "tests"))
    from kernel import Kernel

    found = []
    for _ in range(times):
        kernel = Kernel()
        try:
            kernel.ok("import disttutor" if prewarmed else "import torch", timeout=120)
            kernel.ok("import torch" if prewarmed else "import disttutor", timeout=120)
            found.append(float(kernel.ok(FIRST_RESULT, timeout=120).result))
        finally:
            kernel.close()
    return found


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    taken = measure(rounds)
    spawn = statistics.median(taken["torch.multiprocessing.spawn"])
    torchrun = statistics.median(taken["torchrun"])
    print(f"2 ranks, one all-reduce, results back: {rounds * OF_OURS} runs of ours, {rounds} of each of the others")
    print(f"{'':30}{'median':>12}{'best':>12}{'spawn / it':>12}{'torchrun / it':>15}")
    for name, times in taken.items():
        middle = statistics.median(times)
        ratios = f"{spawn / middle:12.1f}{torchrun / middle:15.1f}"
        print(f"{name:30}{middle * 1e3:9.1f} ms{min(times) * 1e3:9.1f} ms{ratios}")
    print(f"\nfirst result after the notebook's own import torch ({rounds} new kernels each)")
    for name, prewarmed in [("import disttutor, import torch", True), ("import torch, import disttutor", False)]:
        times = first_results(rounds, prewarmed)
        print(f"{name:34}{statistics.median(times):8.2f} s, best {min(times):.2f} s")


if __name__ == "__main__":
    main()
