"""By how much the clocks of two machines differ (Cristian 1989, "Probabilistic clock synchronization").

The ranks of one machine share a monotonic clock and need none of this.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offset:
    """The other clock is ahead by `nanoseconds`, give or take `error` (half the shortest round trip)."""

    nanoseconds: int
    error: int


def offset_from_pings(ping: Callable[[], tuple[int, int, int]], times: int = 16) -> Offset:
    """Estimate the other side's offset. `ping()` returns (my time when asking, its time when answering, my time when
    the answer is here) in nanoseconds. The shortest round trip leaves the least room for error, so it is believed.

    Raises ValueError if `times` is below 1.
    """
    if times < 1:
        raise ValueError(f"times is {times}; it takes at least 1 ping")
    asked, answered, back = min((ping() for _ in range(times)), key=lambda p: p[2] - p[0])
    return Offset(answered - (asked + back) // 2, (back - asked + 1) // 2)
