"""The timeline of a pipeline: messages as arrows, activations in flight, stages told apart, large ones kept small."""

import re
from itertools import pairwise

import pytest
from drawn import SVG, boxes, outside, root, subpaths, texts

from disttutor.cost import simulate
from disttutor.figures import compare, timeline
from disttutor.figures.content import Content
from disttutor.figures.message_lines import APART, choose
from disttutor.plans import Device, Link, Machine, Mesh, Op, Plan
from disttutor.traces import Span, Trace, busy
from disttutor.traces.arrows import pairs

LEFT, RIGHT = 122, 1000 - 14 - 62 - 44


def span(kind, rank, start, end, step=0, **what) -> Span:
    return Span(Op(kind=kind, rank=rank, **what), start, end, step=step)


def two_stages(**keywords) -> Trace:
    """Two stages, two micro-batches, forward and backward 1 s each, messages on the way for half a second:
    GPipe on 8 s, of which each rank computes 4."""
    spans = [
        span("forward", 0, 0, 1, stage=0, microbatch=0), span("forward", 0, 1, 2, stage=0, microbatch=1),
        span("send", 0, 1, 1.5, peer=1, microbatch=0), span("send", 0, 2, 2.5, peer=1, microbatch=1),
        span("recv", 1, 0, 1.5, peer=0, microbatch=0), span("recv", 1, 2.5, 2.5, peer=0, microbatch=1),
        span("forward", 1, 1.5, 2.5, stage=1, microbatch=0), span("forward", 1, 2.5, 3.5, stage=1, microbatch=1),
        span("backward", 1, 3.5, 4.5, stage=1, microbatch=0), span("backward", 1, 4.5, 5.5, stage=1, microbatch=1),
        span("send", 1, 4.5, 5, peer=0, microbatch=0), span("send", 1, 5.5, 6, peer=0, microbatch=1),
        span("recv", 0, 2, 5, peer=1, microbatch=0), span("recv", 0, 6, 6, peer=1, microbatch=1),
        span("backward", 0, 5, 6, stage=0, microbatch=0), span("backward", 0, 7, 8, stage=0, microbatch=1),
    ]  # fmt: skip
    return Trace(tuple(spans), 2, **keywords)


def one_f_one_b(stages: int, microbatches: int, split: bool = False) -> Trace:
    """1F1B (Narayanan et al. 2021, figure 4) written out by hand; forward 1 ms, backward 2 ms."""
    ops = []
    for r in range(stages):
        mine = []

        def forward(m, r=r, mine=mine):
            if r > 0:
                mine.append(Op(kind="recv", rank=r, peer=r - 1, boundary=r - 1, microbatch=m, nbytes=8))
            mine.append(Op(kind="forward", rank=r, stage=r, microbatch=m, flops=1e6))
            if r < stages - 1:
                mine.append(Op(kind="send", rank=r, peer=r + 1, boundary=r, microbatch=m, nbytes=8))

        def backward(m, r=r, mine=mine):
            if r < stages - 1:
                mine.append(Op(kind="recv", rank=r, peer=r + 1, boundary=r, microbatch=m, nbytes=8))
            mine.append(Op(kind="backward", rank=r, stage=r, microbatch=m, flops=1e6 if split else 2e6))
            if r > 0:
                mine.append(Op(kind="send", rank=r, peer=r - 1, boundary=r - 1, microbatch=m, nbytes=8))
            if split:
                mine.append(Op(kind="backward_weight", rank=r, stage=r, microbatch=m, flops=1e6))

        warm = min(stages - r - 1, microbatches)
        for m in range(warm):
            forward(m)
        for m in range(warm, microbatches):
            forward(m)
            backward(m - warm)
        for m in range(microbatches - warm, microbatches):
            backward(m)
        ops.append(tuple(mine))
    plan = Plan("1F1B", tuple(ops), Mesh(pipeline=stages))
    return simulate(plan, Machine(Device(1e9, "device"), Link(0.0, 1e12, "link")))


def x(seconds, makespan=8.0):
    return LEFT + seconds / makespan * (RIGHT - LEFT)


def lanes(figure):
    """The top of each box by kind, from the top of the picture, without the legend."""
    drawn = boxes(figure)
    bottom = max(y for kind, _, y, _, _ in drawn if kind == "idle")      # the legend's
    return [box for box in drawn if box[2] < bottom - 1]


