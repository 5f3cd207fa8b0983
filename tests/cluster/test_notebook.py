"""What a learner sees in a notebook: real cells in a real kernel."""

import re
import time

import pytest
from kernel import gone


def test_functions_classes_and_constants_of_cells(notebook):
    """A-01: a function of one cell that uses what three other cells defined."""
    notebook.ok("BASE = 100")
    notebook.ok("class Scale:\n    def __init__(self, by):\n        self.by = by\n"
                "    def __call__(self, x):\n        return x * self.by")  # fmt: skip
    notebook.ok("def helper(rank):\n    return Scale(10)(rank) + BASE")
    notebook.ok("def train(rank):\n    x = torch.tensor([helper(rank)])\n    dist.all_reduce(x)\n"
                "    return helper(rank), x.item(), Scale(3)")  # fmt: skip
    assert notebook.ok("out = run(train, ranks=2); [v[:2] for v in out]").result == "[(100, 210), (110, 210)]"
    assert notebook.ok("[type(v[2]) is Scale for v in out], out[0][2].by").result == "([True, True], 3)"


def test_what_cannot_be_sent_is_refused_before_a_process_starts(new_kernel):
    """A-01: an open file, a lock."""
    kernel = new_kernel(env={"DISTTUTOR_TEST": "1"})
    kernel.ok("import threading; from disttutor.cluster import run, server; server.SERVER.stop()")
    kernel.ok("log = open('log.txt', 'w'); guard = threading.Lock()")
    for name, what in [("log", "an open file"), ("guard", "a lock")]:
        ran = kernel.run(f"def train(rank):\n    {name}\nrun(train)")
        assert ran.error == "TypeError"
        assert ran.message.startswith(f"train cannot be sent to the ranks, because it uses {name}, which is {what}")
    assert kernel.family() == []


def test_a_redefinition_is_seen(notebook):
    notebook.ok("kept = Cluster(2)\nfactor = 2\ndef train(rank):\n    return rank * factor")
    assert notebook.ok("run(train), kept.run(train)").result == "([0, 2], [0, 2])"
    notebook.ok("factor = 3")
    assert notebook.ok("run(train), kept.run(train)").result == "([0, 3], [0, 3])"
    notebook.ok("def train(rank):\n    return rank - factor")
    assert notebook.ok("run(train), kept.run(train)").result == "([-3, -2], [-3, -2])"
    notebook.ok("kept.close()")


def test_runs_in_a_row_two_kernels_at_once_and_a_taken_port(notebook, new_kernel):
    """A-02: no port is shared, and the kernel's environment is left alone."""
    other = new_kernel()
    other.ok("import disttutor, socket, os; from disttutor import run")
    setup = (
        "import socket, os\ntaken = socket.socket(); taken.bind(('', 0)); taken.listen()\n"
        "os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(taken.getsockname()[1]), RANK='7')\n"
        "before = dict(os.environ)\n"
        "def work(rank):\n    import torch, time, torch.distributed as dist\n    x = torch.tensor(rank + 1.)\n"
        "    for _ in range(5):\n        dist.barrier(); time.sleep(0.1)\n    dist.all_reduce(x)\n    return x.item()"
    )
    for kernel in (notebook, other):
        kernel.ok(setup)
    other.ok("run(work, ranks=2)", timeout=120)
    for _ in range(2):
        cells = [(kernel, kernel.send("run(work, ranks=3)")) for kernel in (notebook, other)]
        assert [kernel.collect(cell).result for kernel, cell in cells] == ["[6.0, 6.0, 6.0]"] * 2
    for kernel in (notebook, other):
        assert kernel.ok("dict(os.environ) == before").result == "True"
    notebook.ok("for name in ('MASTER_ADDR', 'MASTER_PORT', 'RANK'): del os.environ[name]\ntaken.close()")


def test_a_kernel_that_used_the_accelerator_and_threads(notebook):
    """A-03: nothing of the kernel is forked, so it does not matter what it did before."""
    notebook.ok("import unittest.mock\npatch = unittest.mock.patch('torch.cuda.is_initialized', lambda: True)\n"
                "patch.start()\na = torch.randn(500, 500); (a @ a).exp_()")  # fmt: skip
    assert notebook.ok("run(lambda rank: (torch.cuda.is_initialized(), rank))").result == "[(False, 0), (False, 1)]"
    ran = notebook.run("run(lambda rank: rank, device='cuda')")
    assert ran.error == "RuntimeError" and "finds no NVIDIA GPU" in ran.message
    notebook.ok("patch.stop()")


