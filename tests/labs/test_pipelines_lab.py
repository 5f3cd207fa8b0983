"""The labs of lesson 08: what they show is what the ranks did, beside numbers worked out by hand."""

import pytest
import torch

from disttutor import run
from disttutor.cost.hardware import NVLINK_4
from disttutor.labs import large_pipelines as large
from disttutor.labs import pipeline_stories as stories
from disttutor.labs import pipelines as lab
from disttutor.labs import schedule_editor as editor
from disttutor.labs import schedules_compared as six
from disttutor.labs.page import page
from disttutor.plans import build_schedule, pipeline_step
from disttutor.traces import bubble_ratio, bubble_share, peak_in_flight, replay

SETTINGS = {"ranks": 3, "microbatches": 4, "schedule": "1F1B", "forward": 10, "latency": 1.0, "bandwidth": 5,
            "view": lab.SLOW}
COMPARED = {"ranks": 3, "microbatches": 5, "latency": 2.0, "show": six.ALL_BUT_NAIVE}
STREAMED = {"ranks": 3, "minibatches": 16, "rate": 0.05, "view": stories.WEIGHTS}


@pytest.fixture(scope="module")
def main() -> lab.Run:
    return lab._run(SETTINGS, run)


@pytest.fixture(scope="module")
def compared() -> dict[str, six.Watched]:
    return six._run_six(COMPARED, run)


@pytest.fixture(scope="module")
def streams() -> stories.Streams:
    return stories._run_streams(STREAMED, run)


# ------------------------------------------------------------------------------------------------ the main lab


def test_every_stage_learns_so_that_equality_says_something():
    """A deep tanh network with PyTorch's own start passes hardly any gradient to its first layers."""
    model = lab.network()
    ((x, y),) = lab.batches(64, steps=1)
    torch.nn.functional.cross_entropy(model(x), y).backward()
    norms = [layer.weight.grad.norm() for layer in model.layers if isinstance(layer, torch.nn.Linear)]
    assert len(norms) == lab.LAYERS and max(norms) / min(norms) < 100


def test_the_stages_together_train_like_one_process(main):
    assert main.distance <= 1e-12
    for answer in main.answers:
        assert answer["losses"] == pytest.approx(main.one["losses"], abs=1e-12)
    assert "less than 1e-12 apart" in lab.verdict(main) and "BUT" not in lab.verdict(main)


def test_a_wrong_result_would_be_said(main):
    name = next(iter(main.one["weights"]))
    other = {**main.one["weights"], name: main.one["weights"][name] + 0.5}
    wrong = lab.Run(main.slow, main.predicted, main.ran, main.answers, {**main.one, "weights": other})
    assert "BUT the weights are not those of one process: 5e-01 apart" in lab.verdict(wrong)


def test_slow_motion_does_what_the_plan_says(main):
    planned = [(op.key, op.nbytes) for ops in main.answers[0]["plan"].ops for op in ops]
    for trace in (main.slow, main.ran):
        done = trace.plan(trace.steps[0])
        assert [(op.key, op.nbytes) for ops in done.ops for op in ops] == planned
    assert main.slow.makespan >= 0.98 * main.predicted.makespan


def test_the_views_are_of_their_sources(main):
    assert [lab._view(main, view).source for view in (lab.SLOW, lab.RAN, lab.REPLAYED)] == [
        "slow motion", "measured", "replayed"]
    assert replay(main.ran).makespan <= main.ran.makespan
    for view in (lab.SLOW, lab.RAN, lab.REPLAYED):
        assert "<img alt=" in page(lab._draw(main, SETTINGS | {"view": view}))["text/html"]


def test_the_tables_hold_the_numbers_of_the_closed_form(main):
    """3 stages, 4 micro-batches of F + B + W = 30 ms: (4 + 2) · 30 = 180 ms, idle 60 of 180, 60 beside 120."""
    rows = lab.bubble_table(main, SETTINGS).rows
    assert rows[-1] == ["closed form, without messages", "33.3%", "50.0%", "180 ms"]
    assert rows[0][1:3] == [f"{bubble_share(main.slow):.1%}", f"{bubble_ratio(main.slow):.1%}"]
    assert [row[1:] for row in lab.memory_table(main, SETTINGS).rows] == [[3, 2, 1], [3, 2, 1]]


def test_the_page_says_the_same_in_every_run(main):
    again = page(lab._draw(lab._run(SETTINGS, run), SETTINGS))["text/plain"]
    assert page(lab._draw(main, SETTINGS))["text/plain"] == again


@pytest.mark.parametrize(("schedule", "ranks", "microbatches"), [
    ("ZB-H2", 4, 1), ("interleaved 1F1B", 4, 3), ("DualPipeV", 2, 1), ("naive", 1, 1)])
def test_odd_settings_run_too(schedule, ranks, microbatches):
    settings = SETTINGS | {"schedule": schedule, "ranks": ranks, "microbatches": microbatches}
    result = lab._run(settings, run)
    assert result.distance <= 1e-12
    assert "those of one process" in page(lab._draw(result, settings))["text/plain"]


# ------------------------------------------------------------------------------------------------ six schedules


