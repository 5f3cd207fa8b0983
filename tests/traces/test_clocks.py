"""By how much two clocks differ, from pings whose delays are known."""

import pytest

from disttutor.traces import Offset, offset_from_pings


def test_equal_delays_give_the_exact_offset():
    """Asked at 100, half of 20 later it answered, at 1,110 by its own clock: ahead by 1,000."""
    assert offset_from_pings(lambda: (100, 1110, 120), times=3) == Offset(1000, 10)


def test_the_shortest_round_trip_is_believed():
    pings = iter([(0, 1900, 1000), (2000, 3005, 2010), (4000, 5300, 4600)])
    assert offset_from_pings(lambda: next(pings), times=3) == Offset(1000, 5)


@pytest.mark.parametrize("there", range(0, 21, 5))
def test_the_error_bounds_what_unequal_delays_do(there):
    found = offset_from_pings(lambda: (0, there + 777, 20), times=1)
    assert abs(found.nanoseconds - 777) <= found.error == 10


def test_it_takes_a_ping():
    with pytest.raises(ValueError, match="times is 0; it takes at least 1 ping"):
        offset_from_pings(lambda: (0, 0, 0), times=0)
