"""The doctor: each check finds the fault it is there for, and says what to do about it."""

import os
import re
import socket
import sys
from collections import namedtuple
from types import SimpleNamespace

import psutil
import pytest

from disttutor import cluster, doctor
from disttutor.doctor import Finding

GB = 1_000_000_000


def only(findings) -> Finding:
    (finding,) = findings
    assert finding.text.endswith("."), finding.text
    assert finding.advice or finding.state == "fine"
    return finding


def test_nothing_is_wrong_on_the_machine_that_runs_the_tests(tmp_path):
    findings = list(doctor.examine(tmp_path))
    assert [finding for finding in findings if finding.state == "wrong"] == []
    assert len(findings) >= 13
    assert any("2 ranks started, added up their numbers and agree" in finding.text for finding in findings)


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(tmp_path, monkeypatch):
    def gpus():
        raise OSError("driver is broken")

    monkeypatch.setattr(doctor, "gpus", gpus)
    monkeypatch.setattr(doctor, "real_ranks", lambda: [doctor.fine("ranks ran")])
    findings = list(doctor.examine(tmp_path))
    assert "Looking at gpus failed: OSError: driver is broken" in [f.text for f in findings if f.state == "wrong"]
    assert findings[-1].text == "ranks ran"


@pytest.mark.parametrize(
    ("installed", "states"),
    [
        ({"torch": "2.13.0+cpu", "jupyterlab": "4.6.6", "ipywidgets": "8.1.9"}, ["fine", "fine", "fine"]),
        ({"torch": "2.13.1", "jupyterlab": "4.6.0", "ipywidgets": "8.1.0"}, ["fine", "fine", "fine"]),
        ({"torch": "2.9.0", "jupyterlab": "4.5.1", "ipywidgets": "9.0.0"}, ["wrong", "note", "note"]),
        ({"torch": "3.0.0", "jupyterlab": "4.10.0", "ipywidgets": "8.1.9"}, ["note", "note", "fine"]),
    ],
)
def test_versions_are_held_against_the_tested_ones(tmp_path, monkeypatch, installed, states):
    tested = tmp_path / "constraints.txt"
    tested.write_text("# tested\nipywidgets==8.1.9\njupyterlab==4.6.6\njupyterlab-server==2.28.1\ntorch==2.13.0\n")
    monkeypatch.setattr(doctor, "shipped", lambda name: tested)
    monkeypatch.setattr(doctor.metadata, "version", installed.get)
    findings = list(doctor.versions())
    assert [finding.state for finding in findings] == states
    if states[0] == "wrong":
        assert findings[0].advice == "Install the tested one: pip install torch==2.13.0"


@pytest.mark.parametrize(
    ("count", "sentence"), [(1, "1 processor core: .* turns on it"), (2, "2 processor cores: .* on them"), (8, "side")]
)
def test_cores_are_those_that_this_process_may_use(monkeypatch, count, sentence):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)), raising=False)
    assert re.search(sentence, only(doctor.cores()).text)


@pytest.mark.parametrize(
    ("forks", "free", "state", "needed"),
    [
        (True, 1.2, "fine", "1.1 GB"),  # notebook 450 MB, server 220 MB, four ranks of 100 MB
        (True, 1.0, "wrong", "1.1 GB"),
        (False, 1.7, "fine", "1.6 GB"),  # notebook 450 MB, four ranks of 300 MB
        (False, 1.5, "wrong", "1.6 GB"),
    ],
)
def test_memory_must_hold_four_ranks(monkeypatch, forks, free, state, needed):
    monkeypatch.setattr("disttutor.cluster.server.can_fork", lambda: forks)
    monkeypatch.setattr(doctor, "available_memory", lambda: int(free * GB))
    finding = only(doctor.memory())
    assert (finding.state, needed in finding.text, f"{free} GB" in finding.text) == (state, True, True)


@pytest.mark.parametrize(
    ("limit", "free"),
    [
        ("max\n", 8 * GB),
        (f"{3 * GB}\n", int(2.5 * GB)),  # 3 - 1 used, of which 0.5 can be given back
        (f"{20 * GB}\n", 8 * GB),
        (f"{GB // 4}\n", 0),
        (None, 8 * GB),
    ],
)
def test_a_containers_limit_counts(tmp_path, monkeypatch, limit, free):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * GB))
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text(f"{GB}\n")
        (tmp_path / "memory.stat").write_text(f"active_file 7\ninactive_file {GB // 2}\n")
    assert doctor.available_memory(tmp_path) == free


