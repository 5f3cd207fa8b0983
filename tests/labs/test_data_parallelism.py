"""The labs of lesson 03: what they show is what the ranks did."""

import math

import pytest
import torch

from disttutor import run
from disttutor.labs import data_parallelism as lab
from disttutor.labs import large_machines as large
from disttutor.labs.page import page
from disttutor.traces import hidden_communication, ring_bytes_sent

SETTINGS = {"ranks": 3, "form": "overlapped", "bucket": 40_000, "batch": 64, "precision": "float64",
            "view": "slow motion"}
WEIGHTS = 3 * (64 * 64 + 64) + 64 * 10 + 10


@pytest.fixture(scope="module")
def training() -> lab.Training:
    return lab._run_training(SETTINGS, run)


@pytest.fixture(scope="module")
def ring() -> list:
    return lab._run_ring({"ranks": 4, "bucket": 2}, run)


def test_the_ranks_train_like_one_process(training):
    assert len(training.distances) == lab.STEPS
    assert max(training.distances) <= 1e-12 and training.ranks_agree
    assert training.answers[0]["losses"] == pytest.approx(training.one["losses"], abs=1e-12)
    assert training.answers[0]["losses"][-1] < 1.0 < 2.2 < training.answers[0]["losses"][0]


def test_bytes_are_those_of_a_ring_and_of_the_plan(training):
    flags, header = 8, 4                        # of 8 parameters; loss, count of samples, batch size, updates
    whole = 8 * (WEIGHTS + flags + header)
    step = training.ran.only(5)
    assert ring_bytes_sent(step, 0) == pytest.approx(2 * 2 / 3 * whole)
    planned = [(op.kind, op.bucket, op.nbytes) for op in training.predicted.plan(0).ops[0]]
    for trace in (step, training.slow):
        assert [(op.kind, op.bucket, op.nbytes) for op in trace.plan(trace.steps[0]).ops[0]] == planned


def test_every_view_is_one_step_of_its_source(training):
    sources = {name: training.view(name).source for name in lab.VIEWS}
    assert sources == {"as it ran": "measured", "a core for each rank": "replayed", "slow motion": "slow motion",
                       "predicted": "predicted"}
    assert all(len(training.view(name).steps) == 1 for name in lab.VIEWS)
    assert training.slow.makespan >= 0.98 * training.predicted.makespan


def test_the_page_says_the_same_in_every_run(training):
    one = page(lab._draw_training(training, SETTINGS))
    other = page(lab._draw_training(lab._run_training(SETTINGS, run), SETTINGS))
    assert one["text/plain"] == other["text/plain"]
    assert "In every step each rank sends 140.2 kB (as a ring does), in 3 all-reduces." in one["text/plain"]
    assert one["text/html"].count("<img alt=") == 3


def test_one_rank_sends_nothing_and_can_be_drawn():
    settings = SETTINGS | {"ranks": 1, "precision": "float32"}
    shown = page(lab._draw_training(lab._run_training(settings, run), settings))
    assert "each rank sends 0.0 kB (as a ring does), in 0 all-reduces" in shown["text/plain"]


def test_the_ring_ends_with_the_sum_on_every_rank(ring):
    before = torch.stack([mine[0][1] for mine in ring])
    assert not torch.equal(before[0], before[1])
    for mine in ring:
        assert torch.allclose(mine[-1][1], before.sum(0), atol=1e-15)
        assert torch.equal(mine[-1][1], ring[0][-1][1])


@pytest.mark.parametrize("at", range(1, 7))
def test_the_words_below_the_ring_are_true(ring, at):
    """The chunk that is said to reach rank 1 is the one that changed there, and holds what it is said to hold."""
    chunks = torch.arange(13).tensor_split(4)
    said = int(lab._explained(at, 4).split("rank 0 sends chunk ")[1][0])
    before, after = ring[1][at - 1][1], ring[1][at][1]
    changed = set((before != after).nonzero().flatten().tolist())
    assert changed and changed <= set(chunks[said].tolist())
    if at < 4:
        assert f"the sum of {at + 1} ranks" in lab._explained(at, 4)
        some = torch.stack([ring[(1 - k) % 4][0][1] for k in range(at + 1)]).sum(0)
        for i in changed:
            assert float(after[i]) == pytest.approx(float(some[i]), abs=1e-15)


def test_every_moment_of_the_ring_is_drawn(ring):
    for message in range(7):
        shown = page(lab._draw_ring(ring, {"message": message}))
        assert "<img alt=" in shown["text/html"]


def test_three_forms_measured_and_predicted():
    settings = {"ranks": 2, "latency": 3.0, "bandwidth": 2, "bucket": 40_000, "show": lab.ALL}
    result = lab._run_forms(settings, run)
    end, bucketed, overlapped = (result[form][1].makespan for form in lab.FORMS)
    assert end > bucketed > overlapped
    assert [hidden_communication(result[form][1], 0) > 0 for form in lab.FORMS] == [False, False, True]
    for slow, predicted in result.values():
        assert slow.source == "slow motion" and slow.makespan >= 0.98 * predicted.makespan
    for show in (lab.ALL, lab.ONE.format("end")):
        assert "end: measured" in page(lab._draw_forms(result, settings | {"show": show}))["text/plain"]


def test_large_machines_follow_the_closed_form():
    """At the end: all compute, then each bucket as a ring. 24 layers of 2 bytes a weight in buckets of 250 MB: two in
    each, and an empty bucket for the count."""
    gpus, weights = 64, large.PARAMETERS // large.LAYERS
    tokens = large.TOKENS // gpus
    compute = (2 * large.PARAMETERS + 4 * weights * large.LAYERS) * tokens / 794.5e12
    hop = (8 * 14e-6 + 56 * 3.4e-6) / 64                   # one hop of each node's eight goes over InfiniBand
    ring = [2 * 63 * (hop + nbytes / 64 / 400e9) for nbytes in [2 * (2 * weights + 2)] * 12 + [4 * 8]]
    assert large.predicted_step(gpus, "bucketed").makespan == pytest.approx(compute + math.fsum(ring), rel=1e-9)
    alone = large.predicted_step(1).makespan
    assert alone / large.predicted_step(8).makespan == pytest.approx(8, rel=0.01)
    assert alone / large.predicted_step(128).makespan > 0.9 * 128
    assert large.predicted_step(512).makespan > large.predicted_step(256).makespan \
        > large.predicted_step(128).makespan                                                # the scaling wall


def test_tokens_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="524288 tokens cannot be shared evenly by 6 GPUs"):
        large.predicted_step(6)


def test_walking_speed_is_that_of_a_memory():
    (speeds,) = run(lambda rank: large.walking_speed(sizes=(2**18,), total=2**22), ranks=1, threads=1)
    assert 1e8 < speeds[2**18] < 1e12