def test_sends_lie_in_one_row_of_the_strip_and_receives_in_the_next():
    drawn = lanes(timeline(two_stages()))
    tops = {kind: sorted({y for k, _, y, _, _ in drawn if k == kind}) for kind in ("forward", "send", "recv")}
    assert [len(tops[kind]) for kind in tops] == [2, 2, 2]
    for rank in range(2):
        assert tops["forward"][rank] + 24 <= tops["send"][rank] < tops["recv"][rank]
    assert {"sends", "receives"} <= set(texts(timeline(two_stages())))


def test_an_arrow_goes_from_each_send_to_the_end_of_its_receive():
    figure = timeline(two_stages())
    drawn = lanes(figure)
    rows = {kind: [y + h / 2 for y, h in sorted({(y, h) for k, _, y, _, h in drawn if k == kind})]
            for kind in ("send", "recv")}
    heads = [node.get("d") for node in root(figure).iter(f"{SVG}path") if node.get("fill-opacity")]
    ends = [tuple(map(float, re.findall(r"[\d.]+", part)[:2])) for part in heads[0].split("M") if part]
    begins = [line[:2] for line in subpaths(figure, "messages")]
    found = sorted((*a, *b) for a, b in zip(begins, ends, strict=True))
    expected = sorted((x(begin), rows["send"][src], x(end), rows["recv"][1 - src])
                      for begin, src, end in [(1, 0, 1.5), (2, 0, 2.5), (4.5, 1, 5), (5.5, 1, 6)])
    assert [v for line in found for v in line] == pytest.approx([v for line in expected for v in line], abs=0.02)
    assert subpaths(timeline(two_stages(), messages=False), "messages") == []
    assert any("Arrow: a message" in w for w in texts(figure))
    assert not any("Lines are drawn for" in w for w in texts(figure))


def test_both_bubbles_are_named_and_no_share_is_called_hidden():
    words = texts(timeline(two_stages()))
    assert "8 s in all; bubble 50.0% of the total, ratio to ideal 100.0%" in words      # 8 s of 16, over 8 s of work
    assert words.count("4 s") == 2 and words.count("50%") == 2
    assert "hidden" not in words


def test_activations_in_flight_are_a_curve_with_its_peak():
    figure = timeline(two_stages(), activations=True)
    assert texts(figure).count("peak 2") == 2
    curves = [node.get("d") for node in root(figure).iter(f"{SVG}path") if node.get("class") == "held"]
    ups = [[float(v) for v in re.findall(r"H([\d.]+)", d)] for d in curves]
    assert ups[0] == pytest.approx([x(0), x(1), x(2), x(6), x(8), x(8)], abs=0.02)      # rank 0: 0 1 2 1 0
    assert ups[1] == pytest.approx([x(0), x(2.5), x(3.5), x(4.5), x(5.5), x(8)], abs=0.02)
    heights = [float(v) for v in re.findall(r"V([\d.]+)", curves[0])]
    bottom = heights[-1]
    assert [round((bottom - y) / 17 * 2) for y in heights] == [0, 1, 2, 1, 0, 0]
    assert "activations" in texts(figure)
    assert "holds the activations of up to 2 micro-batches" in figure.alt
    assert "peak" not in " ".join(texts(timeline(two_stages())))


def test_peaks_of_1f1b_fall_from_rank_to_rank():
    words = texts(timeline(one_f_one_b(4, 8), activations=True))
    assert [w for w in words if w.startswith("peak")] == ["peak 4", "peak 3", "peak 2", "peak 1"]


def test_a_split_backward_has_a_look_of_its_own():
    figure = timeline(one_f_one_b(2, 4, split=True))
    assert {"backward (B)", "backward, weights (W)", "receive (R)", "send (S)"} <= set(texts(figure))
    assert {"B3", "W3"} <= set(texts(figure))


