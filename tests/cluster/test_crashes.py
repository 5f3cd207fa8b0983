"""Crashes in compiled code: said in one line with the learner's place, and what the C++ runtime says only once."""

import signal

import pytest

from disttutor.cluster import RankError, run
from disttutor.cluster.crashes import CRASHES, MOST_LINES, LastWords, crashing_stack
from disttutor.cluster.errors import frames_of


def abort(rank):
    import os

    os.abort()


def terminate(rank):
    import ctypes

    ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev()


def segfault(rank):
    import ctypes

    ctypes.string_at(0)


@pytest.mark.parametrize(("fault", "name", "line"), [
    (abort, "SIGABRT", "os.abort()"), (terminate, "SIGABRT", 'ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev()'),
    (segfault, "SIGSEGV", "ctypes.string_at(0)"),
])  # fmt: skip
def test_the_first_line_says_who_how_and_where(fault, name, line):
    lines = []
    with pytest.raises(RankError) as caught:
        run(fault, output=lambda *line: lines.append(line), timeout=60)
    error = caught.value
    first, *rest = str(error).splitlines()
    assert first.startswith(f"rank {error.rank} was killed by {name} (")
    assert first.endswith(f": `{line}`)") and "(test_crashes.py, line " in first
    assert error.kind == "died"
    assert f"    in {fault.__name__}  (" in "\n".join(rest) and len(rest) < 8
    assert [text for _, text in lines] == (
        ["terminate called without an active exception\n"] if fault is terminate else []
    )


def test_a_crash_leaves_the_text_before_it_alone():
    def work(rank):
        import os

        print("before")
        if rank == 1:
            os.abort()

    lines = []
    with pytest.raises(RankError, match="^rank 1 was killed by SIGABRT"):
        run(work, output=lambda *line: lines.append(line), timeout=60)
    assert sorted(lines) == [(0, "before\n"), (1, "before\n")]


def test_last_words_are_short_and_said_once():
    said = ["step 1", "terminate called after throwing an instance of 'c10::Error'", "  what():  out of luck",
            "Exception raised from f at g.cpp:3 (most recent call first):",
            *(f"frame #{i}: <unknown function> + 0x{i} (0x7f in libtorch.so)" for i in range(40)), "",
            *(f"more {i}" for i in range(20))]  # fmt: skip
    words = LastWords()
    shown = words.condense(0, said)
    assert shown == [*said[:4], *(f"more {i}" for i in range(MOST_LINES - 3))]
    assert words.condense(1, ["step 1", "step 1", *said[1:4], "only of rank 1"]) == ["step 1", "step 1",
                                                                                     "only of rank 1"]  # fmt: skip
    assert LastWords().condense(0, ["", "frame #1: the learner's own", ""]) == ["", "frame #1: the learner's own", ""]


DUMP = """Fatal Python error: Aborted

Thread 0x01 (most recent call first):
  File "old.py", line 1 in old

Fatal Python error: Segmentation fault

{crashed}Thread 0x02 (most recent call first):
  File "watch.py", line 3 in watch

Thread 0x03 (most recent call first):
  File "inner.py", line 4 in inner
  File "train.py", line 5 in train

Extension modules: numpy (total: 1)
"""


def test_the_thread_that_crashed_is_told_else_the_first_of_the_process():
    current = 'Current thread 0x04 (most recent call first):\n  File "worker.py", line 9 in work\n\n'
    assert frames_of(crashing_stack(DUMP.format(crashed=current))) == [("worker.py", 9, "work")]
    nothing = "Current thread 0x04 (most recent call first):\n  <no Python frame>\n\n"
    for crashed in (nothing, ""):
        assert frames_of(crashing_stack(DUMP.format(crashed=crashed))) == [("train.py", 5, "train"),
                                                                           ("inner.py", 4, "inner")]  # fmt: skip
    assert crashing_stack("") == ""
    assert -signal.SIGABRT in CRASHES and -signal.SIGKILL not in CRASHES
