"""Speedup and efficiency: how much faster k ranks are than one, and what of it communication eats.

Strong scaling: the same work on more ranks, S = Tc / (Tc/k + Tcomm), with Tc the seconds of computation on one rank.
Tcomm is no constant: give a function of k where it grows with the ranks (see `disttutor.cost.closed_form`). What runs
beside computation costs nothing; only the rest counts. Weak scaling: each rank brings the same work of its own.

Amdahl 1967, "Validity of the single processor approach to achieving large scale computing capabilities"; Gustafson
1988, "Reevaluating Amdahl's law".
"""

from collections.abc import Callable
from math import inf
from numbers import Real

from disttutor.plans.schedule import check_count

Seconds = float | Callable[[int], float]


def exposed(communication: float, hideable: float = 0.0) -> float:
    """Seconds of communication that are left when `hideable` seconds of computation go on beside it, 0 or more."""
    return max(0.0, _time("communication", communication) - _time("hideable", hideable))


def speedup(compute: float, ranks: int, communication: Seconds = 0.0, hideable: Seconds = 0.0) -> float:
    """S = Tc / (Tc/k + what of Tcomm is not hidden): the same work, cut into k equal shares.

    compute: seconds of all the work on one rank. communication: seconds a step, a number or a function of the ranks.
    hideable: seconds of a rank's own computation beside which it can go on, likewise; of more than the rank has, only
    what it has counts. Raises ValueError for times that cannot be.
    """
    share, seen = _parts(compute, ranks, communication, hideable, 1 / _count(ranks))
    return compute / (share + seen)


def weak_speedup(compute: float, ranks: int, communication: Seconds = 0.0, hideable: Seconds = 0.0) -> float:
    """k Tc / (Tc + what of Tcomm is not hidden): k times the work on k ranks, `compute` seconds on each of them."""
    share, seen = _parts(compute, ranks, communication, hideable, 1.0)
    return ranks * compute / (share + seen)


def efficiency(speedup: float, ranks: int) -> float:
    """S/k: 1 where every rank is worth a whole one."""
    return _positive("speedup", speedup) / _count(ranks)


def communication_for(speedup: float, compute: float, ranks: int) -> float:
    """Tcomm = Tc/S - Tc/k: the seconds of communication in view with which k ranks reach this speedup.

    Raises ValueError for a speedup of more than k: no time of communication, not even 0, explains it.
    """
    _positive("speedup", speedup)
    _positive("compute", compute)
    if speedup > _count(ranks):
        raise ValueError(f"a speedup of {speedup:g} on {ranks} ranks is more than {ranks}: with 0 seconds of "
                         f"communication it is {ranks}, and more has another cause, such as a smaller working set that "
                         "fits in a cache")
    return compute / speedup - compute / ranks


def amdahl(serial: float, ranks: int) -> float:
    """1 / (s + (1-s)/k): the share s of one rank's time cannot be split, the rest is split over k ranks."""
    return 1 / (_share(serial) + (1 - serial) / _count(ranks))


def gustafson(serial: float, ranks: int) -> float:
    """s + (1-s) k: the share s of the time on k ranks is not split, and the work grows with the ranks."""
    return _share(serial) + (1 - serial) * _count(ranks)


def _parts(compute: float, ranks: int, communication: Seconds, hideable: Seconds, of: float) -> tuple[float, float]:
    """A rank's own computation, and the communication that it waits for."""
    share = _positive("compute", compute) * of
    sent, beside = (time(ranks) if callable(time) else time for time in (communication, hideable))
    return share, exposed(sent, min(share, _time("hideable", beside)))


def _count(ranks: int) -> int:
    check_count("ranks", ranks)
    return ranks


def _time(name: str, value: float) -> float:
    if not isinstance(value, Real) or not 0 <= value < inf:
        raise ValueError(f"{name} is {value!r}; it must be a number of seconds, 0 or more, and finite")
    return value


def _positive(name: str, value: float) -> float:
    if not isinstance(value, Real) or not 0 < value < inf:
        raise ValueError(f"{name} is {value!r}; it must be a number above 0, and finite")
    return value


def _share(serial: float) -> float:
    if not isinstance(serial, Real) or not 0 <= serial <= 1:
        raise ValueError(f"the serial share is {serial!r}; it must be from 0 to 1, such as 0.05 for 5 %")
    return serial
