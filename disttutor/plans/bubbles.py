"""How long a pipeline's step takes, by formula: the closed forms of the papers, each with where it holds.

Times are those of one micro-batch through one rank's whole share of the layers, in seconds: T_F forward, T_B the
gradient of the share's input, T_W that of its weights. A schedule that does not split backward takes T_B + T_W for it.
All ranks are alike, and messages take no time; for other machines there is `disttutor.cost.simulate`.

Idle time has two usual measures, and a number says little without its name: the share of the total, (p-1)/(m+p-1) for
GPipe in its own paper, and the ratio to the ideal, (p-1)/m for the same pipeline in Megatron-LM's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from disttutor.plans.schedule import check_count


@dataclass(frozen=True, slots=True)
class Bubble:
    """What a closed form says of one step.

    busy: seconds that each rank works, m (T_F + T_B + T_W), which is the ideal. makespan: seconds from the first
    rank's start to the last one's end. longest_span: seconds from a rank's own start to its own end, on the rank where
    that is most; it is shorter than the makespan where ranks start and end in a row. in_flight[rank]: the most
    activations that a rank holds at one time, from a forward to the last backward that needs them (its W where backward
    is split), in micro-batches on one stage; of a rank's v stages each holds 1/v of its share.
    """

    busy: float
    makespan: float
    longest_span: float
    in_flight: tuple[int, ...]

    @property
    def idle(self) -> float:
        """Seconds of the makespan in which a rank does not work; the same on every rank."""
        return self.makespan - self.busy

    @property
    def share_of_total(self) -> float:
        """Idle time as a share of the makespan, from 0 to 1."""
        return self.idle / self.makespan

    @property
    def ratio_to_ideal(self) -> float:
        """Idle time over the time that a rank works; it may be more than 1."""
        return self.idle / self.busy

    @property
    def share_of_longest_span(self) -> float:
        """The same share of the longest span: Zero Bubble's bubble rate (arXiv 2401.10241, table 5)."""
        return (self.longest_span - self.busy) / self.longest_span


def naive(p: int, m: int, t_f: float, t_b: float, t_w: float = 0) -> Bubble:
    """One rank at a time: p times the work of one. Any m, any times."""
    work = _work(p, m, t_f, t_b, t_w)
    return _bubble(m * work, m * (p - 1) * work, [1] * p)


def gpipe(p: int, m: int, t_f: float, t_b: float, t_w: float = 0) -> Bubble:
    """Idle (p-1)(T_F + T_B + T_W), all m micro-batches in flight. Any m, any times.

    Huang et al. 2019, GPipe (arXiv 1811.06965), section 2.3; Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.1.
    """
    work = _work(p, m, t_f, t_b, t_w)
    return _bubble(m * work, (p - 1) * work, [m] * p)


def one_f_one_b(p: int, m: int, t_f: float, t_b: float, t_w: float = 0) -> Bubble:
    """GPipe's idle time with min(m, p-s) micro-batches in flight on stage s. Any m, any times.

    Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.1.
    """
    work = _work(p, m, t_f, t_b, t_w)
    return _bubble(m * work, (p - 1) * work, [min(m, p - s) for s in range(p)])


def looped_bfs(p: int, m: int, t_f: float, t_b: float, t_w: float = 0, v: int = 2) -> Bubble:
    """Idle (p-1)(T_F + T_B + T_W)/v, all m micro-batches in flight on all v stages. Any times.

    With m < p each of v-1 loops waits p-m turns more for the first micro-batch to come round, for which the paper has
    no form. Lamy-Poirier 2023 (arXiv 2211.05953).
    """
    work = _work(p, m, t_f, t_b, t_w, v)
    return _bubble(m * work, _loops(p, m, v) * work / v, [v * m] * p)


def interleaved_1f1b(p: int, m: int, t_f: float, t_b: float, t_w: float = 0, v: int = 2) -> Bubble:
    """Idle (p-1)(T_F + T_B + T_W)/v. Any times, and any m with this course's rounds; Megatron's m is a multiple of p.

    With m < p as in `looped_bfs`. In flight on rank r with m = kp: (v-1)p + 2(p-1-r) + 1 of a stage each; on rank 0
    that is p (1 + (p-1)/(pv)) shares. Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.2; Korthikanti et al. 2022
    (arXiv 2205.05198), section 4.2.3.
    """
    work = _work(p, m, t_f, t_b, t_w, v)
    ahead = [(2 if v > 1 else 1) * (p - 1 - r) for r in range(p)]
    return _bubble(m * work, _loops(p, m, v) * work / v,
                   [min(v * m, (v - 1) * _round(p, m) + n + 1) for n in ahead])


def zb_h1(p: int, m: int, t_f: float, t_b: float, t_w: float) -> Bubble:
    """Idle (p-1)(T_F + T_B - T_W) for m >= p, if W is no longer than F and no longer than B.

    With fewer micro-batches there are fewer W's for the last gap: (p-1)(T_F + T_B) - (m-1) T_W. In flight min(m, p).
    Qi et al. 2023, Zero Bubble (arXiv 2401.10241), table 2; for m < p it is worked out here.
    """
    work = _work(p, m, t_f, t_b, t_w)
    _short_w("ZB-H1", t_f, t_b, t_w)
    return _bubble(m * work, (p - 1) * (t_f + t_b) - (min(m, p) - 1) * t_w, [min(m, p)] * p)