def test_six_schedules_end_with_the_weights_of_one_process(compared):
    assert list(compared) == list(six.SIX)
    assert max(seen.distance for seen in compared.values()) <= 1e-12


def test_six_schedules_in_numbers(compared):
    """p = 3, m = 5, F = B = W = 15 ms. Messages: 2 boundaries, or 5 where a rank holds two stages, forward and back for
    5 micro-batches, each 8 samples · 32 · 8 bytes."""
    times = {row[0]: row[1:] for row in six.times_of_six(compared, COMPARED).rows}
    assert [times[name][2] for name in six.SIX] == ["675 ms", "315 ms", "315 ms", "270 ms", "255 ms", "255 ms"]
    assert times["GPipe"][5:] == ["28.6%", "40.0%"]                                 # 2/7 and 2/5
    sizes = {row[0]: row[1:] for row in six.sizes_of_six(compared, COMPARED).rows}
    assert sizes["naive"] == ["1, 1, 1", "1, 1, 1", 20, 20, "41.0 kB"]
    assert sizes["interleaved 1F1B"][2:] == [50, 50, "102.4 kB"]
    held = {name: sizes[name][0] for name in six.SIX}
    assert held["GPipe"] == "5, 5, 5" and held["1F1B"] == "3, 2, 1" and held["ZB-H1"] == "3, 3, 3"
    assert held["ZB-H2"] == "5, 5, 5"
    assert held == {name: sizes[name][1] for name in six.SIX} | {"interleaved 1F1B": held["interleaved 1F1B"]}


def test_all_or_one_of_the_six_is_drawn(compared):
    for show in (six.ALL_BUT_NAIVE, six.ONE.format("naive")):
        shown = page(six._draw_six(compared, COMPARED | {"show": show}))
        assert ("naive" in shown["text/plain"].splitlines()[0]) == (show != six.ALL_BUT_NAIVE)
        assert "less than 1e-12 apart" in shown["text/plain"]


# ------------------------------------------------------------------------------------------------ the editor


def test_an_order_of_ones_own_runs_and_is_compared():
    """GPipe's order typed into 1F1B's place holds all 3 micro-batches and takes no longer in the formula."""
    text = "F0 F1 F2 B0 B1 B2\nf0,f1,f2 b0 b1 b2"
    settings = {"schedule": "1F1B", "ranks": 2, "microbatches": 3, "orders": text}
    result = editor._run_editor(settings, run)
    assert result[0].distance <= 1e-12
    assert [peak_in_flight(result[0].slow, rank) for rank in (0, 1)] == [3, 3]
    said = page(editor._draw_editor(result, settings))["text/plain"]
    assert "Your ranks hold at most 3, 3 activations" in said


@pytest.mark.parametrize(("orders", "sentence"), [
    ("F0 F1 B0 B1\nF0 B0 F1 X1", "rank 1, word 4, 'X1': an action is F or B and a micro-batch, such as F0"),
    ("F0 F1 B0 B1\nF0 B0 F1 B2", "rank 1, word 4, 'B2': there is no micro-batch 2; there are 0 to 1"),
    ("F0 F1 B0 B1\nF0 B0 F0 B1", "rank 1, word 3, 'F0': it stands there already, as word 1"),
    ("F0 B0\nF0 B0 F1 B1", "This order cannot run: stage 0 has no backward of micro-batch 1; stage 0 has no"),
    ("F0 F1 B0 B1\nB0 F0 F1 B1", "This order cannot run: rank 1 does backward stage 1 microbatch 0 before its forward"),
    ("F0 B0 F1 B1\nF0 F1 B0 B1", "This order cannot run: a cycle: rank 0's recv boundary 0 microbatch 0"),
])
def test_an_order_that_cannot_be_is_refused_before_anything_starts(orders, sentence):
    def never(*_, **__):
        raise AssertionError("ranks were started")

    with pytest.raises(ValueError) as refused:
        editor._run_editor({"schedule": "1F1B", "ranks": 2, "microbatches": 2, "orders": orders}, never)
    assert sentence in str(refused.value)


def test_the_listing_of_a_schedule_reads_back_as_it():
    for name in ("naive", "1F1B", "ZB-H2"):
        base = build_schedule(name, 3, 5)
        assert editor.from_orders(editor.listing(base), base).orders == base.orders


# ------------------------------------------------------------------------------------------------ PipeDream


def test_each_stage_misses_so_many_updates(streams):
    """Stage s of 3 lacks 2 - s updates once the pipeline is full."""
    rows = stories.versions(streams.slow).rows
    assert rows[0] == ["stage 0", 0, 0, 0, 1, 2, 3, 4, 5, 2]
    assert rows[1] == ["stage 1", 0, 0, 1, 2, 3, 4, 5, 6, 1]
    assert rows[2] == ["stage 2", 0, 1, 2, 3, 4, 5, 6, 7, 0]


