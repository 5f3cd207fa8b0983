"""Stop at the very start of a run, when ranks have been asked for and are not there yet."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from kernel import gone

from disttutor.cluster import run, server
from disttutor.cluster.devices import lay_out
from disttutor.cluster.engine import Group

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 3.0  # 0.1 s on an idle machine

SCRIPT = """
import os, signal, threading, time
from disttutor import run
run(lambda rank: rank)
for delay in (0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.05):
    pressed = []
    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    try:
        threading.Timer(delay, press).start()
        run(lambda rank: time.sleep(5))
    except KeyboardInterrupt:
        print(time.monotonic() - pressed[0])
    assert run(lambda rank: rank) == [0, 1]
"""


def ranks_here() -> list[psutil.Process]:
    """The ranks of this process: the children of its server."""
    return psutil.Process(server.SERVER.pid).children()


def test_stop_in_the_first_moments_of_a_run():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    waits = [float(line) for line in done.stdout.split()]
    assert len(waits) == 10 and max(waits) < SECONDS, waits


def test_a_group_that_is_ended_before_its_ranks_are_there():
    run(lambda rank: rank)
    others = set(ranks_here())
    for _ in range(3):
        group = Group(lay_out(3), server.launcher())
        start = time.monotonic()
        group.kill()
        assert time.monotonic() - start < SECONDS
        assert gone([p for p in ranks_here() if p not in others], within=5) == []


def test_a_start_that_fails_half_way(monkeypatch):
    """The first ranks have been asked for when the next one cannot be."""
    run(lambda rank: rank)
    others = set(ranks_here())
    asked, new_rank = [], server.SERVER.new_rank

    def no_more(trains):
        asked.append(1)
        if len(asked) % 3 == 0:
            raise OSError(24, "Too many open files")
        return new_rank(trains)

    monkeypatch.setattr(server.SERVER, "new_rank", no_more)
    start = time.monotonic()
    with pytest.raises(OSError, match="Too many open files"):
        run(lambda rank: rank, ranks=3)
    assert time.monotonic() - start < SECONDS
    assert gone([p for p in ranks_here() if p not in others], within=5) == []


def test_a_rank_whose_notebook_lets_go_while_it_joins():
    """A rank of a group that is never complete: closing the connection is enough, it does not wait for the others."""
    run(lambda rank: rank)
    group = Group(lay_out(2), server.launcher())
    first, second = group.members
    second.wait_for_pid(30)
    second.kill()
    process = psutil.Process(first.wait_for_pid(30))
    group._let_go()
    assert gone([process], within=15) == []


def test_a_rank_nobody_waits_for_is_ended_by_the_server():
    run(lambda rank: rank)
    others = set(ranks_here())
    rank = server.SERVER.new_rank()
    rank.close()
    time.sleep(0.1)
    assert gone([p for p in ranks_here() if p not in others], within=10) == []
