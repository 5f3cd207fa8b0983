"""What run() and Cluster promise when all goes well, and what they refuse before anything starts."""

import functools
import os
import sys
import threading
import time

import psutil
import pytest
import torch
import torch.distributed as dist
from kernel import gone

from disttutor.cluster import Cluster, RankError, Results, run


@pytest.fixture(scope="module")
def pair():
    with Cluster(2) as cluster:
        yield cluster


def test_results_in_the_order_of_the_ranks(pair):
    def train(rank, base, step):
        total = torch.tensor([float(rank)])
        dist.all_reduce(total)
        return base + rank * step, total

    results = run(train, 10, 5, ranks=3)
    assert isinstance(results, Results) and isinstance(results, list)
    assert [value for value, _ in results] == [10, 15, 20]
    assert [total.item() for _, total in results] == [3.0, 3.0, 3.0]
    assert results.trace is None and 0 < results.seconds < 60
    assert [value for value, _ in pair.run(train, 10, 5)] == [10, 15]


def test_fresh_ranks_forget_and_kept_ranks_remember(pair):
    def count(rank):
        import builtins

        builtins.visits = getattr(builtins, "visits", 0) + 1
        return os.getpid(), builtins.visits

    assert [visits for _ in range(2) for _, visits in run(count)] == [1, 1, 1, 1]
    first, second = pair.run(count), pair.run(count)
    assert [visits for _, visits in first + second] == [1, 1, 2, 2]
    assert [pid for pid, _ in first] == [pid for pid, _ in second] == pair.pids


def test_models_and_tensors_by_value():
    """Also what plain pickling of tensors gets wrong or slow: views, tied weights, graphs, odd layouts."""

    def work(rank, model, x):
        out = model(x).sum()
        return {
            "model": model,
            "loss": out * (rank + 1),
            "view": torch.arange(1_000_000.0)[10:13],
            "turned": torch.arange(6).reshape(2, 3).t(),
            "half": torch.tensor([1.5], dtype=torch.bfloat16),
            "empty": torch.empty(0, 3),
            "large": torch.full((300_000,), float(rank), dtype=torch.float64),
            "sparse": torch.eye(3).to_sparse(),
            "flag": torch.tensor(True),
        }

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).double().eval()
    model[1].weight = model[0].weight
    x = torch.randn(4, 3, dtype=torch.float64)
    zero, one = run(work, model, x)
    assert zero["loss"].item() == model(x).sum().item() and one["loss"].item() == 2 * zero["loss"].item()
    assert not zero["loss"].requires_grad
    back = one["model"]
    assert isinstance(back[0].weight, torch.nn.Parameter) and back[0].weight.requires_grad
    assert back[1].weight is back[0].weight
    assert all(torch.equal(a, b) for a, b in zip(back.state_dict().values(), model.state_dict().values(), strict=True))
    back[0].weight.data += 1
    assert not torch.equal(back[0].weight, model[0].weight)
    assert one["view"].tolist() == [10, 11, 12] and one["view"].untyped_storage().nbytes() == 12
    assert one["turned"].tolist() == [[0, 3], [1, 4], [2, 5]] and one["turned"].stride() == (1, 3)
    assert one["half"].dtype is torch.bfloat16 and one["half"].item() == 1.5
    assert one["empty"].shape == (0, 3) and one["flag"].item() is True
    assert torch.equal(one["large"], torch.ones(300_000, dtype=torch.float64))
    assert torch.equal(one["sparse"].to_dense(), torch.eye(3))


def test_large_results(pair):
    results = pair.run(lambda rank: torch.full((40_000_000,), float(rank)))
    assert [(r[0].item(), r[-1].item(), len(r)) for r in results] == [(0, 0, 40_000_000), (1, 1, 40_000_000)]


