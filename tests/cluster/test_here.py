"""The helpers of a rank work in a plain process too (A-26)."""

import os
import subprocess
import sys

import pytest
import torch

from disttutor.cluster import barrier, device, mean, progress, rank, run, save, world_size


def test_without_a_group(tmp_path):
    assert (rank(), world_size(), device()) == (0, 1, torch.device("cpu"))
    assert barrier() is None
    value = torch.tensor([1.5, 2.5])
    assert torch.equal(mean(value), value) and mean(value) is not value
    assert mean(3) == 3.0 and mean(0.25) == 0.25
    save({"x": value}, tmp_path / "x.pt")
    assert torch.equal(torch.load(tmp_path / "x.pt")["x"], value)
    assert os.listdir(tmp_path) == ["x.pt"]
    assert list(progress("abc", "letters")) == ["a", "b", "c"]


def test_without_a_group_no_torch_is_imported():
    code = "from disttutor.cluster import *; import sys; print(rank(), world_size(), barrier(), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 1 None False\n"


def everything(r, path):
    value = torch.tensor([[r + 1.0, 2.0]], dtype=torch.float64)
    out = mean(value)
    save({"from": r}, path)
    return (rank(), world_size(), str(device()), value.tolist(), out.tolist(), mean(r), mean(torch.tensor([r, 1])),
            torch.load(path)["from"])  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 3])
def test_in_ranks(ranks, tmp_path):
    middle = sum(range(1, ranks + 1)) / ranks
    for r, told in enumerate(run(everything, str(tmp_path / "x.pt"), ranks=ranks)):
        assert told[:4] == (r, ranks, "cpu", [[r + 1.0, 2.0]])
        assert told[4] == [[middle, 2.0]] and told[5] == middle - 1
        assert told[6].dtype is torch.float32 and told[6].tolist() == [middle - 1, 1.0]
        assert told[7] == 0


def test_saving_where_it_cannot_be_fails_on_every_rank(tmp_path):
    def try_it(r, path):
        try:
            save(1, path)
        except OSError as problem:
            return str(problem)

    path = str(tmp_path / "missing" / "x.pt")
    told = run(try_it, path)
    assert told[0] == told[1] and told[0].startswith(f"rank 0 could not write {path!r}: ")
