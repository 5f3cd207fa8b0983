"""The process that ranks are forked from."""

import os
import signal
import subprocess
import sys
import time

import psutil

from disttutor.cluster import prewarm, run, server


def test_it_has_one_thread_its_own_session_and_no_ear_for_stop():
    def train(rank):
        import torch

        started_with = {"torch._dynamo", "torch.distributed.fsdp", "disttutor.strategies"} - set(sys.modules)
        return started_with, type(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)).__name__

    assert run(train) == [(set(), "SGD")] * 2  # it names an optimizer, so all that training needs was there
    pid = server.SERVER.pid
    assert psutil.Process(pid).num_threads() == 1  # more, and a fork could copy a lock that somebody holds
    assert os.getsid(pid) == pid != os.getsid(0)
    os.kill(pid, signal.SIGINT)
    time.sleep(0.1)
    assert run(lambda rank: os.getppid()) == [pid, pid]


def test_it_is_started_once():
    prewarm()
    pid = server.SERVER.pid
    prewarm()
    assert server.SERVER.pid == pid


def test_a_script_is_not_run_again_in_the_ranks(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from disttutor import run\nprint('script')\nBASE = 5\nprint(run(lambda rank: BASE + rank))\n")
    (tmp_path / "queue.py").write_text("raise SystemExit('imported in place of a library')")
    package = os.path.dirname(os.path.dirname(os.path.dirname(server.__file__)))
    done = subprocess.run(
        [sys.executable, "-P", "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": package},
    )  # fmt: skip
    assert done.stdout == "script\n[5, 6]\n", done.stderr


def test_huge_pages_are_an_offer_that_may_be_declined():
    code = "from disttutor.cluster import hugepages; x = bytearray(16 << 20); print(hugepages.gather())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 0 and int(done.stdout) % (2 << 20) == 0


def test_stopping_it_removes_its_folder_even_if_the_notebook_is_killed_meanwhile(monkeypatch):
    other = server.ForkServer()
    other.start()
    folder, process = other.folder, other._process

    def killed_here():
        assert not os.path.exists(folder)

    monkeypatch.setattr(process, "kill", killed_here)
    with monkeypatch.context() as patch:
        patch.setattr(process, "wait", killed_here)
        other.stop()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
