"""The demo: real training on 1, 2 and 4 ranks, the same as in one process."""

import pytest

from disttutor import demo
from disttutor.plans import Op
from disttutor.traces import Span, Trace

# Weights and biases of 64 -> 512 -> 256 -> 10; beside each of these six one element that says whether it was used, and
# the loss and the count; all in float64.
EXCHANGED = 8 * (64 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10 + 6 + 4)
STEPS = 12  # 1,438 digits in batches of 128


@pytest.fixture(scope="module")
def outcome():
    shares = []
    rows, trace = demo.compare(epochs=1, moved=shares.append)
    return rows, trace, shares


def test_every_number_of_ranks_trains_the_same_model(outcome):
    rows, _, _ = outcome
    assert [row.ranks for row in rows] == [1, 2, 4]
    assert rows[0].distance == 0.0
    assert all(0 < row.distance <= 1e-12 for row in rows[1:])
    assert len({row.accuracy for row in rows}) == 1
    assert rows[0].accuracy > 0.5  # guessing gets 0.1
    assert all(row.loss == pytest.approx(rows[0].loss, abs=1e-12) for row in rows)


def test_each_rank_sends_what_a_ring_sends(outcome):
    rows, _, _ = outcome
    assert rows[0].sent == 0
    for row in rows[1:]:
        per_step = 2 * (row.ranks - 1) / row.ranks * EXCHANGED
        assert row.sent == pytest.approx(STEPS * per_step, rel=1e-9)


def test_one_bar_goes_from_nothing_to_all(outcome):
    _, _, shares = outcome
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(set(shares)) >= 5                # at least the ends of the four trainings


def test_the_picture_shows_the_last_steps_twice(outcome, tmp_path):
    _, trace, _ = outcome
    path = demo.picture(trace, tmp_path / "new" / "folder")
    drawing = path.read_text()
    assert path.name == "timeline.svg"
    assert "on 4 ranks, as it ran" in drawing
    assert "a core for each rank" in drawing
    assert f"step {STEPS - 1}" in drawing
    assert f"step {STEPS - 3}" not in drawing


def test_the_bar_counts_runs_and_what_ranks_report():
    shares, lines = [], []
    bar = demo.Bar(4, shares.append, lines.append)
    bar.progress("training", 5, 10)
    bar.finish_run()
    bar.progress("training", 0, None)
    bar(3, "[rank 3] hello\n")
    assert shares == [0.125, 0.25, 0.25]
    assert lines == ["[rank 3] hello"]


def test_a_short_trace_is_drawn_whole(tmp_path):
    spans = tuple(Span(Op(kind="forward", rank=rank), 0.0, 0.01, cpu=0.01) for rank in range(2))
    assert demo.picture(Trace(spans, 2), tmp_path).exists()
