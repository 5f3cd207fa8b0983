"""Who is blamed, and in which words."""

import pickle
import signal

from disttutor.cluster import RankError
from disttutor.cluster.errors import Fault, blame, names, stack_in_words, timed_out

GLOO = ("[/__w/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:52449: Connection reset "
        "by peer. This is typically caused by a remote worker hanging or bugs in the application.")  # fmt: skip


def raised(rank, when, kind="ValueError", message="boom", frames=()):
    report = {"type": kind, "message": message, "text": f"Traceback of {rank}\n", "frames": list(frames)}
    return Fault(rank, report=report, when=when)


def test_the_first_to_raise_is_blamed():
    error = blame([raised(2, 5.0, "KeyError", "'x'"), raised(1, 4.0)])
    assert (error.rank, error.kind) == (1, "raised")
    assert error.detail.splitlines() == [
        "rank 1 raised ValueError: boom", "", "rank 1:", "Traceback of 1", "", "then rank 2 saw KeyError: 'x'",
    ]  # fmt: skip


def test_a_victim_that_reports_first_is_not_blamed():
    for culprit in (raised(2, 9.0), Fault(2, exit_code=-signal.SIGKILL, died=True)):
        error = blame([raised(0, 1.0, "RuntimeError", GLOO), culprit, raised(1, 2.0, "DistBackendError", GLOO)])
        assert error.rank == 2
        victims = [line for line in error.detail.splitlines() if line.startswith("then")]
        assert victims[0] == ("then rank 0 saw RuntimeError: Read error [127.0.0.1]:52449: Connection reset by peer")
        assert len(victims) == 2


def test_a_dead_rank_counts_before_one_that_raised():
    error = blame([raised(0, 1.0), Fault(1, exit_code=3, died=True)])
    assert (error.rank, error.kind) == (1, "died")
    assert error.detail.startswith("rank 1 ended with exit code 3 before it returned")


def test_ranks_with_the_same_error_are_named_together():
    error = blame([raised(3, 1.0), raised(0, 1.5), raised(1, 1.6), raised(2, 1.7, message="other")])
    lines = error.detail.splitlines()
    assert lines[0] == "rank 0 raised ValueError: boom"
    assert lines[1] == "(ranks 1 and 3 did the same)"
    assert lines[-1] == "then rank 2 saw ValueError: other"


def test_how_processes_end():
    def told(code):
        return blame([Fault(0, exit_code=code, died=True)]).detail

    assert told(-9) == "rank 0 was killed by SIGKILL (perhaps out of memory)"
    assert told(-11).startswith("rank 0 was killed by SIGSEGV (a crash in compiled code")
    assert told(-15) == "rank 0 was killed by SIGTERM"
    assert told(-64) == "rank 0 was killed by SIGRTMAX" and told(-40) == "rank 0 was killed by signal 40"
    assert told(None).startswith("rank 0 is gone")


def test_only_the_first_line_of_a_long_message_is_in_the_headline():
    error = blame([raised(0, 1.0, message="first\nsecond")])
    assert error.detail.splitlines()[0] == "rank 0 raised ValueError: first"


def test_the_learners_frame_is_named_not_the_librarys(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("a\n  loss.backward()\nc\n")
    frames = [(str(script), 2, "train"), ("/x/site-packages/torch/_tensor.py", 5, "backward")]
    assert blame([raised(0, 1.0, frames=frames)]).detail.splitlines()[0] == (
        "rank 0 raised ValueError: boom  (train.py, line 2: `loss.backward()`)"
    )


def test_a_deadline_shows_where_each_rank_stood(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("a\nb()\n")
    dump = f'Current thread:\n  File "{script}", line 2 in train\n  File "<string>", line 1 in x'
    error = timed_out({0, 2}, 1.5, {2: dump}, {1})
    assert (error.rank, error.kind) == (0, "timeout")
    assert error.detail.splitlines() == [
        "ranks 0 and 2 did not return within 1.5 s",
        "(rank 1 had returned: a collective needs every rank of its group)",
        "",
        "rank 0 stood here (innermost first):",
        "    (it did not answer)",
        "",
        "rank 2 stood here (innermost first):",
        "    in train  (train.py, line 2: `b()`)",
    ]
    assert stack_in_words(dump) == "    in train  (train.py, line 2: `b()`)"


def test_the_error_survives_pickling():
    error = pickle.loads(pickle.dumps(RankError(1, "died", "text\nmore")))
    assert (error.rank, error.kind, error.detail, str(error)) == (1, "died", "text\nmore", "text\nmore")


def test_names():
    assert [names({1}), names({2, 0}), names([3, 1, 2])] == ["rank 1", "ranks 0 and 2", "ranks 1, 2 and 3"]