@pytest.mark.parametrize(
    ("count", "start"), [(0, "No GPU"), (1, "One GPU (Card 0): several"), (2, "2 GPUs (Card 0, Card 1): up to 2 ranks")]
)
def test_gpus_are_counted(monkeypatch, count, start):
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"Card {index}")
    assert only(doctor.gpus()).text.startswith(start)


@pytest.mark.parametrize(
    ("distributed", "gloo", "nccl", "state"),
    [(1, 1, 0, "fine"), (1, 1, 1, "fine"), (1, 0, 1, "wrong"), (0, 1, 1, "wrong")],
)
def test_ranks_need_gloo(monkeypatch, distributed, gloo, nccl, state):
    import torch.distributed as dist

    monkeypatch.setattr(dist, "is_available", lambda: distributed)
    monkeypatch.setattr(dist, "is_gloo_available", lambda: gloo)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: nccl)
    finding = only(doctor.backends())
    assert (finding.state, "each has a GPU" in finding.text) == (state, (distributed, gloo, nccl) == (1, 1, 1))


Address = namedtuple("Address", "family address")


@pytest.mark.parametrize("addresses", [{}, {"lo": [Address(socket.AF_INET, "10.0.0.1")]}])
def test_no_loopback_network_is_found(monkeypatch, addresses):
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: addresses)
    assert "is not there or not up" in only(doctor.loopback()).text


def test_a_loopback_network_that_is_down_is_found(monkeypatch):
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"lo": [Address(socket.AF_INET, "127.0.0.1")]})
    monkeypatch.setattr(psutil, "net_if_stats", lambda: {"lo": SimpleNamespace(isup=False)})
    finding = only(doctor.loopback())
    assert (finding.state, "ip link set lo up" in finding.advice) == ("wrong", True)


def test_a_connection_that_fails_is_found(monkeypatch):
    def refuse(*args, **settings):
        raise ConnectionRefusedError("refused by a firewall")

    monkeypatch.setattr(socket, "create_connection", refuse)
    assert "a connection over it fails: refused by a firewall" in only(doctor.loopback()).text


@pytest.mark.parametrize(("megabytes", "state"), [(16, "note"), (1024, "fine")])
def test_little_shared_memory_is_noted(tmp_path, monkeypatch, megabytes, state):
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=megabytes * 250, f_frsize=4000))
    assert only(doctor.shared_memory(tmp_path)).state == state
    assert list(doctor.shared_memory(tmp_path / "not there")) == []


def test_a_temporary_folder_that_cannot_be_written_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    finding = only(doctor.temporary_folder())
    assert (finding.state, "TMPDIR" in finding.advice) == ("wrong", True)


@pytest.mark.parametrize(
    ("program", "state"), [("python", "fine"), (sys.executable, "fine"), ("/usr/bin/some-other-python", "wrong")]
)
def test_notebooks_must_run_in_this_python(monkeypatch, program, state):
    from jupyter_client.kernelspec import KernelSpecManager

    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda self, name: SimpleNamespace(argv=[program]))
    assert only(doctor.kernel()).state == state


def test_files_that_hide_library_modules_are_named(tmp_path):
    for name in ("queue.py", "my_notes.py", "disttutor.py", "random.txt"):
        (tmp_path / name).touch()
    for name in ("torch", "pictures"):
        (tmp_path / name).mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    hiding = list(doctor.shadowing_files(tmp_path))
    assert [finding.state for finding in hiding] == ["wrong", "wrong"]
    assert "queue.py in" in hiding[0].text
    assert "torch/ in" in hiding[1].text
    assert hiding[0].advice == "Rename it, for example to my_queue.py"


def test_ranks_that_do_not_start_are_told_with_their_reason(monkeypatch):
    def fail(*args, **settings):
        raise cluster.RankError(1, "died", "rank 1 died: killed by SIGKILL\nmore of it")

    monkeypatch.setattr(cluster, "run", fail)
    finding = list(doctor.real_ranks())[0]
    assert finding.state == "wrong"
    assert finding.text.startswith("Starting 2 ranks failed: rank 1 died: killed by SIGKILL")


def test_ranks_that_add_up_wrongly_are_found(monkeypatch):
    answers = cluster.Results([3.0, 1.0])
    monkeypatch.setattr(cluster, "run", lambda *args, **settings: answers)
    assert "all-reduce gave [3.0, 1.0] and not 3.0" in only(doctor.real_ranks()).text
