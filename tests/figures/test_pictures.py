"""Figures drawn by Matplotlib: what they hold, their alt text, and that nothing global is touched."""

import base64
import json
import math
import re
import subprocess
import sys
import warnings

import pytest

from disttutor.figures import Picture, bars, curves, equality, losses, scaling


def lines(picture: Picture) -> dict:
    return {line.get_label(): line for line in picture.figure.axes[0].get_lines()}


def words(picture: Picture) -> list[str]:
    return [t.get_text() for t in picture.figure.axes[0].texts]


def drawn_without_warning(picture: Picture) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return picture.png()


def test_a_cell_shows_a_png_with_alt_text(tmp_path):
    picture = losses({"a": [1.0, 0.5]})
    bundle = picture._repr_mimebundle_()
    found = re.fullmatch(r'<img alt="([^"]*)" width="787" style="[^"]*" src="data:image/png;base64,([^"]*)">',
                         bundle["text/html"])
    assert found[1] == picture.alt == "Loss: a goes from 1 to 0.5 in 2 steps."
    assert base64.b64decode(found[2]).startswith(b"\x89PNG")
    assert bundle["text/plain"] == repr(picture) == "Loss: a."
    assert picture.save(tmp_path / "x.png").read_bytes() == base64.b64decode(found[2])
    with pytest.raises(ValueError, match="as .png, not as"):
        picture.save(tmp_path / "x.svg")


def test_the_same_data_gives_the_same_bytes():
    assert losses({"a": [1.0, 0.5]}).png() == losses({"a": [1.0, 0.5]}).png()


