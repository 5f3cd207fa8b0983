"""Closed forms of pipeline steps against a small simulation, and Zero Bubble's printed bubble rates against it too."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans.bubbles import BUBBLES
from disttutor.plans.schedules import SCHEDULES, VIRTUAL, build_schedule

RANKS, MICROBATCHES = st.integers(1, 6), st.integers(1, 12)
TIMES = st.integers(1, 9)


def simulate(built, t_f, t_b, t_w, t_comm=0):
    """Start and end of every rank; each action begins when its rank is free and what it needs has arrived."""
    per_rank = len(built.stages_of[0])
    last = per_rank * len(built.orders) - 1
    seconds = {"forward": t_f, "backward": t_b if built.split_backward else t_b + t_w, "backward_weight": t_w}
    rank_of = {stage: rank for rank, stages in enumerate(built.stages_of) for stage in stages}
    ends, starts, free, todo = {}, {}, [0] * len(built.orders), [list(order) for order in built.orders]
    while any(todo):
        before = len(ends)
        for rank, actions in enumerate(todo):
            while actions:
                kind, stage, i = actions[0].kind, actions[0].stage, actions[0].microbatch
                begin = free[rank]
                if kind == "backward":
                    assert ("forward", stage, i) in ends
                source = {"forward": stage - 1, "backward": stage + 1}.get(kind, -1)
                if 0 <= source <= last:
                    if (kind, source, i) not in ends:
                        break
                    begin = max(begin, ends[kind, source, i] + (t_comm if rank_of[source] != rank else 0))
                starts.setdefault(rank, begin)
                work = seconds[kind] if per_rank == 1 else Fraction(seconds[kind], per_rank)
                free[rank] = ends[kind, stage, i] = begin + work
                actions.pop(0)
        assert len(ends) > before, "nobody can go on"
    return [(starts[rank], free[rank]) for rank in range(len(free))]


def held(built):
    """The most activations that each rank holds at one time, from forward to the last backward that needs them."""
    lets_go = "backward_weight" if built.split_backward else "backward"
    peaks = []
    for order in built.orders:
        now, peak = 0, 0
        for action in order:
            now += (action.kind == "forward") - (action.kind == lets_go)
            peak = max(peak, now)
        peaks.append(peak)
    return tuple(peaks)


def agree(name, p, m, times, v=None):
    """The closed form's numbers, held against the schedule that the same arguments build."""
    stages = {} if v is None else {"v": v}
    bubble = BUBBLES[name](p, m, *map(Fraction, times), **stages)
    built = build_schedule(name, p, m, v)
    spans = simulate(built, *times)
    assert bubble.busy == m * sum(times)
    assert bubble.makespan == max(end for _, end in spans) - min(start for start, _ in spans)
    assert bubble.longest_span == max(end - start for start, end in spans)
    assert bubble.in_flight == held(built)


@pytest.mark.parametrize(("name", "p", "m", "times", "makespan", "share", "ratio"), [
    ("GPipe", 4, 8, (1, 1), 22, Fraction(3, 11), Fraction(3, 8)),
    ("1F1B", 4, 8, (1, 1), 22, Fraction(3, 11), Fraction(3, 8)),
    ("1F1B", 4, 8, (1, 2), 33, Fraction(3, 11), Fraction(3, 8)),
    ("1F1B", 4, 8, (1, 1, 1), 33, Fraction(3, 11), Fraction(3, 8)),      # B = 2, cut in its two halves
    ("GPipe", 4, 2, (1, 1), 10, Fraction(6, 10), Fraction(6, 4)),        # case A-28
    ("1F1B", 4, 2, (1, 1), 10, Fraction(6, 10), Fraction(6, 4)),
    ("1F1B", 4, 1, (1, 1), 8, Fraction(3, 4), Fraction(3, 1)),
    ("naive", 4, 2, (1, 1), 16, Fraction(3, 4), Fraction(3, 1)),
    ("interleaved 1F1B", 4, 8, (1, 1), 19, Fraction(3, 19), Fraction(3, 16)),
    ("ZB-H1", 4, 8, (1, 1, 1), 27, Fraction(1, 9), Fraction(1, 8)),
    ("ZB-H2", 4, 8, (1, 1, 1), 27, Fraction(1, 9), Fraction(1, 8)),
    ("ZB-V", 4, 8, (1, 1, 1), Fraction(51, 2), Fraction(1, 17), Fraction(1, 16)),
])
def test_by_hand(name, p, m, times, makespan, share, ratio):
    bubble = BUBBLES[name](p, m, *map(Fraction, times))
    assert (bubble.makespan, bubble.share_of_total, bubble.ratio_to_ideal) == (makespan, share, ratio)
    assert bubble.idle == makespan - m * sum(times)


