"""Many runs in one kernel: memory and open files flat, no process left. `benchmarks/soak.py` does 200."""

SOAK = """
import psutil
def work(rank):
    x = torch.ones(1000)
    dist.all_reduce(x)
    print("x")
    return x
me = psutil.Process()
def measure(runs):
    for i in range(runs):
        run(work, ranks=2, output=lambda rank, text: None)
    end = time.monotonic() + 5
    while len(me.children(recursive=True)) > 1 and time.monotonic() < end:
        time.sleep(0.05)
    server = me.children()[0]
    return [me.memory_info().rss, me.num_fds(), me.num_threads(), len(me.children(recursive=True)),
            server.memory_info().rss, server.num_fds(), len(os.listdir(disttutor.cluster.server.SERVER.folder))]
"""


def test_sixty_runs_in_a_row(notebook):
    notebook.ok(SOAK)
    before = eval(notebook.ok("measure(20)").result)
    after = eval(notebook.ok("measure(40)", timeout=120).result)
    assert after[3] == 1  # the server
    assert after[1:4] == before[1:4] and after[5:] == before[5:]
    for which in (0, 4):
        assert after[which] - before[which] < 4 << 20