def zb_h2(p: int, m: int, t_f: float, t_b: float, t_w: float) -> Bubble:
    """No rank idles more than (p-1)(T_F + T_B - 2 T_W) within its span, if m >= 2p-1 and W is no longer than F and B.

    The spans of the ranks start T_F after one another, so the step as a whole has (p-1) max(T_F, T_F + T_B - 2 T_W)
    idle time: the paper's figure 3 lets ranks go on to the next step before others have ended this one. In flight 2p-1.
    Qi et al. 2023, Zero Bubble (arXiv 2401.10241), section 2.2 and table 2; the makespan is worked out here.
    """
    work = _work(p, m, t_f, t_b, t_w)
    _enough("ZB-H2", p, m, 2 * p - 1)
    _short_w("ZB-H2", t_f, t_b, t_w)
    inside = (p - 1) * (t_f + t_b - 2 * t_w)
    return _bubble(m * work, max((p - 1) * t_f, inside), [2 * p - 1] * p, inside)


def interleaved_zero_bubble(p: int, m: int, t_f: float, t_b: float, t_w: float, v: int = 2) -> Bubble:
    """Idle (p-1)(T_F + T_B - T_W)/v, ZB-H1's v times as short, for m >= p and W no longer than F and than B.

    In flight, with m = kp, vp of a stage each. Worked out here from the two schedules that it joins.
    """
    work = _work(p, m, t_f, t_b, t_w, v)
    _enough("interleaved zero bubble", p, m, p)
    _short_w("interleaved zero bubble", t_f, t_b, t_w)
    return _bubble(m * work, (p - 1) * (t_f + t_b - t_w) / v, [min(v * m, (v - 1) * _round(p, m) + p)] * p)


def zb_v(p: int, m: int, t_f: float, t_b: float, t_w: float) -> Bubble:
    """No rank idles within its span, if F, B and W take the same time and m >= 2p-1.

    Spans start T_F/2 after one another (a rank's share is two stages), which makes (p-1) T_F/2 for the step as a whole.
    In flight 2p of a stage each, as much as 1F1B's first rank. Qi et al. 2023, Zero Bubble (arXiv 2401.10241), section
    6; the makespan is worked out here.
    """
    work = _work(p, m, t_f, t_b, t_w)
    _enough("ZB-V", p, m, 2 * p - 1)
    if not t_f == t_b == t_w:
        raise ValueError(f"ZB-V's closed form holds for F, B and W of the same time, not {t_f}, {t_b} and {t_w}; "
                         "for others simulate the schedule")
    return _bubble(m * work, (p - 1) * t_f / 2, [2 * p] * p, 0)


# By the name of the schedule. DualPipeV has none here: its paper's needs the time of a forward and backward run as one.
BUBBLES: dict[str, Callable[..., Bubble]] = {
    "naive": naive,
    "GPipe": gpipe,
    "1F1B": one_f_one_b,
    "looped BFS": looped_bfs,
    "interleaved 1F1B": interleaved_1f1b,
    "ZB-H1": zb_h1,
    "ZB-H2": zb_h2,
    "interleaved zero bubble": interleaved_zero_bubble,
    "ZB-V": zb_v,
}


def _bubble(busy: float, idle: float, in_flight: list[int], idle_inside: float | None = None) -> Bubble:
    return Bubble(busy, busy + idle, busy + (idle if idle_inside is None else idle_inside), tuple(in_flight))


def _work(p: int, m: int, t_f: float, t_b: float, t_w: float, v: int = 1) -> float:
    """Seconds of work on one micro-batch, on one rank. Raises ValueError for counts and times that cannot be."""
    for name, count in (("p (ranks)", p), ("m (micro-batches)", m), ("v (stages on each rank)", v)):
        check_count(name, count)
    for name, time, least in (("t_f", t_f, "more than 0"), ("t_b", t_b, "more than 0"), ("t_w", t_w, "0 or more")):
        if not 0 <= time < inf or (time == 0 and name != "t_w"):
            raise ValueError(f"{name} is {time!r} seconds; it must be {least}, and finite")
    return t_f + t_b + t_w


def _loops(p: int, m: int, v: int) -> int:
    """Idle turns of looped stages, each 1/v of a rank's share."""
    return p - 1 + (v - 1) * max(0, p - m)


def _round(p: int, m: int) -> int:
    """Micro-batches in the first and largest round of interleaved stages."""
    return -(-m // max(1, m // p))


def _enough(name: str, p: int, m: int, least: int) -> None:
    if m < least:
        raise ValueError(f"{name}'s closed form holds from {least} micro-batches up with {p} ranks, not for {m}; "
                         "for fewer simulate the schedule")


def _short_w(name: str, t_f: float, t_b: float, t_w: float) -> None:
    if t_w > t_f or t_w > t_b:
        raise ValueError(f"{name}'s closed form holds while W is no longer than F and no longer than B, not for F, B "
                         f"and W of {t_f}, {t_b} and {t_w}; for those simulate the schedule")
