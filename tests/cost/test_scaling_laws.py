"""Speedup and efficiency, against numbers that are worked out by hand."""

import pytest

from disttutor.cost import (
    amdahl,
    closed_form,
    communication_for,
    efficiency,
    exposed,
    gustafson,
    speedup,
    weak_speedup,
)
from disttutor.plans import Link


def test_without_communication_the_speedup_is_the_number_of_ranks():
    assert speedup(10, 8) == 8
    assert speedup(10, 1) == 1


def test_with_as_much_communication_as_computation_half_is_left():
    assert speedup(12, 6, communication=2) == 3         # Tcomm = Tc/k makes k/2


def test_three_and_a_half_on_four_means_a_twenty_eighth():
    assert communication_for(3.5, 28, 4) == pytest.approx(1)
    assert speedup(28, 4, communication=1) == pytest.approx(3.5)
    assert efficiency(3.5, 4) == 0.875


def test_communication_may_depend_on_the_ranks():
    """A ring all-reduce of 1 GB at 10 GB/s with 1 ms of latency, on 5 ranks: 8 · 1 ms + 8/5 · 0.1 s = 0.168 s."""
    link = Link(1e-3, 10e9)
    found = speedup(10, 5, lambda k: closed_form("all_reduce", "ring", k, 1e9, link))
    assert found == pytest.approx(10 / (2 + 0.168))


def test_only_what_cannot_be_hidden_counts():
    assert exposed(3, 2) == 1
    assert exposed(2, 3) == 0
    assert speedup(8, 4, communication=3, hideable=1) == 2          # 8 / (2 + 3 - 1)
    assert speedup(8, 4, communication=1, hideable=1.5) == 4
    assert speedup(8, 4, communication=3, hideable=lambda k: 4 / k) == 2


def test_no_more_is_hidden_than_a_rank_computes():
    assert speedup(8, 4, communication=6, hideable=100) == pytest.approx(8 / (2 + 6 - 2))


def test_weak_scaling():
    assert weak_speedup(2, 8, communication=0.5) == pytest.approx(8 * 2 / 2.5)
    assert weak_speedup(2, 8, communication=3, hideable=1) == pytest.approx(8 * 2 / 4)
    assert efficiency(weak_speedup(2, 8, communication=0.5), 8) == pytest.approx(0.8)


@pytest.mark.parametrize("serial, ranks, expected", [(0.05, 20, 10.256410), (0, 7, 7), (1, 7, 1), (0.1, 10**9, 10)])
def test_amdahl(serial, ranks, expected):
    assert amdahl(serial, ranks) == pytest.approx(expected)


@pytest.mark.parametrize("serial, ranks, expected", [(0.05, 20, 19.05), (0, 7, 7), (1, 7, 1)])
def test_gustafson(serial, ranks, expected):
    assert gustafson(serial, ranks) == pytest.approx(expected)


@pytest.mark.parametrize("call, words", [
    (lambda: speedup(0, 4), "compute"), (lambda: speedup(1, 0), "ranks"), (lambda: speedup(1, 2.5), "ranks"),
    (lambda: speedup(1, 4, -1), "communication"), (lambda: speedup(1, 4, lambda k: -k), "communication"),
    (lambda: speedup(1, 4, 1, -1), "hideable"), (lambda: exposed(float("inf")), "communication"),
    (lambda: weak_speedup(float("nan"), 4), "compute"), (lambda: efficiency(0, 4), "speedup"),
    (lambda: communication_for(5, 1, 4), "more than 4"), (lambda: communication_for(-1, 1, 4), "speedup"),
    (lambda: amdahl(5, 4), "from 0 to 1"), (lambda: gustafson(-0.1, 4), "from 0 to 1"),
    (lambda: amdahl(0.1, 0), "ranks"), (lambda: speedup("10", 4), "compute"), (lambda: amdahl("5 %", 4), "from 0 to 1"),
])
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
