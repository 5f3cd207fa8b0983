"""The timeline shows each operation where it was, idle time as an area, and cuts no text."""

from dataclasses import replace

import pytest
from drawn import boxes, outside, texts

from disttutor.cost import simulate
from disttutor.figures import compare, timeline
from disttutor.plans import FORMS, Device, Gradient, Link, Machine, Mesh, Op, data_parallel_step
from disttutor.traces import Span, Trace

GRADIENTS = [Gradient(f"p{i}", n, flops=n * 100.0) for i, n in enumerate([10_000, 100, 40_000, 200, 2_000])]


def predicted(form="overlapped", ranks=4, accumulate=1, gradients=GRADIENTS) -> Trace:
    plan = data_parallel_step(gradients, Mesh(data=ranks), bucket_bytes=50_000, form=form, accumulate=accumulate,
                              forward_flops=2e6)
    return simulate(plan, Machine(Device(1e9, "device"), Link(1e-4, 100e6, "link")))


def span(kind, rank, start, end, step=0, **what) -> Span:
    return Span(Op(kind=kind, rank=rank, **what), start, end, step=step)


def small(**keywords) -> Trace:
    """Two ranks, 100 ms: rank 0 computes for 60 of them, rank 1 for 20; both exchange for 40, rank 0 half hidden."""
    group = (0, 1)
    return Trace((
        span("forward", 0, 0.0, 0.02), span("backward", 0, 0.02, 0.06),
        span("all_reduce", 0, 0.04, 0.08, bucket=0, nbytes=8, group=group),
        span("forward", 1, 0.0, 0.02), span("all_reduce", 1, 0.04, 0.08, bucket=0, nbytes=8, group=group),
        span("backward", 1, 0.1, 0.1),
    ), 2, **keywords)  # fmt: skip


def test_boxes_lie_where_the_operations_were():
    figure = timeline(small())
    left, right = 122, 1000 - 14 - 162
    scale = (right - left) / 0.1
    x = {(kind, round(y)): (a, w) for kind, a, y, w, _ in boxes(figure) if kind in ("forward", "backward")}
    tops = sorted({y for kind, y in x if kind == "forward"})
    assert len(tops) == 3                                   # rank 0, rank 1 and the legend
    assert x["forward", tops[0]] == pytest.approx((left, 0.02 * scale), abs=0.01)
    assert x["backward", tops[0]] == pytest.approx((left + 0.02 * scale, 0.04 * scale), abs=0.01)


def test_rank_0_is_on_top_and_computing_above_communication():
    figure = timeline(small())
    assert [t for t in texts(figure) if t.startswith("rank ")] == ["rank 0", "rank 1"]
    highest = {kind: min(y for k, _, y, _, _ in boxes(figure) if k == kind) for kind in ("forward", "all_reduce")}
    assert highest["forward"] < highest["all_reduce"]


def test_idle_time_is_a_hatched_area_as_long_as_the_trace():
    idle = [b for b in boxes(timeline(small())) if b[0] == "idle"]
    lanes = [b for b in idle if b[3] > 20]                  # the other is the legend's
    assert len(lanes) == 2
    assert all(width == pytest.approx(1000 - 14 - 162 - 122, abs=0.01) for _, _, _, width, _ in lanes)


def test_numbers_beside_the_ranks():
    words = texts(timeline(small()))
    assert words[words.index("rank 0"):].index("60 ms") < words[words.index("rank 0"):].index("20 ms")
    assert {"60 ms", "40%", "50%", "20 ms", "80%", "0%"} <= set(words)
    assert "100 ms in all; idle 60% of the ranks' time" in words


@pytest.mark.parametrize(("source", "note", "corner"), [
    ("measured", "", "measured"), ("replayed", "a core for each rank", "replayed: a core for each rank"),
    ("slow motion", "device 1 Gflop/s", "slow motion: device 1 Gflop/s"), ("predicted", "A100", "predicted: A100"),
])
def test_the_corner_says_the_source(source, note, corner):
    assert corner in texts(timeline(small(source=source, note=note)))


def test_alt_text_says_what_is_to_be_seen():
    assert timeline(small(), title="Mine").alt == (
        "Timeline, Mine: 2 ranks, 1 step, 100 ms in all, measured; rank 0 computes 60 ms and is idle 40%, with 50% of "
        "its communication hidden; rank 1 computes 20 ms and is idle 80%, with 0% of its communication hidden.")


def test_the_text_form_has_no_times():
    slower = Trace(tuple(replace(s, end=s.end + 0.001) for s in small().spans), 2)
    assert repr(timeline(small())) == repr(timeline(slower)) == (
        "Timeline, What each rank does: 2 ranks, 1 step, forward, backward and all-reduce, measured.")


def test_the_legend_names_only_what_is_there():
    words = texts(timeline(small()))
    assert {"forward (F)", "backward (B)", "all-reduce (AR)", "computes nothing"} <= set(words)
    assert not {"update (U)", "send (S)"} & set(words)