def test_zero_bubble_is_zero_only_within_a_rank():
    for name in ("ZB-H2", "ZB-V"):
        bubble = BUBBLES[name](4, 8, 1, 1, 1)
        assert bubble.share_of_longest_span == 0 < bubble.share_of_total
    assert BUBBLES["ZB-H1"](4, 8, 1, 1, 1).share_of_longest_span == pytest.approx(1 / 9)


def test_activations_by_hand():
    """4 ranks, 8 micro-batches; interleaved: Korthikanti's 4 (1 + 3/8) shares of a rank are 11 of half a share each."""
    expected = {"GPipe": (8, 8, 8, 8), "1F1B": (4, 3, 2, 1), "looped BFS": (16, 16, 16, 16),
                "interleaved 1F1B": (11, 9, 7, 5), "ZB-H1": (4, 4, 4, 4), "ZB-H2": (7, 7, 7, 7), "ZB-V": (8, 8, 8, 8)}
    assert {name: BUBBLES[name](4, 8, 1, 1, 1).in_flight for name in expected} == expected


@given(st.sampled_from(["naive", "GPipe", "1F1B"]), RANKS, MICROBATCHES, st.tuples(TIMES, TIMES, TIMES))
def test_plain_schedules_for_any_times_and_any_number_of_micro_batches(name, p, m, times):
    agree(name, p, m, times)


@given(st.sampled_from(["looped BFS", "interleaved 1F1B"]), RANKS, MICROBATCHES, st.tuples(TIMES, TIMES, TIMES),
       st.integers(1, 4))
def test_looped_schedules_for_any_times_and_any_number_of_micro_batches(name, p, m, times, v):
    agree(name, p, m, times, v)


# W no longer than F and B
SHORT_W = st.tuples(TIMES, TIMES, TIMES).map(lambda times: sorted(times)[1:] + sorted(times)[:1]).flatmap(
    lambda times: st.permutations(times[:2]).map(lambda first: (*first, times[2])))


@given(RANKS, MICROBATCHES, SHORT_W)
def test_zb_h1_where_its_form_holds(p, m, times):
    agree("ZB-H1", p, m, times)


@given(RANKS, st.integers(0, 6), SHORT_W)
def test_zb_h2_where_its_form_holds(p, more, times):
    agree("ZB-H2", p, 2 * p - 1 + more, times)


@given(RANKS, st.integers(0, 6), SHORT_W, st.integers(1, 4))
def test_interleaved_zero_bubble_where_its_form_holds(p, more, times, v):
    agree("interleaved zero bubble", p, p + more, times, v)


@given(RANKS, st.integers(0, 6), TIMES)
def test_zb_v_where_its_form_holds(p, more, time):
    agree("ZB-V", p, 2 * p - 1 + more, (time, time, time))


def test_outside_its_bounds_a_form_would_be_wrong():
    """Each bound is needed: a step beyond it the schedule takes another time."""
    def idle(name, p, m, times, within=False):
        spans = simulate(SCHEDULES[name](p, m), *times)
        return max(end - start * within for start, end in spans) - m * sum(times)

    assert idle("ZB-H1", 4, 8, (2, 2, 3)) != 3 * (2 + 2 - 3)
    assert idle("ZB-H1", 4, 8, (1, 3, 2)) != 3 * (1 + 3 - 2)
    assert idle("ZB-H1", 4, 8, (3, 1, 2)) != 3 * (3 + 1 - 2)
    assert idle("ZB-H2", 4, 6, (1, 1, 1), within=True) != 0
    assert idle("ZB-H2", 4, 8, (1, 8, 2)) != 3 * (1 + 8 - 4)
    assert idle("interleaved zero bubble", 4, 3, (2, 2, 2)) != 3 * (2 + 2 - 2) / 2
    assert idle("ZB-V", 4, 6, (2, 2, 2), within=True) != 0
    assert idle("ZB-V", 4, 8, (2, 3, 2)) != 3


