"""Whole lines marked with their rank; one bar; a text that is too long is cut; a sink of its own for each run."""

import io
import threading
import time

import pytest

from disttutor.cluster import Cluster, RankError, run
from disttutor.cluster.output import LONGEST_AT_END, MOST, TAIL, Console, cut_in_the_middle


class Sink(list):
    def __call__(self, rank, text):
        self.append((rank, text))


def test_lines_are_put_together_from_pieces():
    sink = Sink()
    console = Console(sink)
    console.feed(0, b"on")
    console.feed(1, b"two\nthr")
    console.feed(0, "e\nü"[:1].encode())
    console.feed(0, "\nü".encode()[:2])  # half of a letter
    assert sink == [(1, "two\n"), (0, "one\n")]
    console.feed(0, "ü".encode()[1:])
    console.feed(1, b"ee\r\n50 %\r100 %")
    console.finish()
    assert sink == [(1, "two\n"), (0, "one\n"), (1, "three\n"), (0, "ü\n"), (1, "100 %\n")]


def test_without_a_sink_lines_are_marked(capsys):
    console = Console()
    console.feed(3, b"a\nb\n")
    console.remark("a remark")
    assert capsys.readouterr().out == "[rank 3] a\n[rank 3] b\na remark\n"


def test_a_text_that_is_too_long_keeps_its_end():
    sink = Sink()
    console = Console(sink)
    for i in range(20_000):
        console.feed(0, f"line {i} {'x' * 60}\n".encode())
    console.finish()
    assert sum(len(text) for _, text in sink) < MOST + 10_000
    (at,) = [i for i, (rank, _) in enumerate(sink) if rank is None]
    assert sink[at][1] == f"… {20_000 - at} lines of the ranks are not shown; the last {TAIL}:\n"
    assert [text.split()[1] for _, text in sink[at + 1 :]] == [str(i) for i in range(20_000 - TAIL, 20_000)]


def test_a_warning_is_shown_once():
    sink = Sink()
    console = Console(sink)
    info = {"category": "UserWarning", "message": "odd", "filename": "nowhere.py", "lineno": 3}
    for rank in (1, 0, 1):
        console.warning(rank, info)
    assert sink == [(1, "UserWarning: odd  (nowhere.py, line 3)\n")]


def test_one_bar_as_far_as_the_slowest():
    class WithProgress(Sink):
        seen = []

        def progress(self, title, done, total):
            self.seen.append((title, done, total))

    console = Console(WithProgress())
    for rank, turn, done in [(0, 1, 0), (1, 1, 0), (0, 1, 4), (1, 1, 2), (0, 2, 0), (1, 1, 5), (1, 2, 1)]:
        console.progress(rank, {"turn": turn, "title": f"epoch {turn}", "done": done, "total": 5})
    assert WithProgress.seen == [("epoch 1", 0, 5), ("epoch 1", 0, 5), ("epoch 1", 0, 5), ("epoch 1", 2, 5),
                                 ("epoch 2", 0, 5), ("epoch 2", 0, 5)]  # fmt: skip


def test_everything_a_rank_writes_arrives_in_order():
    def speak(rank):
        import os
        import sys

        for i in range(3):
            print("out", i)
            print("err", i, file=sys.stderr)
        os.write(1, b"from compiled code\n")
        print("no newline", end="")

    sink = Sink()
    run(speak, output=sink)
    spoken = [f"{where} {i}\n" for i in range(3) for where in ("out", "err")]
    for rank in range(2):
        assert [t for r, t in sink if r == rank] == [*spoken, "from compiled code\n", "no newline\n"]


def test_much_text_does_not_block_a_run():
    def shout(rank):
        for _ in range(3000):
            print("x" * 1000)
        return "done"

    sink = Sink()
    assert run(shout, output=sink, timeout=60) == ["done", "done"]
    assert any(rank is None for rank, _ in sink)


def test_tqdm_of_ranks_is_silent_and_progress_reaches_the_sink():
    def loop(rank):
        from tqdm.auto import tqdm

        from disttutor.cluster import progress

        for _ in tqdm(range(3)):
            pass
        return sum(progress((i for i in range(4)), "steps")) + sum(i for _ in progress([1, 2]) for i in progress([3]))

    class WithProgress(Sink):
        def progress(self, title, done, total):
            self.append((title, done, total))

    sink = WithProgress()
    assert run(loop, output=sink) == [12, 12]
    assert sink[0] == ("steps", 0, None) and sink[-1] == ("", 2, 2)
    assert {title for title, _, _ in sink} == {"steps", ""}  # three values each: no text of a bar at all


