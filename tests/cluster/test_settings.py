"""Odd settings: refused before anything starts, with what would work; or they simply work."""

import os
import re
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from disttutor.cluster import Cluster, FreshRuns, payload, run
from disttutor.cluster.settings import check_timeout
from disttutor.plans import Machine
from disttutor.traces import SlowMotion

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("settings", "words"), [
    ({"slow_motion": True}, "slow_motion=True is of type bool: give the machine whose pace the ranks keep, such as"),
    ({"slow_motion": 5}, "slow_motion=5 is of type int"),
    ({"slow_motion": Machine()}, "is of type Machine: give the machine whose pace the ranks keep, such as SlowMotion("),
    ({"output": 5}, "output=5 is of type int: give a function output(rank, text)"),
    ({"output": "log.txt"}, "output='log.txt' is of type str"),
    ({"timeout": True}, "timeout=True is of type bool"),
    ({"timeout": 1j}, "timeout=1j is of type complex"),
])  # fmt: skip
def test_refused_before_anything_starts(settings, words, monkeypatch):
    monkeypatch.setattr("disttutor.cluster.ranks.launcher", lambda: pytest.fail("something was started"))
    with pytest.raises(TypeError, match=re.escape(words)):
        run(lambda rank: rank, **settings)
    with pytest.raises(TypeError, match=re.escape(words)):
        FreshRuns().run(lambda rank: rank, **settings)


@pytest.mark.parametrize("setting", ["ranks", "threads"])
def test_fractions_are_no_numbers_of_ranks(setting):
    with pytest.raises(TypeError, match=f"{setting}=.*2.0.* is of type float64: give a whole number"):
        run(lambda rank: rank, **{setting: np.float64(2)})


def test_a_kept_cluster_refuses_them_too():
    with Cluster(1) as cluster, pytest.raises(TypeError, match="slow_motion=True"):
        cluster.run(lambda rank: rank, slow_motion=True)


@pytest.mark.parametrize("timeout", [float("inf"), 1e9, 3e6, 10**400, np.float32(60), np.int64(60)])
def test_any_positive_number_is_a_limit(timeout):
    """3e6 s is more than the system can be asked to wait for at once."""
    assert run(lambda rank: rank, timeout=timeout) == [0, 1]


def test_what_is_no_limit():
    assert [check_timeout(t) for t in (None, float("inf"), 1e9, 10**400)] == [None] * 4
    assert check_timeout(np.int64(60)) == 60.0
    with pytest.raises(ValueError, match="timeout=nan: give a positive number"):
        check_timeout(float("nan"))


def test_numpys_whole_numbers_are_numbers():
    assert run(lambda rank: torch.get_num_threads(), ranks=np.int64(2), threads=np.int32(1)) == [1, 1]
    with Cluster(np.int64(3)) as cluster:
        assert cluster.ranks == 3 and type(cluster.ranks) is int
        assert cluster.run(lambda rank: rank) == [0, 1, 2]


def test_slow_motion_may_be_switched_off():
    assert run(lambda rank: rank, slow_motion=False).trace is None
    assert run(lambda rank: rank, record=True, slow_motion=False).trace.source == "measured"
    assert run(lambda rank: rank, slow_motion=SlowMotion()).trace.source == "slow motion"


def test_runs_that_wait_for_a_cluster_which_is_closed():
    cluster, there, outcomes = Cluster(2), threading.Event(), []

    def first():
        try:
            cluster.run(lambda rank: (print("there"), time.sleep(600)), output=lambda rank, text: there.set())
        except RuntimeError as problem:
            outcomes.append(str(problem))

    def queued():
        try:
            outcomes.append(cluster.run(lambda rank: rank, output=lambda rank, text: None))
        except RuntimeError as problem:
            outcomes.append(str(problem))

    threads = [threading.Thread(target=first), *(threading.Thread(target=queued) for _ in range(3))]
    threads[0].start()
    assert there.wait(60)
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.3)
    cluster.close()
    for thread in threads:
        thread.join(60)
    closed = "this cluster is closed: make a new one, Cluster(...)"
    assert sorted(outcomes) == sorted(["the run of <lambda> on 2 ranks was stopped", closed, closed, closed])
    assert cluster.pids == []


def test_the_warning_about_a_large_variable_is_on_the_learners_line(monkeypatch):
    monkeypatch.setattr(payload, "LARGE", 1 << 20)
    table = torch.zeros(1 << 19)

    def use(rank):
        return table[0]

    with warnings.catch_warnings(record=True) as caught, Cluster(1) as cluster:
        warnings.simplefilter("always")
        run(use, ranks=1)
        FreshRuns().run(use, ranks=1)
        cluster.run(use)
    first = test_the_warning_about_a_large_variable_is_on_the_learners_line.__code__.co_firstlineno
    lines = [number for number, line in enumerate(Path(__file__).read_text().splitlines(), start=1)
             if "run(use" in line and number > first][:3]  # fmt: skip
    assert [(w.filename, w.lineno) for w in caught if "uses table" in str(w.message)] == [
        (__file__, line) for line in lines
    ]


GONE = """
import os, tempfile
folder = tempfile.mkdtemp()
os.chdir(folder)
{before}
os.rmdir(folder)
from disttutor import Cluster, run
for call in (lambda: run(lambda rank: rank), lambda: Cluster(2)):
    try:
        call()
    except FileNotFoundError as problem:
        print(problem)
os.chdir("/")
print(run(lambda rank: rank))
"""


@pytest.mark.parametrize("before", ["", "from disttutor import run; run(lambda rank: rank)"])
def test_a_deleted_folder(before):
    done = subprocess.run([sys.executable, "-c", GONE.format(before=before)], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    *refusals, result = done.stdout.splitlines()
    assert len(refusals) == 2 and result == "[0, 1]"
    for line in refusals:
        assert line.startswith("the folder that this process works in has been deleted, and its ranks would work")


KILLED = """
import os, signal, time
from disttutor import run
from disttutor.cluster import Cluster
from disttutor.cluster.server import SERVER
print(run(lambda rank: rank))
for pause in (0, 0.01, 0.03):
    os.kill(SERVER.pid, signal.SIGKILL)
    time.sleep(pause)
    print(run(lambda rank: rank))
os.kill(SERVER.pid, signal.SIGKILL)
with Cluster(2) as cluster:
    print(cluster.run(lambda rank: rank))
os.kill(SERVER.pid, signal.SIGKILL)
def once(rank):                          # the function has begun: it is not run again
    with open("begun", "a") as file:
        print(rank, file=file, flush=True)
    if rank == 0:
        os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
try:
    run(once)
except RuntimeError as problem:
    print(type(problem).__name__, str(problem).splitlines()[0])
"""


def test_a_run_right_after_the_server_was_killed(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=180, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0, 1]"] * 5 + [
        "RankError rank 0 is gone: the process that ranks are forked from has ended"
    ]
    begun = (tmp_path / "begun").read_text().split()
    assert len(begun) == len(set(begun)) >= 1
