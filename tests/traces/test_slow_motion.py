"""Slow motion on real ranks: a link carries one collective after the other."""

import pytest

from disttutor.plans import Device, Link, Machine
from disttutor.traces import SlowMotion

MACHINE = Machine(Device(1e9), Link(0.01, 1e6))


def two_at_once(rank: int) -> None:
    import torch
    import torch.distributed as dist

    from disttutor.traces import recorder

    log = recorder()
    flights = []
    for bucket in range(2):
        x = torch.ones(2500)
        work = dist.all_reduce(x, async_op=True)
        flights.append(log.launch(work, "all_reduce", nbytes=x.nbytes, group=(0, 1), bucket=bucket))
    for flight in flights:
        log.wait(flight)


def test_what_is_launched_together_goes_over_the_link_in_turn(clusters):
    trace = clusters(2).run(two_at_once, slow_motion=SlowMotion(MACHINE)).trace
    each = 2 * (0.01 + 5000 / 1e6)                      # 2(n-1) steps of half the 10,000 bytes
    for rank in range(2):
        first, second = trace.of(rank, "comm")
        assert second.start == first.end                # not when it was launched, as in the prediction
        assert first.duration >= each - 1e-6
        assert second.duration == pytest.approx(each, abs=1e-6)


@pytest.mark.parametrize("machine", [5, None, Device(1e9)])
def test_only_a_machine_has_a_pace(machine):
    with pytest.raises(TypeError, match="slow motion keeps the pace of a machine, not of .*: give Machine"):
        SlowMotion(machine)