def test_a_second_stage_of_a_rank_is_lighter_and_the_legend_says_so():
    spans = [span("forward", s % 2, s, s + 1, stage=s, microbatch=0) for s in range(4)]
    figure = timeline(Trace(tuple(spans), 2))
    assert [kind for kind, *_ in boxes(figure)].count("forward-1") == 3                 # one a rank, one in the legend
    assert "lighter: the second stage of its rank" in texts(figure)
    three = [span("forward", 0, s, s + 1, stage=s, microbatch=0) for s in range(3)]
    assert "the lighter, the later of its rank's 3 stages" in texts(timeline(Trace(tuple(three), 1)))
    grounds = [re.search(rf'id="forward{n}".*?fill="#(..)', timeline(Trace(tuple(three), 1)).svg)[1]
               for n in ("", "-1", "-2")]
    assert grounds == sorted(grounds) and len(set(grounds)) == 3                        # ever more red: lighter blues
    assert not any("lighter" in w for w in texts(timeline(two_stages())))


def test_a_stage_counts_as_second_by_its_place_on_the_rank():
    trace = Trace((span("forward", 0, 0, 1, stage=3, microbatch=0), span("forward", 1, 0, 1, stage=0, microbatch=0),
                   span("forward", 1, 1, 2, stage=5, microbatch=0)), 2)
    content = Content(trace)
    assert [content.place(s) for s in trace.spans] == [0, 0, 1]


def test_receive_and_add_is_named():
    trace = Trace((span("send", 0, 0, 1, peer=1, round=0, chunks=(0, 2), nbytes=2_000_000),
                   span("recv_reduce", 1, 0, 1, peer=0, round=0, chunks=(0, 2), nbytes=2_000_000)), 2)
    figure = timeline(trace)
    words = texts(figure)
    assert "receive and add (R+)" in words
    assert "1 s in all" in words                                                        # nobody computes here, so
    assert not {"computes nothing", "computes", "idle"} & set(words)                    # no rank is called idle
    assert {"sent", "2 MB", "0 B"} <= set(words)
    assert {"S 0, 2", "R+ 0, 2"} <= set(words)
    assert len(subpaths(figure, "messages")) == 1 and outside(figure) == []


# ----------------------------------------------------------------------------------------------------- cases


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_that_start_together_the_longer_is_outside_whatever_the_order(order):
    """Lane 0: (start 0, length 10), then (0, 20). Case A-33."""
    spans = (span("forward", 0, 0, 10, layer=0), span("forward", 0, 0, 20, layer=1))[::order]
    figure = timeline(Trace(spans, 1))
    found = [(y, width) for kind, _, y, width, _ in lanes(figure) if kind == "forward"]
    room = RIGHT - LEFT
    assert [width for _, width in sorted(found)] == pytest.approx([room, room / 2], abs=0.01)
    assert "20 s" in texts(figure) and "30 s" not in texts(figure)


def test_computing_and_exchange_are_on_lanes_of_their_own():
    """Compute 0-10 and exchange 5-15 on one rank: busy for 15 s, not for 20. Case A-33."""
    trace = Trace((span("forward", 0, 0, 10), span("all_reduce", 0, 5, 15, group=(0,), nbytes=8)), 1)
    figure = timeline(trace)
    (compute,) = (b for b in lanes(figure) if b[0] == "forward")
    (exchange,) = (b for b in lanes(figure) if b[0] == "all_reduce")
    assert compute[2] + compute[4] < exchange[2]
    assert "15 s in all; idle 33% of the ranks' time" in texts(figure)
    assert {"10 s", "50%"} <= set(texts(figure))                                        # computes; hidden
    assert busy(trace, 0, None) == 15 and busy(trace, 0) == 10


def test_4_stages_and_64_microbatches_stay_small_with_first_and_last_visible():
    """Case A-36."""
    trace = one_f_one_b(4, 64)
    figure = timeline(trace, activations=True)
    assert len(figure.html()) < 400_000
    drawn = [b for b in lanes(figure) if b[0] in ("forward", "backward")]
    assert len(drawn) == 2 * 4 * 64                                                     # not one is joined or left away
    assert min(b[1] for b in drawn) == pytest.approx(LEFT)
    assert max(b[1] + b[3] for b in drawn) == pytest.approx(RIGHT, abs=0.05)
    lines = len(subpaths(figure, "messages"))
    assert 0 < lines < 2 * 3 * 64
    assert any(f"Lines are drawn for {lines} of the 384 messages" in w for w in texts(figure))
    assert outside(figure) == []


