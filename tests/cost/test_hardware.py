"""Named machines: a ring's hops over several nodes, by hand."""

import pytest

from disttutor.cost.hardware import H100, INFINIBAND_NDR, NVLINK_4, ring_over_nodes


def test_a_ring_within_a_node_is_nvlink():
    assert ring_over_nodes(INFINIBAND_NDR, 8) == NVLINK_4
    assert ring_over_nodes(INFINIBAND_NDR, 1) == NVLINK_4


def test_a_ring_over_two_nodes_has_two_long_hops_of_sixteen():
    link = ring_over_nodes(INFINIBAND_NDR, 16)
    assert link.latency == pytest.approx((2 * 14e-6 + 14 * 3.4e-6) / 16)
    assert link.bandwidth == 50e9 and link.name == INFINIBAND_NDR.name


def test_half_a_node_is_refused():
    with pytest.raises(ValueError, match="12 GPUs do not fill nodes of 8; multiples of 8 work"):
        ring_over_nodes(INFINIBAND_NDR, 12)


def test_h100_is_four_fifths_of_its_datasheet():
    assert H100.flops / 989e12 == pytest.approx(0.803, abs=1e-3)
