"""Named machines: a ring's hops over several nodes, by hand."""

import pytest

from disttutor.cost.hardware import (
    EFA_V1,
    H100,
    INFINIBAND_HDR,
    INFINIBAND_NDR,
    NVLINK_4,
    ONE_NIC,
    ring_over_nodes,
)
from disttutor.plans import Link, Machine


def test_a_ring_within_a_node_is_nvlink():
    assert ring_over_nodes(INFINIBAND_NDR, 8) == NVLINK_4
    assert ring_over_nodes(INFINIBAND_NDR, 1) == NVLINK_4


def test_a_ring_over_two_nodes_has_two_long_hops_of_sixteen():
    link = ring_over_nodes(INFINIBAND_NDR, 16)
    assert link.latency == pytest.approx((2 * 14e-6 + 14 * 3.4e-6) / 16)
    assert link.name == INFINIBAND_NDR.name


@pytest.mark.parametrize("network, a_node", [(INFINIBAND_NDR, 400e9), (INFINIBAND_HDR, 200e9), (EFA_V1, 50e9),
                                             (ONE_NIC, 12.5e9)])
def test_all_nics_of_a_node_carry_rings_at_once(network, a_node):
    """The bus bandwidth of an all-reduce is that of the node's NICs together (NVIDIA/nccl#412), but for latency."""
    seconds = Machine(H100, ring_over_nodes(network, 64)).collective_seconds("all_reduce", 1e12, 64)
    assert 2 * 63 / 64 * 1e12 / seconds == pytest.approx(a_node, rel=1e-3)


def test_a_measured_all_reduce_is_near():
    """NVIDIA/nccl-tests#119: 3 nodes of 8 A100s and 4 NICs of 200 Gbit/s all-reduce 133,169,160 bytes in 2.66 ms."""
    four_nics = Link(INFINIBAND_HDR.latency, INFINIBAND_HDR.bandwidth / 2)
    seconds = Machine(H100, ring_over_nodes(four_nics, 24)).collective_seconds("all_reduce", 133_169_160, 24)
    assert seconds == pytest.approx(2.66e-3, rel=0.05)


def test_within_a_node_all_rings_share_nvlink():
    assert ring_over_nodes(Link(14e-6, 800e9), 16).bandwidth == 450e9


def test_half_a_node_is_refused():
    with pytest.raises(ValueError, match="12 GPUs do not fill nodes of 8; multiples of 8 work"):
        ring_over_nodes(INFINIBAND_NDR, 12)


def test_h100_is_four_fifths_of_its_datasheet():
    assert H100.flops / 989e12 == pytest.approx(0.803, abs=1e-3)
