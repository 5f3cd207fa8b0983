"""Shared memory has no name and leaves nothing; ranks that die, stay away or lose step are told of."""

import os
import signal
import time

import psutil
import pytest
import torch
import torch.distributed as dist

import disttutor
from disttutor.cluster import RankError
from disttutor.strategies import Group, SharedMemory, group_along
from disttutor.strategies.shared_barrier import Counters, Semaphores
from disttutor.strategies.shared_segment import Named, Segment


def everybody() -> Group:
    return group_along(None, "data")


def test_nothing_has_a_name_while_it_is_used_nor_afterwards(clusters):
    def work(rank):
        before = set(os.listdir("/dev/shm"))
        with SharedMemory(everybody(), 1 << 20) as shared:
            shared.all_reduce(shared.empty(1000))
            during = set(os.listdir("/dev/shm"))
            files = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        return during - before, sum("all-reduce" in name for name in files)

    for named, files in clusters(2).run(work):
        assert named == set() and files == 1                 # what the mapping itself keeps


def test_the_memory_is_given_back(clusters):
    def work(rank):
        def mapped():
            with open("/proc/self/maps") as maps:
                return sum("all-reduce" in line for line in maps)

        counts = []
        for _ in range(3):
            with SharedMemory(everybody(), 1 << 20) as shared:
                shared.all_reduce(shared.empty(10))
                counts.append(mapped())
            del shared
            counts.append(mapped())
        return counts, os.listdir("/proc/self/fd")

    (first, fds), _ = clusters(2).run(work)
    assert first == [1, 0] * 3
    (_, again), _ = clusters(2).run(work)
    assert len(again) == len(fds)


def test_a_named_segment_loses_its_name_once_all_have_mapped_it(clusters):
    """The way of macOS, which Linux has too."""

    def work(rank):
        before = set(os.listdir("/dev/shm"))
        segment = Segment(everybody(), 8192, way=Named)
        row = segment.tensor(4096, 100, torch.float32)
        if rank == 0:
            row.fill_(7.0)
        dist.barrier()
        return set(os.listdir("/dev/shm")) - before, row.clone()

    for named, row in clusters(3).run(work):
        assert named == set() and torch.equal(row, torch.full((100,), 7.0))


@pytest.mark.parametrize("barrier", [Semaphores, Counters])
def test_no_rank_leaves_a_barrier_before_all_are_there(barrier, clusters):
    def work(rank, rounds):
        group = everybody()
        segment = Segment(group, 4096 + Counters.room(group.size))
        here = segment.tensor(0, group.size * 8, torch.int64)[::8]
        meet = barrier(group, segment, 4096, 60.0)
        early = 0
        for step in range(1, rounds + 1):
            if (step + rank) % 40 == 0:
                time.sleep(0.02)                             # long enough for the others to fall asleep
            here[rank] = step
            meet.wait()
            early += bool((here < step).any())
        return early

    assert clusters(3).run(work, 300) == [0] * 3


def test_who_waits_long_sleeps(clusters):
    def work(rank):
        with SharedMemory(everybody()) as shared:
            shared.all_reduce(torch.zeros(1))
            begun = time.thread_time()
            if rank == 0:
                time.sleep(1.0)
            shared.all_reduce(torch.zeros(1))
            return time.thread_time() - begun

    assert max(clusters(3).run(work)) < 0.2                  # of one second


@pytest.mark.parametrize("moment", ["before it is made", "while others wait", "inside"])
def test_a_rank_that_is_killed_is_named_and_leaves_nothing(moment):
    before = set(os.listdir("/dev/shm"))

    def work(rank):
        if rank == 2 and moment == "before it is made":
            os.kill(os.getpid(), signal.SIGKILL)
        with SharedMemory(everybody(), 1 << 20) as shared:
            x = shared.empty(100_000)
            shared.all_reduce(x)
            if rank == 2 and moment == "while others wait":
                time.sleep(0.3)
                os.kill(os.getpid(), signal.SIGKILL)
            if rank == 2:
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
            while True:
                shared.all_reduce(x)

    with pytest.raises(RankError, match="^rank 2 was killed by SIG(KILL|ALRM)"):
        disttutor.run(work, ranks=3, timeout=60)
    assert set(os.listdir("/dev/shm")) <= before
    assert not [p for p in psutil.process_iter(["cmdline"]) if mapped_by(p)]


