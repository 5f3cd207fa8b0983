"""Kernels that are killed while they write, and kernels that write at once: no finished answer is lost."""

from tests.cards import kernels


def test_two_hundred_random_kills_lose_no_finished_review(tmp_path):
    found = kernels.run("killed", tmp_path, 200)
    assert found["lost"] == [] and found["found"] >= found["done"] > 200
    assert all("not written to its end" in warning for warning in found["warnings"])


def test_four_kernels_at_once_lose_nothing(tmp_path):
    found = kernels.run("together", tmp_path, 4, 200)
    assert found == {"ends": [0] * 4, "done": 800, "lost": [], "found": 800, "warnings": [], "files": 4}
