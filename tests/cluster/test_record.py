"""Recorded runs: every rank's operations in one trace, at real pace or in slow motion."""

import pytest

from disttutor.cluster import Cluster, RankError, run
from disttutor.plans import Device, Link, Machine
from disttutor.traces import SlowMotion, recorder


def train(rank, steps=2):
    import torch
    import torch.distributed as dist

    from disttutor.traces import recorder

    log = recorder()
    x = torch.ones(1000)
    group = tuple(range(dist.get_world_size()))
    for step in range(steps):
        log.next_step(step)
        begun = log.begin()
        x = x * 2
        log.end(begun, "forward", flops=1e6, microbatch=0)
        begun = log.begin()
        dist.all_reduce(x)
        log.end(begun, "all_reduce", nbytes=4000, group=group, bucket=0)
    return x[0].item()


def test_a_recorded_run():
    results = run(train, ranks=3, record=True)
    assert results == [36.0] * 3  # each step doubles, then sums three
    trace = results.trace
    assert (trace.source, trace.world_size) == ("measured", 3)
    for rank in range(3):
        spans = sorted((s for s in trace.spans if s.rank == rank), key=lambda s: s.start)
        assert [(s.kind, s.step, s.nbytes) for s in spans] == [
            ("forward", 0, 0), ("all_reduce", 0, 4000), ("forward", 1, 0), ("all_reduce", 1, 4000),
        ]  # fmt: skip
        assert all(0 <= s.start <= s.end for s in spans)
    assert min(s.start for s in trace.spans) == 0.0


def test_slow_motion_implies_recording():
    slow = SlowMotion(Machine(Device(flops=2e7, name="slow"), Link(latency=0.03, bandwidth=1e9)))
    with Cluster(2) as cluster:
        cluster.run(train)
        trace = cluster.run(train, 1, slow_motion=slow).trace
        assert trace.source == "slow motion" and slow.describe() in trace.note
        for span in trace.spans:
            assert span.duration >= (0.05 if span.kind == "forward" else 0.03) * 0.99  # 1e6 / 2e7; 2(n-1) latencies
        assert cluster.run(train).trace is None


def test_recording_ends_with_the_run():
    def state(rank):
        return recorder().recording

    with Cluster(2) as cluster:
        cluster.run(train, record=True)
        assert cluster.run(state) == [False, False]
        assert cluster.run(state, record=True) == [True, True]
        with pytest.raises(RankError):
            cluster.run(lambda rank: 1 / 0, record=True)
        assert cluster.run(state) == [False, False]