def test_the_same_data_gives_the_same_bytes():
    assert timeline(predicted()).svg == timeline(predicted()).svg


def test_exchanges_in_flight_together_get_rows_of_their_own():
    spans = [span("all_reduce", r, 0.001 * b, 0.01 + 0.001 * b, bucket=b, nbytes=8, group=(0, 1))
             for r in range(2) for b in range(3)]
    rows = [(y, x) for kind, x, y, w, _ in boxes(timeline(Trace(tuple(spans), 2))) if kind == "all_reduce" and w > 20]
    assert len({y for y, _ in rows}) == 6
    assert [x for _, x in sorted(rows)] == sorted(x for _, x in rows[:3]) * 2


def test_a_rank_alone_has_no_communication_lane():
    assert texts(timeline(predicted(ranks=2))).count("communication") == 3       # two lanes and the column's head
    assert texts(timeline(predicted(ranks=1))).count("communication") == 0


def test_numbers_of_microbatches_and_buckets_stand_in_the_boxes():
    words = texts(timeline(predicted(accumulate=3)))
    assert {"F0", "B0", "F1", "B1", "F2"} <= set(words)
    assert any(w.startswith("B2·") for w in words)
    assert "F" in texts(timeline(predicted())) and "F0" not in texts(timeline(predicted()))


def steps(n, ranks=8) -> Trace:
    one = predicted(ranks=ranks)
    spans = tuple(replace(s, start=s.start + i * one.makespan, end=s.end + i * one.makespan, step=i)
                  for i in range(n) for s in one.spans)
    return replace(one, spans=spans)


def test_steps_are_numbered_and_can_be_chosen():
    assert {f"step {i}" for i in range(4)} <= set(texts(timeline(steps(4))))
    chosen = timeline(steps(4), steps=(1, 2))
    assert {"step 1", "step 2"} <= set(texts(chosen)) and "step 0" not in texts(chosen)
    assert "step 3" in texts(timeline(steps(4), steps=3))
    assert "step 0" not in texts(timeline(steps(1)))
    with pytest.raises(ValueError, match=r"none of the steps \[7\]"):
        timeline(steps(4), steps=7)


@pytest.mark.parametrize("trace", [
    predicted(ranks=1), predicted(ranks=8, accumulate=64), steps(10), predicted("end", 2), steps(60, 2),
    replace(predicted(), source="slow motion", note="device 1 Gflop/s, link 5 ms + bytes / 10 MB/s, " * 5),
    Trace((span("barrier", 0, 1.0, 1.0, group=(0, 1)),), 1), Trace((span("send", 0, 0, 1e-7, peer=1),), 2),
    Trace((span("forward", 0, 0.0, 86400.0),), 1),
], ids=["1 rank", "64 micro-batches", "10 steps", "end", "60 steps", "long note", "no time", "100 ns",
        "a day"])
@pytest.mark.parametrize("width", [500, 1000])
def test_nothing_is_cut(trace, width):
    figure = timeline(trace, title="A title that is long enough to need some room of its own, and then some more",
                      width=width)
    assert outside(figure) == []


def test_the_animation_case_stays_small_and_shows_first_and_last():
    """4 ranks x 64 micro-batches: under 2 MB, first and last operation visible (case A-36)."""
    figure = timeline(predicted(accumulate=64))
    assert len(figure.html()) < 400_000
    compute = sorted(b for b in boxes(figure) if b[0] in ("forward", "update") and b[2] < 120)
    assert min(b[1] for b in compute) == 122 and compute[-1][0] == "update"
    assert max(b[1] for b in compute) > 700


def test_thin_neighbours_are_drawn_as_one():
    spans = [span("forward", 0, i * 1e-6, (i + 1) * 1e-6, microbatch=i) for i in range(20_000)]
    assert len(timeline(Trace(tuple(spans), 1)).svg) < 300_000


def test_compare_uses_one_time_scale():
    traces = [predicted(form) for form in FORMS]
    figure = compare(traces, FORMS)
    ends = [max(x + w for kind, x, y, w, _ in boxes(timeline(t)) if kind == "idle") for t in traces]
    assert ends == pytest.approx([824] * 3, abs=0.01)       # alone, each fills the axis
    widths = sorted({round(w, 1) for kind, _, _, w, _ in boxes(figure) if kind == "idle" and w > 20})
    expected = sorted({round(702 * t.makespan / max(t.makespan for t in traces), 1) for t in traces})
    assert widths == pytest.approx(expected, abs=0.1)
    assert {*FORMS} <= set(texts(figure))
    assert outside(figure) == []
    assert figure.alt.count("Timeline") == 3


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="one title for each trace.*2 traces and 1 titles"):
        compare([small(), small()], ["one"])
    with pytest.raises(ValueError, match="holds no operations to draw"):
        timeline(Trace((), 2))
    with pytest.raises(ValueError, match="300 pixels wide"):
        timeline(small(), width=300)


def test_tooltips_say_everything():
    assert "<title>rank 0: all_reduce bucket 0, 40 ms, step 0, 8 B</title>" in timeline(small()).svg
