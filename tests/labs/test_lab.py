"""The framework of labs: what a learner clicks, and what comes of it. Ranks and kernels are real."""

import threading
import time

import ipywidgets as widgets
import pytest

import disttutor
from disttutor.cluster import RankError
from disttutor.labs import Lab, Table
from disttutor.labs.page import page
from tests.kernel import Kernel

SETUP = """
import time, os
import ipywidgets as w
from disttutor.labs import Lab

def work(rank, seconds):
    print("rank", rank, "works")
    time.sleep(seconds)
    return rank

def experiment(settings, run):
    if 8 % settings["ranks"]:
        raise ValueError(f"{settings['ranks']} ranks cannot share 8 heads; ranks that work: 1, 2, 4")
    return run(work, settings["seconds"], ranks=settings["ranks"])

def draw(result, settings):
    return [f"ranks answered: {list(result)}", f"view {settings['view']}"]

lab = Lab({"ranks": w.IntSlider(2, 1, 4, description="ranks"),
           "seconds": w.FloatSlider(0.0, min=0, max=60, description="seconds"),
           "view": w.Dropdown(options=["a", "b"], description="view")}, experiment, draw, redraw_only={"view"})
"""


def sleeper(rank, seconds):
    time.sleep(seconds)
    return rank


def dies(rank):
    if rank != 1:
        return time.sleep(30)
    raise KeyError("no such layer")


def small_lab(experiment, **more) -> Lab:
    return Lab({"ranks": widgets.IntSlider(2, 1, 4, description="ranks")}, experiment,
               lambda result, settings: [f"answers {list(result)}"], **more)


def test_two_quick_changes_make_one_run_and_the_last_one_counts(capsys):
    lab = small_lab(lambda s, run: run(sleeper, 0.0, ranks=s["ranks"])).show()
    assert lab.runs == 1 and list(lab.result) == [0, 1]
    lab.controls["ranks"].value = 3
    lab.controls["ranks"].value = 4
    lab._again()
    lab._again()
    assert lab.wait()
    assert lab.runs == 2 and list(lab.result) == [0, 1, 2, 3]
    assert capsys.readouterr().out == "ranks 2\nanswers [0, 1]\nranks 4\nanswers [0, 1, 2, 3]\n"


def test_a_change_during_a_run_ends_that_run():
    lab = small_lab(lambda s, run: run(sleeper, 30.0 if s["ranks"] == 3 else 0.0, ranks=s["ranks"])).show()
    lab.controls["ranks"].value = 3
    time.sleep(1.0)
    lab.controls["ranks"].value = 4
    assert lab.wait(15)
    assert lab.runs == 2 and len(lab.result) == 4


def test_an_invalid_setting_is_said_in_a_sentence_and_the_lab_goes_on():
    def experiment(settings, run):
        if settings["ranks"] == 3:
            raise ValueError("3 ranks cannot share 8 heads; ranks that work: 1, 2, 4")
        return run(sleeper, 0.0, ranks=settings["ranks"])

    lab = small_lab(experiment).show()
    lab.controls["ranks"].value = 3
    assert lab.wait()
    said = lab._panel._problem.value
    assert "3 ranks cannot share 8 heads; ranks that work: 1, 2, 4" in said and "Traceback" not in said
    assert not lab._panel._run.disabled and lab.runs == 1
    lab.controls["ranks"].value = 4
    assert lab.wait() and lab.runs == 2 and lab._panel._problem.value == ""


def test_what_fails_on_a_rank_is_shown_by_its_first_line():
    lab = small_lab(lambda s, run: run(dies, ranks=s["ranks"]) if s["ranks"] == 3 else [0]).show()
    lab.controls["ranks"].value = 3
    assert lab.wait()
    assert "<b>rank 1 raised KeyError" in lab._panel._problem.value
    assert "no such layer" in lab._panel._problem.value


def test_in_its_cell_an_error_is_raised():
    with pytest.raises(RankError, match="no such layer"):
        small_lab(lambda s, run: run(dies, ranks=2)).show()


def talks(rank):
    print("first")
    print("second")
    time.sleep(3)


def test_what_ranks_print_is_shown_in_the_lab_while_they_run():
    lab = small_lab(lambda s, run: run(talks, ranks=2) if s["ranks"] == 3 else [0]).show()
    lab.controls["ranks"].value = 3
    end, seen = time.monotonic() + 20, ""
    while lab.busy and time.monotonic() < end and seen.count("second") < 2:
        seen = lab._panel._printed.value
        time.sleep(0.02)
    lab.stop()
    for rank in range(2):
        assert seen.index(f"[rank {rank}] first") < seen.index(f"[rank {rank}] second")
    assert lab.wait() and lab.runs == 1             # they were shown before the run had ended


