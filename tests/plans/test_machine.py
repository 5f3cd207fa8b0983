"""What operations take on a machine of a stated rate, latency and bandwidth."""

from math import inf, nan

import pytest

from disttutor.cost import simulate
from disttutor.plans import Device, Link, Machine, Mesh, Op, Plan

FAST = Machine(link=Link(0.0, 10e9))
LATE = Machine(link=Link(1e-3, 10e9))


@pytest.mark.parametrize(("machine", "kind", "ranks", "seconds"), [
    (FAST, "all_reduce", 4, 0.15), (FAST, "all_reduce", 2, 0.1), (FAST, "all_reduce", 1, 0.0),
    (FAST, "all_gather", 4, 0.075), (FAST, "reduce_scatter", 4, 0.075),
    (LATE, "all_reduce", 4, 0.156), (LATE, "all_gather", 4, 0.078), (LATE, "all_reduce", 1, 0.0),
])
def test_rings(machine, kind, ranks, seconds):
    """Case A-32: 1e9 bytes, 10e9 bytes/s."""
    assert machine.collective_seconds(kind, 1e9, ranks) == pytest.approx(seconds, rel=1e-12)


def test_a_barrier_is_all_latency():
    assert LATE.collective_seconds("barrier", 0, 4) == pytest.approx(6e-3)


@pytest.mark.parametrize("ranks", [1, 4])
def test_a_kind_without_a_ring_is_refused(ranks):
    with pytest.raises(ValueError, match="no ring is known for 'gather'; kinds that work: all_reduce"):
        FAST.collective_seconds("gather", 8, ranks)


def test_one_message_and_one_operation():
    assert Link(1e-3, 1e6).seconds(5000) == pytest.approx(6e-3)
    assert Device(2e9).seconds(1e9) == 0.5


def test_without_numbers_everything_is_free():
    assert Machine().collective_seconds("all_reduce", 1e9, 8) == 0.0
    assert Device().seconds(1e12) == 0.0


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Device(0), r"rate of device is 0 flop/s; it must be greater than 0"), (lambda: Device(nan), "nan"),
    (lambda: Link(-1.0), "latency of link is -1.0 s; it must be 0 or more"), (lambda: Link(inf), "latency"),
    (lambda: Link(nan), "latency"),
    (lambda: Link(0.0, -5, "wire"), "bandwidth of wire is -5 bytes/s"),
])
def test_impossible_machines_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Device("1"), "rate of device is '1', of type str; it must be a number of flop/s"),
    (lambda: Device(True), "rate of device is True, of type bool"),
    (lambda: Link("1"), "latency of link is '1', of type str; it must be a number of seconds"),
    (lambda: Link(0.0, None), "bandwidth of link is None, of type NoneType"),
    (lambda: Machine(5, 6), r"device of a machine is 5, of type int; give a Device, such as Device\(flops=1e12\)"),
    (lambda: Machine(Device(), 6), r"link of a machine is 6, of type int; give a Link, such as Link\("),
    (lambda: Machine(Link(), Device()), "device of a machine is Link"),
])
def test_machines_of_other_things_are_refused(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_nodes_and_their_network_cards():
    """Two nodes of four ranks; between them 1 ms and 1 MB/s. Each rank of the first sends 1 kB to its like at once."""
    within, between = Link(0.0, 1e9), Link(1e-3, 1e6)
    ops = [[Op(kind="send", rank=r, peer=r + 4, nbytes=1000)] for r in range(4)]
    ops += [[Op(kind="recv", rank=r + 4, peer=r, nbytes=1000)] for r in range(4)]
    plan = Plan("to the other node", tuple(map(tuple, ops)), Mesh(data=8))
    for nics, turns in ((1, 4), (2, 2), (4, 1), (8, 1)):
        machine = Machine(link=within, node=4, between=between, nics=nics)
        assert simulate(plan, machine).makespan == pytest.approx(turns * 2e-3)
    assert machine.path(0, 3) == within and machine.path(3, 4) == between


@pytest.mark.parametrize(("given", "message"), [
    ({"node": 4}, "needs both"), ({"between": Link()}, "needs both"), ({"node": 0, "between": Link()}, "from 1 up"),
    ({"node": 2, "between": Link(), "nics": 0}, "nics=0: it must be a whole number of network cards"),
])
def test_impossible_nodes_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Machine(**given)