def test_importing_figures_loads_neither_matplotlib_nor_numpy_and_drawing_no_pyplot():
    code = """
import sys, json
import disttutor.figures as f
before = {"matplotlib", "numpy", "torch"} & set(sys.modules)
f.losses({"a": [1.0, 2.0]}).png()
print(json.dumps([sorted(before), "matplotlib.pyplot" in sys.modules, "torch" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == [[], False, False]


def test_a_dark_style_of_the_notebook_leaves_text_readable():
    import matplotlib
    from matplotlib.text import Text

    with matplotlib.rc_context({"text.color": "white", "axes.labelcolor": "white", "axes.facecolor": "black",
                                "xtick.color": "white", "ytick.color": "white", "axes.edgecolor": "white"}):
        picture = losses({"a": [1.0, 0.5]})
        ax = picture.figure.axes[0]
        shown = [t for t in ax.findobj(Text) if t.get_text()]
        assert len(shown) > 5
        assert "white" not in {t.get_color() for t in shown}
        assert ax.get_facecolor()[:3] == pytest.approx((0.988, 0.988, 0.984), abs=0.01)


# equality

def test_distances_lie_at_their_values_and_zeros_at_the_bottom():
    picture = equality({"2 ranks": [1e-16, 2e-16], "again": [0, 0], "mixed": [0, 1e-8]})
    drawn = lines(picture)
    assert list(drawn["2 ranks"].get_ydata()) == [1e-16, 2e-16]
    bottom = drawn["again"].get_ydata()[0]
    assert bottom < 1e-17 and list(drawn["again"].get_ydata()) == [bottom, bottom]
    assert list(drawn["mixed"].get_ydata()) == [bottom, 1e-8]
    labels = dict(zip(picture.figure.axes[0].get_yticks(), picture.figure.axes[0].get_yticklabels(), strict=True))
    assert labels[bottom].get_text() == "0: exactly\nequal"
    assert picture.figure.axes[0].get_yscale() == "log"
    assert picture.alt == ("How far from one process: 2 ranks differs by up to 2e-16 in 2 steps; again is exactly "
                           "equal at all 2 steps; mixed differs by up to 1e-08 in 2 steps.")
    assert picture.plain == "How far from one process: 2 ranks, again and mixed."


def test_machine_epsilon_is_marked():
    picture = equality({"a": [1e-12]})
    assert "epsilon of float64: 2.2e-16" in words(picture)
    assert "epsilon of float32: 1.2e-07" in words(picture)
    assert {line.get_ydata()[0] for line in picture.figure.axes[0].get_lines()} >= {2.0**-52, 2.0**-23}
    assert not any("float32" in w for w in words(equality({"a": [1e-12]}, eps=["float64"])))


def test_a_distance_that_is_not_finite_is_at_the_top():
    picture = equality({"a": [1e-3, math.inf], "b": [math.nan, 1e-3]})
    top = lines(picture)["a"].get_ydata()[1]
    assert top > 1e-3 and lines(picture)["b"].get_ydata()[0] == top
    assert "not finite" in [t.get_text() for t in picture.figure.axes[0].get_yticklabels()]
    assert "a differs by up to inf in 2 steps" in picture.alt
    assert drawn_without_warning(picture)


def test_few_curves_are_named_at_their_ends_and_many_in_a_legend():
    few = equality({f"curve {i}": [1e-16] for i in range(5)})
    assert {f"curve {i}" for i in range(5)} <= set(words(few)) and few.figure.axes[0].get_legend() is None
    assert equality({f"curve {i}": [1e-16] for i in range(6)}).figure.axes[0].get_legend() is not None


def test_names_at_the_ends_do_not_overlap():
    picture = equality({f"curve {i}": [1e-16] for i in range(5)})
    picture.figure.canvas.draw()
    names = [t for t in picture.figure.axes[0].texts if t.get_text().startswith("curve")]
    extents = sorted((t.get_window_extent().y0, t.get_window_extent().y1) for t in names)
    assert all(a[1] <= b[0] for a, b in zip(extents, extents[1:], strict=False))


@pytest.mark.parametrize(("distances", "keywords", "message"), [
    ({}, {}, "no curve"), ({"a": []}, {}, "at least one"), ({"a": [-1.0]}, {}, "none below 0"),
    ({"a": [1.0]}, {"eps": ["float8"]}, "precisions that work: float64, float32, bfloat16"),
])
def test_wrong_distances_are_refused(distances, keywords, message):
    with pytest.raises(ValueError, match=message):
        equality(distances, **keywords)


# losses

def test_curves_that_coincide_stay_visible():
    drawn = lines(losses({"one": [3.0, 2.0, 1.0], "two": [3.0, 2.0, 1.0], "four": [3.0, 2.0, 1.0]}))
    assert [list(drawn[n].get_ydata()) for n in drawn] == [[3.0, 2.0, 1.0]] * 3
    assert list(drawn["one"].get_xdata()) == [1, 2, 3]
    assert drawn["one"].get_linewidth() > 2 * drawn["two"].get_linewidth()
    assert len({line.get_linestyle() for line in drawn.values()}) == 3
    assert len({line.get_markevery() for line in drawn.values()}) == 3


def test_losses_say_how_far_apart_they_are():
    picture = losses({"one": [3.0, 2.0], "two": [3.0, 2.5]}, first_step=0, title="Digits")
    assert picture.alt == ("Digits: one goes from 3 to 2 in 2 steps; two goes from 3 to 2.5 in 2 steps. "
                           "They differ by 0.5 at most.")


def test_losses_that_are_not_finite_are_said():
    picture = losses({"a": [1.0, math.nan, math.inf]})
    assert "2 of them not finite" in picture.alt
    assert drawn_without_warning(picture)


@pytest.mark.parametrize("wrong", [{}, {"a": []}])
def test_wrong_losses_are_refused(wrong):
    with pytest.raises(ValueError, match="no curve|at least one step"):
        losses(wrong)


# bars

def test_bars_print_their_value_and_keep_their_order():
    picture = bars({"one": 1_000_000, "two": 2_500_000, "none": 0}, "B", title="Sent", reference="one")
    assert words(picture) == ["1 MB (1x)", "2.5 MB (2.5x)", "0 B (0x)"]
    ax = picture.figure.axes[0]
    assert [p.get_width() for p in ax.patches] == [1_000_000, 2_500_000, 0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["one", "two", "none"]
    assert ax.patches[0].get_y() > ax.patches[1].get_y() > ax.patches[2].get_y()
    assert picture.alt == "Sent: one 1 MB (1x); two 2.5 MB (2.5x); none 0 B (0x)."
    assert drawn_without_warning(bars({"a": 0.0}, "s", title="Nothing"))


@pytest.mark.parametrize(("values", "keywords", "message"), [
    ({}, {}, "no bar"), ({"a": -1}, {}, "finite one from 0 up"), ({"a": math.nan}, {}, "finite"),
    ({"a": 1}, {"reference": "b"}, "no bar 'b' to compare with; bars: a"),
])
def test_wrong_bars_are_refused(values, keywords, message):
    with pytest.raises(ValueError, match=message):
        bars(values, "B", title="x", **keywords)


def test_long_names_with_dollars_shrink_nothing_away():
    name = "a strategy whose name $costs$ more than the picture has room for, " * 3
    for picture in (bars({name: 1.0, "b": 2.0}, "s", title=name, reference=name), losses({name: [1.0]}, title=name),
                    equality({name: [0.0]}, title=name)):
        assert drawn_without_warning(picture)
        assert picture.figure.axes[0].get_window_extent().width > 100


# scaling

MEASURED, PREDICTED = {1: 0.1, 2: 0.06, 4: 0.04}, {1: 0.1, 2: 0.05, 4: 0.03, 8: 0.02}


@pytest.mark.parametrize(("show", "weak", "measured", "ideal"), [
    ("time", False, [0.1, 0.06, 0.04], [0.1, 0.05, 0.025, 0.0125]),
    ("speedup", False, [1, 1 / 0.6, 2.5], [1, 2, 4, 8]),
    ("efficiency", False, [1, 1 / 1.2, 0.625], [1, 1, 1, 1]),
    ("time", True, [0.1, 0.06, 0.04], [0.1] * 4),
    ("efficiency", True, [1, 1 / 0.6, 2.5], [1, 1, 1, 1]),
])
def test_what_scaling_shows(show, weak, measured, ideal):
    drawn = lines(scaling(MEASURED, PREDICTED, show=show, weak=weak))
    assert list(drawn["measured"].get_ydata()) == pytest.approx(measured)
    assert list(drawn["ideal"].get_ydata()) == pytest.approx(ideal)


def test_speedup_counts_from_the_fewest_ranks_measured():
    drawn = lines(scaling({2: 0.1, 4: 0.05}, show="speedup"))
    assert list(drawn["measured"].get_ydata()) == pytest.approx([2, 4])


def test_measured_are_points_and_predicted_a_line():
    drawn = lines(scaling(MEASURED, PREDICTED))
    assert drawn["measured"].get_linestyle() == "None" and drawn["measured"].get_marker() == "o"
    assert drawn["predicted"].get_linestyle() == "--" and drawn["predicted"].get_marker() == "None"
    assert scaling(MEASURED, PREDICTED).alt == (
        "More ranks, time of a step: 1 ranks 100 ms measured, 100 ms predicted; 2 ranks 60 ms measured, 50 ms "
        "predicted; 4 ranks 40 ms measured, 30 ms predicted.".replace("1 ranks", "1 rank"))


@pytest.mark.parametrize(("measured", "keywords", "message"), [
    ({}, {}, "nothing is measured"), ({0: 1.0}, {}, "ranks start at 1"), ({1: 0.0}, {}, "times above 0"),
    ({1: 1.0}, {"show": "x"}, "what can be shown: time, speedup, efficiency"),
])
def test_wrong_scaling_is_refused(measured, keywords, message):
    with pytest.raises(ValueError, match=message):
        scaling(measured, **keywords)


# --------------------------------------------------------------------------------------------------------- any curves


def test_curves_are_named_and_described():
    picture = curves({"slow": {1: 2.0, 2: 1.0}, "fast": {1: 2.0, 2: 0.5}}, title="Loss", xlabel="x", ylabel="y",
                     x_words=str, highest=1.5)
    assert picture.alt == "Loss: slow goes from 2 to 1; fast goes from 2 to 0.5."
    assert picture.plain == "Loss: slow and fast."
    assert picture.png().startswith(b"\x89PNG")


def test_curves_that_cannot_be_drawn_are_refused():
    for wrong, words in (({}, "no curve"), ({"a": {}}, "no curve"), ({str(i): {1: 1.0} for i in range(99)}, "up to")):
        with pytest.raises(ValueError, match=words):
            curves(wrong, title="t", xlabel="x", ylabel="y")