def test_pipedream_drifts_and_the_synchronous_pipeline_does_not(streams):
    assert [len(line) for line in streams.distances.values()] == [16, 16]
    assert max(streams.distances["pipeline"]) <= 1e-12
    assert streams.distances["PipeDream"][0] <= 1e-12               # the first mini-batch meets the right weights
    assert min(streams.distances["PipeDream"][1:]) > 1e-5
    assert streams.losses["pipeline"] == pytest.approx(streams.losses["one process"], abs=1e-12)
    for view in (stories.WEIGHTS, stories.LOSS):
        shown = page(stories._draw_streams(streams, STREAMED | {"view": view}))
        assert shown["text/html"].count("<img alt=") == 2
        assert "The synchronous pipeline's weights were less than 1e-12 away" in shown["text/plain"]


# ------------------------------------------------------------------------------------------------ breaking it


def test_two_ranks_that_both_send_first_wait_for_ever_where_the_check_said():
    said = " ".join(stories.faults(build_schedule("1F1B", 2, 4), blocking_sends=True).split())
    at = ["send boundary 0 microbatch 1 to rank 1", "send boundary 0 microbatch 0 to rank 0"]
    assert all(f"rank {rank}'s {where} waits for" in said for rank, where in enumerate(at))
    assert stories.two_wait(run, blocking=True).splitlines() == [
        "ranks 0 and 1 did not return within 2.5 s", *(f"  rank {r} stands at: {where}" for r, where in enumerate(at))]


def test_sends_that_leave_do_not_wait():
    assert stories.faults(build_schedule("1F1B", 2, 4)) == "  nothing"
    assert stories.two_wait(run, blocking=False) == "both ranks came to their end, after 8 messages each"


def test_a_lost_micro_batch_is_named():
    base = build_schedule("1F1B", 2, 2)
    assert "stage 1 has no forward of micro-batch 1" in stories.faults(
        editor.from_orders("F0 F1 B0 B1\nF0 B0", base))


def test_batch_norm_and_dropout_are_equal_to_their_oracle_only():
    undivided, parts, one_rank = "one process, undivided", "one process, 4 micro-batches", "4 stages on one rank"
    norm, dropout = (stories.distances_of(layers, run) for layers in ({"batch_norm": True}, {"dropout": 0.2}))
    assert {way for way, far in norm.items() if far <= 1e-12} == {parts, one_rank}
    assert {way for way, far in dropout.items() if far <= 1e-12} == {one_rank}
    assert min(norm[undivided], dropout[undivided], dropout[parts]) > 1e-4


def test_the_price_of_splitting_has_a_row_for_each():
    table = stories.price_of_splitting(run, ranks=2)
    assert [row[0] for row in table.rows] == ["1F1B", "ZB-H1"]
    assert table.rows[0][3] == "in B" and table.rows[1][3].endswith(" ms")
    assert "ms" not in repr(table)                                                  # no times in the plain text


# ------------------------------------------------------------------------------------------------ large machines


def test_gpus_in_a_pipeline_follow_the_closed_form():
    """GPipe with messages: the first micro-batch passes 7 boundaries, and its gradient 7 back."""
    f = 2 * 12 * 5120**2 * 40 / 8 * 2048 / 794.5e12
    message = 3.4e-6 + 2 * 2048 * 5120 / 450e9
    loss = 14 * (3.4e-6 + 40 / 8 / 450e9)                           # the all-reduce of 40 bytes at the end
    whole = (16 + 7) * 3 * f + 14 * message + loss
    assert large.pipeline_of_gpus("GPipe", 16).makespan == pytest.approx(whole, rel=1e-6)
    assert NVLINK_4.seconds(large.BOUNDARY_BYTES) == pytest.approx(message)


def test_the_table_of_shares_stands_beside_its_formula():
    found = large.shares((8, 16))
    rows = {row[0]: row[1:] for row in large.share_table(found).rows}
    assert rows["1F1B"][0].endswith("(46.7%)") and rows["1F1B"][1].endswith("(30.4%)")          # 7/15, 7/23
    assert rows["ZB-H2"][0] == f"{found['ZB-H2'][8]:.1%}"           # too few micro-batches for a formula
    assert found["1F1B"][8] > found["interleaved 1F1B"][8] > found["ZB-H1"][8]


def test_the_published_bubble_rates_follow_from_our_plans():
    """Zero Bubble's table 5 for 1.5B, to its last digit, out of its table 9."""
    for m, reported in large.REPORTED.items():
        for name, rate in reported.items():
            assert large.bubble_rate(name, m) == pytest.approx(rate, abs=5.1e-5), (m, name)


@pytest.mark.parametrize(("microbatches", "units", "idle"), [(2, 10, 0.6), (1, 8, 0.75)])
@pytest.mark.parametrize("name", ["GPipe", "1F1B"])
def test_fewer_micro_batches_than_stages_are_only_wasteful(name, microbatches, units, idle):
    """Case A-28: 4 stages, F = B = 1."""
    from disttutor.cost import simulate
    from disttutor.plans import Device, Machine, StageWork

    plan = pipeline_step(build_schedule(name, 4, microbatches), work=StageWork(1, 1, 0), header_bytes=0)
    step = simulate(plan, Machine(Device(1.0)))
    assert (step.makespan, bubble_share(step)) == (units, pytest.approx(idle))