def mapped_by(process: psutil.Process) -> bool:
    """Whether a process still maps such memory. Warm ranks of other tests have closed theirs."""
    try:
        return any("all-reduce" in m.path for m in process.memory_maps())
    except psutil.Error:
        return False


def test_survivors_notice_by_themselves(clusters):
    """Without a cluster that ends them all: a process that waits for one that has ended says so."""

    def work(rank):
        group = everybody()
        shared = SharedMemory(group)
        child = os.fork()
        if child == 0:
            time.sleep(0.1)
            os._exit(0)
        pids = [None] * group.size
        dist.all_gather_object(pids, child)
        from disttutor.strategies.shared_barrier import Process

        if rank == 0:                                        # as if rank 1 were that child
            shared._barrier._processes[1] = Process(pids[0])
            with pytest.raises(RuntimeError, match="rank 1 has ended, and rank 0 waits for it"):
                shared.all_reduce(torch.zeros(3))
            with pytest.raises(RuntimeError, match="was broken off"):
                shared.all_reduce(torch.zeros(3))
        dist.barrier()
        os.waitpid(child, 0)

    clusters(2).run(work)


def test_a_rank_that_does_not_come(clusters):
    def work(rank):
        shared = SharedMemory(everybody(), timeout=0.5)
        if rank == 0:
            with pytest.raises(TimeoutError, match="rank 0 waited 0.5 s for rank 1 in a barrier in shared memory"):
                shared.all_reduce(torch.zeros(3))
        dist.barrier()

    clusters(2).run(work)


@pytest.mark.parametrize(("other", "words"), [
    (lambda shared: shared.all_reduce(torch.zeros(4)), "of 3 elements of float32 .* of 4 elements of float32"),
    (lambda shared: shared.all_reduce(torch.zeros(3).double()), "of 3 elements of float32 .* elements of float64"),
    (lambda shared: shared.all_reduce(torch.zeros(3), "max"), r"all_reduce\(sum\) .* all_reduce\(max\)"),
    (lambda shared: shared.all_reduce(torch.zeros(3), shots=2), "shots=1, and .*shots=2"),
    (lambda shared: shared.all_reduce(shared.empty(3)), "outside of the shared memory, .* at byte 0 of its room"),
])
def test_calls_that_differ_are_told_on_every_rank(other, words, clusters):
    def work(rank):
        with SharedMemory(everybody(), 4096) as shared:
            try:
                other(shared) if rank == 1 else shared.all_reduce(torch.zeros(3))
            except ValueError as problem:
                text = str(problem)
            return text, shared.all_reduce(torch.ones(1)).item()    # they are still in step

    told = clusters(3).run(work)
    assert [after for _, after in told] == [3.0] * 3
    with pytest.raises(ValueError, match=words):
        raise ValueError(told[0][0])
    assert told[1][0].startswith("rank 1 calls") and "rank 0" in told[1][0]


def test_segments_that_differ(clusters):
    def work(rank):
        SharedMemory(everybody(), 10_000 * (rank + 1))

    with pytest.raises(RankError, match="segments of different size"):
        clusters(2).run(work)


def test_ranks_of_several_machines(clusters):
    """This one stands in for another machine: what a rank says of itself is what tells them apart."""

    def work(rank):
        from disttutor.strategies import shared_segment

        whole = shared_segment.machine
        shared_segment.machine = lambda: ("host-b", "another boot", "pid:[1]") if rank else whole()
        try:
            SharedMemory(everybody())
        finally:
            shared_segment.machine = whole

    with pytest.raises(RankError, match="and rank 1 on host-b: they have no memory in common. Use gloo"):
        clusters(2).run(work)