def test_a_lab_waits_for_a_run_of_a_cell_and_its_stop_leaves_that_alone():
    lab = small_lab(lambda s, run: run(sleeper, 0.0, ranks=2) if s["ranks"] == 3 else [0]).show()
    cell: list = []
    thread = threading.Thread(target=lambda: cell.extend(disttutor.run(sleeper, 4.0, ranks=2)))
    thread.start()
    time.sleep(0.5)
    lab.controls["ranks"].value = 3
    end = time.monotonic() + 10
    while time.monotonic() < end and "waiting: sleeper on 2 ranks" not in lab._panel._printed.value:
        time.sleep(0.05)
    assert "waiting: sleeper on 2 ranks has been running" in lab._panel._printed.value
    lab.stop()
    thread.join(20)
    assert cell == [0, 1]
    assert lab.wait() and lab.runs == 1 and "stopped" in lab._panel._state.value


def test_an_error_while_drawing_is_not_lost():
    lab = Lab({"view": widgets.Dropdown(options=["a", "b"])}, lambda s, run: 1,
              lambda result, s: [str(result)] if s["view"] == "a" else [{}.missing], redraw_only={"view"}).show()
    lab.controls["view"].value = "b"
    assert "AttributeError" in lab._panel._problem.value


def test_redraw_only_must_name_controls():
    with pytest.raises(ValueError, match=r"\['vew'\]"):
        small_lab(None, redraw_only={"vew"})


def test_a_page_has_html_and_a_plain_text_without_times():
    table = Table(["form", "step", "bytes"], [["end", "3.1 ms", "9"], ["overlapped", "2 ms", "10"]], "forms", timed=[1])
    shown = page(["a < b", table])
    assert "a &lt; b" in shown["text/html"] and "<td style='text-align:left'>3.1 ms</td>" in shown["text/html"]
    assert shown["text/plain"] == "a < b\nforms\nform        bytes\nend         9\noverlapped  10"
    with pytest.raises(TypeError, match="not int"):
        page([3])


# ------------------------------------------------------------------------------------------- in a kernel, as a learner


@pytest.fixture(scope="module")
def kernel():
    kernel = Kernel()
    kernel.ok(SETUP, timeout=120)
    yield kernel
    kernel.close()


def move(kernel: Kernel, control: str, value) -> None:
    """What a front end sends when the learner moves a control."""
    name = kernel.ok(f"print(lab.controls[{control!r}].comm.comm_id)").text.strip()
    message = kernel.client.session.msg("comm_msg", {"comm_id": name, "data": {
        "method": "update", "state": {"value": value}, "buffer_paths": []}})
    kernel.client.shell_channel.send(message)


def test_the_picture_is_an_output_of_the_cell_and_controls_update_it(kernel):
    ran = kernel.ok("lab.show()")
    controls, picture = ran.displays
    assert controls["text/plain"] == "[Controls of this lab, once its cell is run: ranks, seconds, view]"
    assert "application/vnd.jupyter.widget-view+json" in controls
    assert picture["text/plain"] == "ranks 2, seconds 0.0\nranks answered: [0, 1]\nview a"
    assert ran.text == "" and ran.result is None          # what ranks print lands in the lab

    move(kernel, "ranks", 4)
    other = kernel.send("import time; time.sleep(2); print(lab.runs, 'other cell done')")
    updates, text = [], ""
    end = time.monotonic() + 20
    while time.monotonic() < end and not (updates and "done" in text):
        news = kernel.client.get_iopub_msg(timeout=20)
        if news["msg_type"] == "update_display_data":
            updates.append(news)
        if news["msg_type"] == "stream" and news["parent_header"].get("msg_id") == other:
            text += news["content"]["text"]
    assert updates[0]["content"]["data"]["text/plain"].startswith("ranks 4, seconds 0.0\nranks answered: [0, 1, 2, 3]")
    assert text == "2 other cell done\n"                  # the lab ran while the cell did, and printed nothing into it


def test_stop_ends_a_background_run_and_leaves_no_rank(kernel):
    kernel.ok("lab.show()")
    move(kernel, "seconds", 55)
    time.sleep(1.5)
    ran = kernel.ok("t = time.monotonic(); lab.stop(); lab.wait(20); print(time.monotonic() - t < 3, lab.busy)")
    assert ran.text == "True False\n"
    assert "stopped" in kernel.ok("print(lab._panel._state.value)").text


def test_an_invalid_setting_leaves_the_kernel_idle(kernel):
    kernel.ok("lab.controls['seconds'].value = 0; lab.wait()")
    move(kernel, "ranks", 3)
    ran = kernel.ok("time.sleep(0.1); lab.wait(); print(lab._panel._problem.value)", timeout=10)
    assert "3 ranks cannot share 8 heads; ranks that work: 1, 2, 4" in ran.text


def test_after_the_kernels_stop_in_the_first_run_a_control_still_makes_the_picture(kernel):
    kernel.ok(SETUP.replace("w.FloatSlider(0.0,", "w.FloatSlider(50.0,"))
    message = kernel.send("lab.show()")
    time.sleep(2.0)
    kernel.interrupt()
    ran = kernel.collect(message, timeout=20)
    assert ran.status == "error" and len(ran.displays) == 1           # the controls; no picture yet
    move(kernel, "seconds", 0)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        news = kernel.client.get_iopub_msg(timeout=20)
        if news["msg_type"] == "display_data":
            break
    assert news["content"]["data"]["text/plain"].startswith("ranks 2, seconds 0.0\nranks answered: [0, 1]")
    assert news["parent_header"]["msg_id"] == message                 # it lands in the lab's cell