def test_the_notebooks_folder_path_and_environment(tmp_path, monkeypatch, pair):
    (tmp_path / "learners_module.py").write_text("answer = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.setenv("LEARNERS_SETTING", "yes")
    monkeypatch.setenv("MASTER_PORT", "1")
    before = dict(os.environ)

    def look(rank):
        import learners_module

        names = ("LEARNERS_SETTING", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT")
        return learners_module.answer, os.getcwd(), [os.environ.get(name) for name in names]

    assert run(look) == [
        (1, str(tmp_path), ["yes", "0", "0", "2", None]),
        (1, str(tmp_path), ["yes", "1", "1", "2", None]),
    ]
    (tmp_path / "learners_module.py").write_text("answer = 22\n")
    assert [answer for answer, *_ in run(look)] == [22, 22]  # edited: fresh ranks see it
    assert dict(os.environ) == before


def test_threads_per_rank(monkeypatch):
    def threads(rank):
        return torch.get_num_threads()

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = len(os.sched_getaffinity(0))
    assert run(threads, ranks=1) == [cores]
    assert run(threads, ranks=cores + 1) == [1] * (cores + 1)
    assert run(threads, ranks=2, threads=3) == [3, 3]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert run(threads, ranks=2) == [2, 2]


def test_fresh_ranks_start_alike_and_numpy_does_not_repeat():
    """torch's generator starts as in any new process; numpy's must not be a copy of the server's."""

    def draw(rank):
        import random

        import numpy

        return torch.rand(1).item(), numpy.random.rand(), random.random()

    first, second = run(draw), run(draw)
    assert len({t for t, _, _ in first + second}) == 1
    assert len({n for _, n, _ in first + second}) == 4
    assert len({r for _, _, r in first + second}) == 4


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: run(len, ranks=0), ValueError, "ranks=0: there must be at least one rank"),
        (lambda: run(len, ranks="4"), TypeError, "ranks='4' is of type str"),
        (lambda: run(len, ranks=2.0), TypeError, "ranks=2.0 is of type float"),
        (lambda: run(len, ranks=True), TypeError, "ranks=True is of type bool"),
        (lambda: Cluster(-1), ValueError, "ranks=-1"),
        (lambda: run(3), TypeError, "must be a function that every rank runs, not 3 (int)"),
        (lambda: run(None), TypeError, "leave the brackets away"),
        (lambda: run(lambda: 1), TypeError, "would be called as <lambda>(rank)"),
        (lambda: run(lambda rank, x: 1), TypeError, "missing a required argument: 'x'"),
        (lambda: run(lambda rank: 1, 7), TypeError, "would be called as <lambda>(rank, 7): too many positional"),
        (lambda: run(lambda rank: 1, timeout=-1), ValueError, "timeout=-1: give a positive number of seconds"),
        (lambda: run(lambda rank: 1, timeout=0), ValueError, "timeout=0"),
        (lambda: run(lambda rank: 1, timeout="5"), TypeError, "timeout='5' is of type str"),
        (lambda: run(lambda rank: 1, threads=0), ValueError, "a rank needs at least one thread"),
        (lambda: run(lambda rank: 1, device="gpu"), ValueError, "choose one of 'cpu', 'cuda', 'auto'"),
    ],
)
def test_refused_before_anything_starts(call, error, words, monkeypatch):
    monkeypatch.setattr("disttutor.cluster.ranks.launcher", lambda: pytest.fail("something was started"))
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_no_gpu_is_said_before_anything_starts(monkeypatch):
    monkeypatch.setattr("disttutor.cluster.devices.count_gpus", lambda: 0)
    with pytest.raises(RuntimeError, match='finds no NVIDIA GPU on this machine.*Use device="cpu"'):
        run(lambda rank: 1, device="cuda")
    assert run(lambda rank: str(torch.empty(1).device), device="auto") == ["cpu", "cpu"]


def test_a_result_that_cannot_be_sent():
    with pytest.raises(RankError) as caught:
        run(lambda rank: [1, (n for n in "ab")] if rank == 1 else 0)
    error = caught.value
    assert (error.rank, error.kind) == (1, "raised")
    assert "rank 1 raised TypeError: the result cannot be sent back" in str(error).splitlines()[0]
    assert "list holding generator, int" in str(error).splitlines()[0]


def test_a_result_that_cannot_be_read_here():
    class OnlyThere:
        def __reduce__(self):
            return only_in_a_rank, ()

    def only_in_a_rank():
        if "DISTTUTOR_RANK" not in os.environ:
            raise LookupError("not here")

    with pytest.raises(RankError, match="rank 0 returned something that cannot be read here: LookupError: not here"):
        run(lambda rank: OnlyThere())


def test_an_exception_that_cannot_be_pickled_nor_printed():
    class Odd(Exception):
        def __init__(self):
            self.lock = threading.Lock()

        def __str__(self):
            raise RuntimeError("no text")

    def fail(rank):
        raise Odd

    with pytest.raises(RankError) as caught:
        run(fail)
    first = str(caught.value).splitlines()[0]
    assert first.startswith("rank 0 raised Odd: (its message cannot be shown)  (test_run.py, line ")
    assert "(rank 1 did the same)" in str(caught.value)


