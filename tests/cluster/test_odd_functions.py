"""Functions that do to their rank what nobody expects: it stays a rank, and what it says still arrives."""

import os
import sys
import time
import warnings

import pytest

from disttutor.cluster import Cluster, RankError, progress, run


def forks(rank, how):
    """The child comes back from the learner's function as the parent does."""
    child = os.fork()
    if child == 0:
        if how == "raises":
            raise ValueError("only in the child")
        if how == "exits":
            sys.exit(3)
        return "child"
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize(("how", "code"), [("returns", 0), ("raises", 1), ("exits", 3)])
def test_a_child_that_a_rank_forked_is_not_the_rank(how, code):
    lines = []
    assert run(forks, how, output=lambda *line: lines.append(line), timeout=60) == [code, code]
    told = [rank for rank, text in lines if text == "ValueError: only in the child\n"]
    assert sorted(told) == ([0, 1] if how == "raises" else [])


def test_a_child_does_not_serve_the_kept_ranks_connection():
    def fork_and_go_on(rank):
        if os.fork() == 0:
            time.sleep(0.2)
            return "child"
        return "rank"

    with Cluster(2) as cluster:
        for i in range(5):
            assert cluster.run(fork_and_go_on, timeout=60) == ["rank", "rank"]
            assert cluster.run(lambda rank, i: rank + i, i, timeout=60) == [i, i + 1]


def test_a_child_does_not_talk_into_its_ranks_connection():
    def chatty_child(rank):
        child = os.fork()
        if child == 0:
            for _ in progress(range(3), "of the child"):
                warnings.warn("from the child", stacklevel=1)
            os._exit(0)
        os.waitpid(child, 0)
        return "x" * 1_000_000

    class Sink(list):
        def __call__(self, rank, text):
            self.append(text)

        def progress(self, title, done, total):
            self.append(title)

    sink = Sink()
    assert [len(text) for text in run(chatty_child, output=sink, timeout=60)] == [1_000_000] * 2
    assert sum("UserWarning: from the child" in text for text in sink) == 2
    assert "of the child" not in sink


class Unflushable:
    def flush(self):
        raise SystemExit(5)

    def write(self, text):
        return len(text)


@pytest.mark.parametrize("stream", [None, 5, "unflushable"])
def test_standard_output_replaced_by_anything(stream):
    def replace(rank):
        sys.stdout = sys.stderr = Unflushable() if stream == "unflushable" else stream
        return rank

    assert run(replace, timeout=60) == [0, 1]

    def replace_and_raise(rank):
        sys.stdout = sys.stderr = Unflushable() if stream == "unflushable" else stream
        raise ValueError("said all the same")

    with pytest.raises(RankError, match="^rank [01] raised ValueError: said all the same"):
        run(replace_and_raise, timeout=60)


class Text(str):
    def __reduce__(self):
        raise TypeError("does not travel")


@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "derived"])
def test_an_exception_whose_text_does_anything(kind):
    class Odd(Exception):
        def __str__(self):
            if kind == "derived":
                return Text("a text of a class of its own")
            raise {"SystemExit": SystemExit(0), "KeyboardInterrupt": KeyboardInterrupt()}[kind]

    def fail(rank):
        raise Odd

    with pytest.raises(RankError) as caught:
        run(fail, timeout=60)
    message = "a text of a class of its own" if kind == "derived" else "(its message cannot be shown)"
    assert f" raised Odd: {message}  (test_odd_functions.py, line " in str(caught.value).splitlines()[0]


def test_a_function_that_names_torch_and_somebodys_ops():
    """cloudpickle takes the attribute `ops` for the module torch.ops, which is no plain module."""
    names: dict = {}
    exec("import torch\nclass Plan:\n    ops = [1, 2]\n"
         "def both(rank):\n    return torch.ones(3).sum().item() + len(Plan.ops)\n", names)
    assert run(names["both"], ranks=1, timeout=60) == [5.0]