def test_arrows_that_are_left_keep_their_distance_and_the_first_and_last():
    content = Content(one_f_one_b(2, 100))
    pixels = 700 / content.makespan
    chosen = choose(content, pixels)
    every = pairs(content.trace)
    assert chosen.all == len(every) == 200
    for src in (0, 1):
        ends = sorted(r.end for s, r in chosen.lines if s.rank == src)
        all_ends = sorted(r.end for s, r in every if s.rank == src)
        assert (ends[0], ends[-1]) == (all_ends[0], all_ends[-1])
        assert all((b - a) * pixels >= APART - 1e-6 for a, b in pairwise(ends))


def test_64_stages_and_512_microbatches_are_drawn_small_and_say_what_is_joined():
    trace = one_f_one_b(64, 512)
    figure = timeline(trace, activations=True)
    assert len(figure.html()) < 2_000_000
    words = " ".join(texts(figure))
    assert "operations are too narrow to be told apart and are drawn as one with their neighbours" in words
    assert "64,512 messages are too many to be followed: their lines are left away" in words
    assert "several kinds, too narrow to tell apart" in words
    drawn = [b for b in lanes(figure) if b[0] != "idle"]
    assert min(b[1] for b in drawn) == pytest.approx(LEFT)
    assert max(b[1] + b[3] for b in drawn) == pytest.approx(RIGHT, abs=0.05)
    assert "peak 64" in texts(figure) and outside(figure) == []


def test_what_no_notebook_should_hold_is_refused_with_a_way_out():
    spans = [span("forward", r, m, m + 1, stage=r, microbatch=m) for r in range(2500) for m in range(3)]
    with pytest.raises(ValueError, match=r"2,500 ranks with 7,500 operations .* MB, more than .* draw fewer steps"):
        timeline(Trace(tuple(spans), 2500), activations=True)


def test_a_wide_operation_keeps_its_box_and_its_words_beside_tiny_ones():
    spans = [span("forward", 0, 0, 10, microbatch=0)]
    spans += [span("forward", 0, 10 + i * 1e-3, 10 + (i + 1) * 1e-3, microbatch=1) for i in range(100)]
    figure = timeline(Trace(tuple(spans), 1))
    first, joined = sorted(b[1:] for b in lanes(figure) if b[0] == "forward")
    assert first[2] == pytest.approx(10 / 10.1 * (RIGHT - LEFT), abs=0.02)
    assert "F0" in texts(figure)
    assert any("100 of the 101 operations are too narrow" in w for w in texts(figure))


# -------------------------------------------------------------------------------------------------------------- compare


def test_measured_over_predicted_share_time_scale_and_height_of_curves():
    slow = Trace(tuple(Span(s.op, s.start * 2, s.end * 2) for s in two_stages().spans), 2)
    one = two_stages(source="predicted")
    figure = compare([slow, one], ["measured", "predicted"], activations=True)
    ends = sorted({round(x_ + w) for kind, x_, _, w, _ in lanes(figure) if kind == "idle"})
    assert ends == [round((LEFT + RIGHT) / 2), RIGHT]
    assert texts(figure).count("peak 2") == 4
    assert len(subpaths(figure, "messages")) == 8
    assert outside(figure) == [] and figure.plain.count("Timeline") == 2


def test_traces_with_one_and_with_two_stages_a_rank_are_compared():
    two = Trace(tuple(span("forward", s % 2, s, s + 1, stage=s, microbatch=0) for s in range(4)), 2)
    figure = compare([two_stages(), two], ["one", "two"])
    assert "lighter: the second stage of its rank" in texts(figure) and outside(figure) == []


@pytest.mark.parametrize("width", [500, 1000])
@pytest.mark.parametrize("trace", [two_stages(), one_f_one_b(4, 8, split=True), one_f_one_b(1, 2),
                                   Trace((span("recv", 0, 0, 0, peer=1),), 2)])
def test_nothing_is_cut_from_a_pipeline(trace, width):
    figure = timeline(trace, activations=True, width=width, title="A title that needs more room than there is " * 3)
    assert outside(figure) == []
    assert figure.svg == timeline(trace, activations=True, width=width,
                                  title="A title that needs more room than there is " * 3).svg
