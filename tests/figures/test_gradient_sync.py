"""The gradient sync shows the real numbers of every rank, and says how far apart they are."""

import math

import numpy as np
import pytest
from drawn import SVG, outside, root, texts

from disttutor.figures import gradient_sync

BEFORE = [[1.0, -2.0, 0.5], [3.0, 2.0, 0.5]]
AFTER = [[2.0, 0.0, 0.5]] * 2


def fills(figure):
    """Colour of each cell, in order of drawing (colour bar and frames are no cells: these have tooltips)."""
    return [n.get("fill") for n in root(figure).iter(f"{SVG}rect") if n.find(f"{SVG}title") is not None]


def test_values_colours_and_alt_text():
    figure = gradient_sync([("before", BEFORE), ("after", AFTER)], title="Bucket 0")
    words = texts(figure)
    assert [w for w in words if w.startswith("rank ")] == ["rank 0", "rank 1"] * 2
    for value in ("1", "-2", "0.5", "3", "2", "0"):
        assert value in words
    assert figure.alt == ("Bucket 0: 2 ranks, 3 elements, 2 stages (before and after). Largest difference between "
                          "ranks: 4 (before), none (after). The exchange averages.")
    assert figure.plain == "Bucket 0: 2 ranks, 3 elements, 2 stages (before and after)."
    cells = fills(figure)
    assert len(cells) == 12
    assert cells[3] == "#d55e00"                            # 3 is the largest: fully warm
    assert cells[7] == "#f7f7f7"                            # 0 is neutral
    assert cells[2] == cells[5] == cells[8] == cells[11]    # 0.5 everywhere
    assert outside(figure) == []


def test_arrays_and_tensors_are_the_same_as_lists():
    torch = pytest.importorskip("torch")
    lists = gradient_sync([("before", BEFORE), ("after", AFTER)]).svg
    assert gradient_sync([("before", np.array(BEFORE)), ("after", np.array(AFTER))]).svg == lists
    tensors = [torch.tensor(row, dtype=torch.bfloat16, requires_grad=True) for row in BEFORE]
    assert gradient_sync([("before", tensors), ("after", AFTER)]).svg == lists
    assert gradient_sync([("before", [t.reshape(3, 1) for t in tensors]), ("after", AFTER)]).svg == lists


def test_sum_or_mean_is_said():
    assert any("The exchange sums over 2 ranks." in w for w in texts(gradient_sync([("a", BEFORE)], reduction="sum")))
    assert any("averages over 2 ranks" in w for w in texts(gradient_sync([("a", BEFORE)])))


def test_large_buckets_are_drawn_as_block_means_and_say_so():
    values = np.repeat(np.arange(48.0), 10)[None, :]        # 480 elements, constant in each block of 10
    figure = gradient_sync([("before", values)])
    assert any("(480 elements in 48 columns)" in w for w in texts(figure))
    titles = [n.text for n in root(figure).iter(f"{SVG}title")]
    assert titles == [f"rank 0, before: {v}" for v in range(48)]


def test_blocks_do_not_cross_chunk_borders():
    values = np.array([[0.0] * 37 + [1.0] * 63])            # chunks of 37 and 63 elements
    figure = gradient_sync([("before", values)], chunks=[37, 63])
    assert {n.text.rpartition(" ")[2] for n in root(figure).iter(f"{SVG}title")} == {"0", "1"}
    assert {"chunk 0", "chunk 1"} <= set(texts(figure))


def test_chunks_as_a_ring_cuts_them():
    figure = gradient_sync([("before", [[0.0] * 10])], chunks=4)
    lines = sorted({float(n.get("x1")) for n in root(figure).iter(f"{SVG}line") if n.get("stroke") == "#1b1f24"})
    cell = (1000 - 74 - 14) / 10
    assert lines == pytest.approx([74 + cell * n for n in (0, 3, 6, 8, 10)], abs=0.01)     # 3 + 3 + 2 + 2


def test_what_changed_is_framed():
    half = [[1.0, -2.0, 0.5], [4.0, 2.0, 0.5]]
    frames = [n for n in root(gradient_sync([("a", BEFORE), ("b", half)])).iter(f"{SVG}rect")
              if n.get("fill") == "none" and n.get("rx")]
    assert len(frames) == 1
    assert float(frames[0].get("x")) == pytest.approx(74.7)


def test_values_that_are_not_finite_are_seen():
    figure = gradient_sync([("before", BEFORE), ("after", [[math.nan, math.inf, 1.0]] * 2)])
    assert {"nan", "inf"} <= set(texts(figure))
    assert any("4 values are not finite" in w for w in texts(figure))
    assert "not finite (after)" in figure.alt


def test_all_zero_is_drawn():
    assert set(fills(gradient_sync([("before", [[0.0, 0.0]])]))) == {"#f7f7f7"}


@pytest.mark.parametrize("elements", [1, 12, 48, 49, 5000])
@pytest.mark.parametrize("ranks", [1, 8])
def test_nothing_is_cut(elements, ranks):
    rng = np.random.default_rng(0)
    stages = [(f"after reduce-scatter step {i}", rng.normal(size=(ranks, elements)) * 1e-7) for i in range(3)]
    assert outside(gradient_sync(stages, chunks=min(ranks, elements), width=500, title="A long title " * 10)) == []


@pytest.mark.parametrize(("stages", "keywords", "message"), [
    ([], {}, "no stage to draw"),
    ([("a", [[1.0], [1.0, 2.0]])], {}, r"'a' needs a gradient of one length.*\[1, 2\]"),
    ([("a", [[]])], {}, "of one length, 1 or more"),
    ([("a", [[1.0]]), ("b", [[1.0, 2.0]])], {}, r"'b' has \(ranks, elements\) \(1, 2\), but stage 'a' has \(1, 1\)"),
    ([("a", [[1.0]])], {"reduction": "max"}, "reductions that work: sum, mean"),
    ([("a", [[1.0] * 4])], {"chunks": [1, 2]}, r"chunks of \[1, 2\] elements do not make up a bucket of 4"),
    ([("a", [[1.0]])], {"chunks": 0}, "it must be 1 or more"),
    ([("a", [[1.0]])], {"width": 10}, "10 pixels wide"),
])
def test_what_cannot_be_drawn_is_said(stages, keywords, message):
    with pytest.raises(ValueError, match=message):
        gradient_sync(stages, **keywords)
