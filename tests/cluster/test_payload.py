"""What travels to the ranks, and what is refused by name before any process starts."""

import io
import sys
import threading
import warnings

import pytest
import torch

from disttutor.cluster import payload, run
from disttutor.cluster.payload import captured, pack_call
from disttutor.cluster.pickles import pack, unpack


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch):
    monkeypatch.setattr("disttutor.cluster.ranks.launcher", lambda: pytest.fail("something was started"))


@pytest.fixture
def things(tmp_path):
    with open(tmp_path / "notes.txt", "w+") as written, open(tmp_path / "notes.txt") as read:
        yield {
            "written": (written, "an open file"),
            "read": (read, "an open file"),
            "lock": (threading.Lock(), "a lock (_thread.lock)"),
            "letters": ((letter for letter in "ab"), "a generator"),
            "frame": (sys._getframe(), "of type builtins.frame"),
        }


@pytest.mark.parametrize("name", ["written", "read", "lock", "letters", "frame"])
def test_a_captured_variable_is_named(things, name):
    thing, words = things[name]

    def direct(rank):
        return thing

    holder = {"deep": [1, {"inner": thing}]}

    def nested(rank):
        return holder

    def by_way_of_another(rank):
        return direct(rank)

    class Trainer:
        def step(self):
            return thing

    def by_way_of_a_class(rank):
        return Trainer().step()

    for function, path in [(direct, "thing"), (nested, "holder['deep'][1]['inner']"), (by_way_of_another, "thing"),
                           (by_way_of_a_class, "thing")]:  # fmt: skip
        with pytest.raises(TypeError) as caught:
            run(function)
        text = str(caught.value)
        assert text.startswith(f"{function.__name__} cannot be sent to the ranks, because it uses {path}, which is ")
        assert words in text


def test_an_argument_is_named(things):
    with pytest.raises(TypeError, match="^argument 2.* of run.* cannot be sent to the ranks: it is a lock"):
        run(lambda rank, a, b: None, 1, {"x": threading.Lock()})


def test_globals_used_in_inner_functions_count():
    namespace = {"log": open(__file__), "unused": threading.Lock()}  # closed with the namespace
    exec("def outer(rank):\n    def inner():\n        return log\n    return inner()", namespace)
    with namespace["log"], pytest.raises(TypeError, match="because it uses log, which is an open file"):
        run(namespace["outer"])
    assert set(captured(namespace["outer"])) == {"log"}


def test_streams_in_memory_and_standard_output_may_travel():
    memory, out = io.StringIO("text"), sys.stdout
    parcel, _ = pack_call(lambda rank: (memory.read(), out), (), 2)
    function, _ = unpack(parcel)
    assert function(0) == ("text", sys.stdout)


def test_a_large_captured_variable_is_named_in_a_warning(monkeypatch):
    monkeypatch.setattr(payload, "LARGE", 1 << 20)
    table, small = torch.zeros(1 << 20), torch.zeros(4)
    with pytest.warns(UserWarning, match=r"uses table \(4 MiB\): each run copies it to each of the 3 ranks") as caught:
        pack_call(lambda rank: (table, small), (), 3)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pack_call(lambda rank, given: given, (table,), 3)  # handed over on purpose


def test_large_memory_is_sent_from_where_it_lies():
    tensor = torch.arange(100_000)
    parcel = pack([tensor, "text"])
    assert len(parcel.body) < 2000 and parcel.nbytes >= 800_000
    tensor[0] = 7
    assert unpack(parcel)[0][:3].tolist() == [7, 1, 2]


def test_tensors_arrive_aligned_as_torch_allocates_them():
    for count in (3, 1000, 100_001):
        assert unpack(pack(torch.ones(count))).data_ptr() % 64 == 0