def test_a_run_in_the_background_goes_to_its_sink_and_can_be_stopped(capsys):
    with Cluster(2) as cluster:
        sink, raised = Sink(), []

        def work(rank):
            print("there")
            time.sleep(600)

        def background():
            try:
                cluster.run(work, output=sink)
            except RankError as error:
                raised.append((error, time.monotonic()))

        thread = threading.Thread(target=background)
        thread.start()
        end = time.monotonic() + 60
        while len(sink) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        assert run(lambda rank: rank) == [0, 1]  # another cluster's run is not in its way
        stopped = time.monotonic()
        cluster.stop()
        thread.join(30)
        ((error, when),) = raised
        assert (error.kind, error.rank) == ("interrupted", None)
        assert str(error) == "the run of work on 2 ranks was stopped"
        assert when - stopped < 3.0  # 0.05 s on an idle machine
        assert sorted(sink) == [(0, "there\n"), (1, "there\n")]
        assert capsys.readouterr().out == ""
        cluster.stop()  # nothing runs: no harm
        assert cluster.run(lambda rank: rank + 5) == [5, 6]


def test_a_second_run_waits_and_says_for_what():
    with Cluster(2) as cluster:
        cluster.run(lambda rank: None)
        first, second, started = Sink(), Sink(), threading.Event()

        def slow(rank):
            print("slow")
            time.sleep(2.0)
            return "slow"

        class Started(Sink):
            def __call__(self, rank, text):
                super().__call__(rank, text)
                started.set()

        first, results = Started(), {}
        threads = [
            threading.Thread(target=lambda: results.update(first=cluster.run(slow, output=first))),
            threading.Thread(target=lambda: results.update(second=cluster.run(lambda rank: rank, output=second))),
        ]
        threads[0].start()
        assert started.wait(30)
        threads[1].start()
        for thread in threads:
            thread.join(60)
        assert results == {"first": ["slow", "slow"], "second": [0, 1]}
        ((rank, text),) = second
        assert rank is None and text.startswith("waiting: slow on 2 ranks has been running for ")


def test_ranks_that_go_on_alone_are_pointed_out(monkeypatch):
    monkeypatch.setattr("disttutor.cluster.engine._PATIENCE", 0.2)
    sink = Sink()
    run(lambda rank: time.sleep(1.5 if rank else 0), output=sink)
    ((rank, text),) = sink
    assert rank is None and text.startswith("rank 0 returned 0 s ago, rank 1 did not: in a collective that not every")


def test_a_run_inside_an_output_sink_is_refused():
    problems = []

    def sink(rank, text):
        try:
            run(lambda rank: rank)
        except RuntimeError as problem:
            problems.append(str(problem))

    run(lambda rank: print("text"), ranks=1, output=sink)
    assert problems == ["<lambda> on 2 ranks was asked for from inside <lambda> on 1 rank: a run cannot start another"]


def test_a_sink_that_raises_ends_the_run():
    class Broken(Exception):
        pass

    def sink(rank, text):
        raise Broken

    with pytest.raises(Broken):
        run(lambda rank: print("text"), output=sink)
    assert run(lambda rank: rank) == [0, 1]


def test_bar_in_a_terminal_is_drawn_once(monkeypatch, capfd):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    console = Console()
    for rank, done in [(0, 1), (1, 1), (0, 2), (1, 2)]:
        console.progress(rank, {"turn": 1, "title": "steps", "done": done, "total": 2})
    console.finish()
    assert stream.getvalue().count("\n") == 1 and "2/2" in stream.getvalue()


@pytest.mark.parametrize("last", ["END\n", "END", "y" * 3_000_000 + "END\n"])
def test_the_last_line_is_shown_after_lines_that_are_very_long(last):
    sink = Sink()
    console = Console(sink)
    text = "a" * 3_000_000 + "\n" + last
    for start in range(0, len(text), 1 << 16):
        console.feed(0, text[start : start + (1 << 16)].encode())
    console.finish()
    assert sink[-1][0] == 0 and sink[-1][1].endswith("END\n")
    assert sum(len(text) for _, text in sink) < MOST + 2 * (1 << 16) + TAIL * (LONGEST_AT_END + 100)


def test_a_long_line_at_the_end_keeps_both_its_ends():
    assert cut_in_the_middle("short", 5) == "short"
    assert cut_in_the_middle("a" * 50 + "b" * 50, 10) == "aaaaa … 90 characters left out … bbbbb"