def test_one_rank_raises_while_the_others_wait(notebook):
    """A-04: the cause first, with the line of the cell; the victims' errors after it; soon; all gone."""
    ran = notebook.run("""
def train(rank):
    for step in range(5):
        if rank == 1 and step == 2:
            raise ValueError(f"boom at step {step}")
        dist.all_reduce(torch.ones(3))
run(train, ranks=3)
""")
    assert ran.seconds < 5
    lines = ran.traceback.splitlines()
    assert re.fullmatch(
        r"RankError: rank 1 raised ValueError: boom at step 2  "
        r'\(cell In\[\d+\], line 4: `raise ValueError\(f"boom at step \{step\}"\)`\)',
        lines[0],
    )
    assert any(re.fullmatch(r"  Cell In\[\d+\], line 4, in train", line) for line in lines)
    assert not re.search("lifetimes|engine|rank_main", ran.traceback)
    assert gone([p for p in notebook.family() if p.ppid() != notebook.pid], within=3) == []


def test_the_culprit_is_named_and_not_its_victims(notebook):
    ran = notebook.run("""
def train(rank):
    dist.all_reduce(torch.ones(3))
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(3))
run(train, ranks=3)
""")
    first, *rest = ran.message.splitlines()
    assert first == "rank 2 was killed by SIGKILL (perhaps out of memory)"
    victims = [line for line in rest if line.startswith("then rank")]
    assert 1 <= len(victims) <= 2
    for line in victims:
        assert re.match(r"then rank [01] saw RuntimeError: .*onnection.*  \(cell In\[\d+\], line 5: `dist", line), line


def test_prints_and_progress_while_it_runs(notebook):
    """A-05: six marked lines, in order for each rank, during the run; one bar."""
    notebook.ok("import tqdm.auto")  # a second's work at the first bar, which would hold back the first lines
    ran = notebook.ok("""
def train(rank):
    for i in progress(range(10), "steps"):
        time.sleep(0.1)
        if i in (2, 5, 8):
            print("line", i)
run(train, ranks=2); None
""")
    lines = ran.text.splitlines()
    assert sorted(lines) == sorted(f"[rank {rank}] line {i}" for rank in range(2) for i in (2, 5, 8))
    for rank in range(2):
        assert [line for line in lines if f"rank {rank}" in line] == [f"[rank {rank}] line {i}" for i in (2, 5, 8)]
    assert all(text.endswith("\n") for _, text in ran.pieces)
    times = [when for when, _ in ran.pieces]
    assert max(times) - min(times) > 0.3  # they were printed 0.6 s apart, and not shown together at the end
    assert len(ran.displays) == 1 and "steps" in str(ran.displays[0])


def test_warnings_once_and_with_their_line(notebook):
    ran = notebook.ok("""
def train(rank):
    warnings.warn("the learning rate is odd")
run(train, ranks=3); None
""")
    assert re.fullmatch(
        r"\[rank \d\] UserWarning: the learning rate is odd  \(cell In\[\d+\], line 2: `warnings.warn\(.*\)`\)\n",
        ran.text,
    )


def test_a_background_run_prints_into_its_own_place(notebook):
    """A lab's run goes on while other cells run; its text does not land in them."""
    notebook.ok("""
lab, told = Cluster(2), []
def talk(rank):
    for i in range(8):
        print(i)
        time.sleep(0.1)
    return rank
thread = threading.Thread(target=lambda: lab.run(talk, output=lambda rank, text: told.append((rank, text))))
thread.start()
""")
    ran = notebook.ok("print('mine'); out = run(lambda rank: print('hello') or rank); time.sleep(0.5); out")
    assert sorted(ran.text.splitlines()) == ["[rank 0] hello", "[rank 1] hello", "mine"]
    ran = notebook.ok("thread.join(); lab.close(); len(told), told[0][1], {text for _, text in told} == "
                      "{f'{i}\\n' for i in range(8)}")  # fmt: skip
    assert ran.text == "" and ran.result == "(16, '0\\n', True)"


def test_the_server_starts_in_the_background_at_import(new_kernel):
    kernel = new_kernel()
    started = time.monotonic()
    assert kernel.ok("import disttutor, sys; 'torch' in sys.modules").result == "False"
    assert time.monotonic() - started < 5
    assert [p.ppid() == kernel.pid for p in kernel.family()] == [True]


@pytest.mark.parametrize("restart", ["polite", "now"])
def test_nothing_is_left_after_a_restart(new_kernel, restart):
    kernel = new_kernel()
    kernel.ok("from disttutor import Cluster; kept = Cluster(2); kept.run(lambda rank: rank)", timeout=120)
    processes = kernel.family()
    assert len(processes) == 3
    kernel.manager.shutdown_kernel(now=restart == "now")
    assert gone(processes, within=5) == []