def test_only_dualpipe_v_has_no_form():
    assert {*SCHEDULES} - {*BUBBLES} == {"DualPipeV"} and {*VIRTUAL} < {*BUBBLES}


@pytest.mark.parametrize(("name", "arguments", "message"), [
    ("ZB-H2", (4, 6, 1, 1, 1), "ZB-H2's closed form holds from 7 micro-batches up with 4 ranks, not for 6"),
    ("ZB-V", (4, 6, 1, 1, 1), "ZB-V's closed form holds from 7 micro-batches up with 4 ranks, not for 6"),
    ("ZB-V", (4, 8, 1, 2, 1), "ZB-V's closed form holds for F, B and W of the same time, not 1, 2 and 1"),
    ("interleaved zero bubble", (4, 3, 1, 1, 1), "holds from 4 micro-batches up with 4 ranks, not for 3"),
    ("ZB-H1", (4, 8, 1, 2, 2), "holds while W is no longer than F and no longer than B, not for F, B and W of 1, 2"),
    ("ZB-H2", (4, 8, 2, 1, 2), "holds while W is no longer than F and no longer than B"),
    ("1F1B", (0, 8, 1, 1), "p (ranks) is 0; it must be a whole number, 1 or more"),
    ("1F1B", (4, 0, 1, 1), "m (micro-batches) is 0; it must be a whole number"),
    ("looped BFS", (4, 1, 1, 1, 1, 0), "v (stages on each rank) is 0; it must be a whole number"),
    ("1F1B", (4, 8, 0, 1), "t_f is 0 seconds; it must be more than 0, and finite"),
    ("GPipe", (4, 8, 1, float("inf")), "t_b is inf seconds; it must be more than 0, and finite"),
    ("GPipe", (4, 8, 1, 1, -1), "t_w is -1 seconds; it must be 0 or more, and finite"),
])
def test_refusals_say_what_would_work(name, arguments, message):
    with pytest.raises(ValueError) as error:
        BUBBLES[name](*arguments)
    assert message in str(error.value)


# Qi et al. 2023, Zero Bubble (arXiv 2401.10241): stages, micro-batches, then table 9's T_F, T_B, T_W, T_comm in ms,
# then table 5's bubble rates of 1F1B, ZB-H1 and ZB-H2. Models of 1.5, 6.2, 14.6 and 28.3 billion parameters.
ZERO_BUBBLE = """
 8  24  18.522 18.086  9.337 0.601  0.2431 0.1585 0.1083
 8  32  18.513 18.086  9.331 0.626  0.1985 0.1242 0.0837
 8  64  18.546 18.097  9.321 0.762  0.1240 0.0674 0.0444
 8  24  29.718 29.444 19.927 0.527  0.2347 0.1323 0.0698
 8  32  29.802 29.428 19.530 0.577  0.1898 0.1045 0.0559
 8  64  29.935 29.621 19.388 0.535  0.1091 0.0554 0.0294
16  48  11.347 11.248  8.132 0.377  0.2552 0.1397 0.0672
16  64  11.307 11.254  8.101 0.379  0.2082 0.1088 0.0516
16 128  11.325 11.308  8.109 0.378  0.1251 0.0576 0.0266
32  96  10.419 10.207  7.715 0.408  0.2646 0.1421 0.0641
32 128  10.408 10.204  7.703 0.408  0.2168 0.1106 0.0490
32 256  10.402 10.248  7.698 0.460  0.1352 0.0594 0.0257
"""


@pytest.mark.parametrize("row", ZERO_BUBBLE.strip().splitlines())
def test_zero_bubbles_printed_rates_to_the_last_digit(row):
    p, m, t_f, t_b, t_w, t_comm, *printed = row.split()
    p, m, (*times, t_comm) = int(p), int(m), map(float, (t_f, t_b, t_w, t_comm))
    for name, rate in zip(("1F1B", "ZB-H1", "ZB-H2"), printed, strict=True):
        cost = max(end - start for start, end in simulate(SCHEDULES[name](p, m), *times, t_comm))
        assert f"{(cost - m * sum(times)) / cost:.4f}" == rate
        # Table 2's closed form leaves messages out
        assert float(rate) == pytest.approx(BUBBLES[name](p, m, *times).share_of_longest_span, abs=0.03)