def test_partial_and_method_and_callable_object():
    class Job:
        def __init__(self, base):
            self.base = base

        def work(self, rank):
            return self.base + rank

        def __call__(self, rank):
            return self.base - rank

    assert run(Job(5).work) == [5, 6]
    assert run(Job(5)) == [5, 4]
    assert run(functools.partial(pow, 3)) == [1, 3]


def test_a_class_of_the_notebook_comes_back_as_itself(pair):
    class Point:
        def __init__(self, x):
            self.x = x

    points = pair.run(lambda rank: Point(rank))
    assert all(type(p) is Point for p in points) and [p.x for p in points] == [0, 1]


def test_ranks_start_no_ranks():
    def nest(rank):
        from disttutor.cluster import Cluster, run

        told = []
        for start in (lambda: run(len), lambda: Cluster(2)):
            try:
                start()
            except RuntimeError as problem:
                told.append(str(problem))
        return told

    for rank, told in enumerate(run(nest)):
        assert told == [f"this is rank {rank} of a run already: ranks are started from the notebook only"] * 2


def test_many_ranks_on_few_cores_is_remarked():
    lines = []
    ranks = 4 * len(os.sched_getaffinity(0)) + 1
    assert run(lambda rank: rank, ranks=ranks, output=lambda rank, text: lines.append((rank, text))) == [*range(ranks)]
    assert lines == [(None, f"{ranks} ranks share {(ranks - 1) // 4} cores: it works, but what you see is mostly "
                            "their waiting\n")]  # fmt: skip


def test_closed_and_collected_clusters_leave_nothing():
    cluster = Cluster(2)
    cluster.run(lambda rank: 1)
    processes = [psutil.Process(pid) for pid in cluster.pids]
    cluster.close()
    cluster.close()
    assert gone(processes, within=5) == []
    with pytest.raises(RuntimeError, match="this cluster is closed"):
        cluster.run(lambda rank: 1)
    cluster = Cluster(2)
    processes = [psutil.Process(pid) for pid in cluster.pids]
    del cluster
    assert gone(processes, within=5) == []


def test_a_rank_killed_between_two_runs_is_replaced(pair):
    before = pair.pids
    os.kill(before[1], 9)
    assert gone([psutil.Process(pid) for pid in before[1:]], within=5) == []
    time.sleep(0.2)
    assert pair.run(lambda rank: rank) == [0, 1]
    assert not set(before) & set(pair.pids)


def test_describe(pair):
    assert pair.ranks == 2
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    assert pair.describe() == f"2 ranks on the CPU, {threads} thread{'s' * (threads > 1)} each, gloo"


def test_torchs_own_parallel_classes(pair):
    """The process group is an ordinary one: DDP, FSDP and sub-groups work on it."""

    def train(rank):
        from torch.distributed.fsdp import fully_shard

        torch.manual_seed(0)
        model, sharded = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
        sharded.load_state_dict(model.state_dict())
        fully_shard(sharded)
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        x = torch.full((3, 4), float(rank + 1))
        wrapped(x).sum().backward()
        sharded(x).sum().backward()
        alone = dist.new_group([rank], use_local_synchronization=True)
        y = torch.ones(1)
        dist.all_reduce(y, group=alone)
        return model.weight.grad, sharded.weight.grad.full_tensor(), y.item()

    for ddp, fsdp, alone in pair.run(train):
        assert torch.equal(ddp, torch.full((2, 4), 4.5))  # mean over ranks of 3·(rank + 1)
        assert torch.equal(fsdp, torch.full((2, 4), 4.5))
        assert alone == 1.0


def test_a_destroyed_group_is_said_and_mended(pair):
    pair.run(lambda rank: dist.destroy_process_group())
    with pytest.raises(RankError, match="an earlier run destroyed the process group of these ranks"):
        pair.run(lambda rank: rank)
    assert pair.run(lambda rank: rank) == [0, 1]


def test_data_loader_workers_in_ranks():
    def load(rank):
        from torch.utils.data import DataLoader

        return [batch.tolist() for batch in DataLoader(range(4), batch_size=2, num_workers=2)]

    assert run(load) == [[[0, 1], [2, 3]]] * 2


def test_the_import_is_light():
    import subprocess

    code = "import sys, disttutor.cluster; print({'torch', 'numpy', 'IPython', 'tqdm'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
