"""The labs of lesson 02: what is shown was sent, measured, or is a labelled prediction."""

from dataclasses import replace

import pytest
import torch

from disttutor import run
from disttutor.cost import simulate
from disttutor.cost.hardware import INFINIBAND_NDR, NVLINK_4
from disttutor.labs import all_reduce_times as race
from disttutor.labs import alpha_beta
from disttutor.labs import collectives as lab
from disttutor.labs.page import page
from disttutor.plans import ALGORITHMS, ALL_REDUCES, Link, Machine, collective

SETTINGS = {"kind": "all_reduce", "algorithm": "ring", "ranks": 4, "elements": 8, "op": "sum", "node": 2, "step": 3}
WAYS = [(kind, way) for kind, ways in ALGORITHMS.items() for way in ways]


def watched(clusters, **chosen) -> tuple[lab.Watched, dict]:
    settings = SETTINGS | chosen
    warm = clusters(settings["ranks"])
    return lab.run_stepper(settings, lambda fn, *args, ranks, **how: warm.run(fn, *args, **how)), settings


# ---------------------------------------------------------------------------------------------------- the stepper


@pytest.mark.parametrize(("kind", "way"), WAYS)
@pytest.mark.parametrize(("ranks", "elements"), [(4, 8), (3, 7)])
def test_what_ranks_sent_and_held_is_what_the_plan_says(clusters, kind, way, ranks, elements):
    result, settings = watched(clusters, kind=kind, algorithm=way, ranks=ranks, elements=elements)
    assert result.messages_agree
    compared, same = result.cells
    assert compared == same > 0
    said = page(lab.draw_stepper(result, settings))["text/plain"]
    assert "are those of the plan, to the byte; all" in said and "NOT" not in said


@pytest.mark.parametrize(("op", "combine"), [("sum", lambda x: x.sum(0)), ("max", lambda x: x.amax(0)),
                                             ("mean", lambda x: x.mean(0))])
def test_every_rank_ends_with_the_result_of_all(clusters, op, combine):
    result, settings = watched(clusters, op=op, algorithm="halving-doubling")
    brought = torch.stack([torch.cat(list(mine.values())) for mine in result.brought])
    for ended in result.ended:
        assert torch.equal(torch.cat(list(ended.values())), combine(brought))
    assert ("In the end each sum is divided by 4, once" in lab.agreement(result)) == (op == "mean")


def test_messages_that_are_not_the_plan_s_are_named(clusters):
    result, _ = watched(clusters)
    fewer = replace(result, recorded=[ops[1:] for ops in result.recorded])
    assert "that were recorded are NOT those of the plan" in lab.agreement(fewer)


def test_memory_that_holds_something_else_is_named(clusters):
    result, _ = watched(clusters)
    result.held[2][4][1][0] += 1
    assert "of 112 chunks in their memory only 111 hold what it says" in lab.agreement(result)


def test_bytes_and_rounds_stand_beside_the_closed_form(clusters):
    """Ring of 4 ranks and 32 bytes: six messages of a quarter from each rank, 6 α + 1.5 S/β."""
    result, settings = watched(clusters)
    said = page(lab.draw_stepper(result, settings))["text/plain"]
    assert "bytes sent      48      48      48      48" in said
    assert said.count("6 α + 1.5 S/β") == 2


def test_closed_form_of_two_levels_on_equal_links():
    """8 ranks in nodes of 4: 2·3 messages of a quarter within, 2 of an eighth between."""
    form = lab.closed_form(SETTINGS | {"algorithm": "hierarchical", "ranks": 8, "node": 4})
    assert (form.messages, form.arrays) == (8, 1.75)
    plan = collective("all_reduce", "hierarchical", 8, 64, ranks_per_node=4)
    assert lab.counted(plan, 256) == form
    assert lab.closed_form(SETTINGS | {"algorithm": "hierarchical", "ranks": 6, "node": 4}) is None


@pytest.mark.parametrize("elements", [0, 3])
def test_fewer_elements_than_ranks(clusters, elements):
    result, settings = watched(clusters, elements=elements)
    assert result.messages_agree
    for step in (0, 6):
        shown = page(lab.draw_stepper(result, settings | {"step": step}))
        assert shown["text/html"].count("<img alt=") == 2
    assert ("is not sent at all" in shown["text/plain"]) == (elements == 0)


def test_first_and_last_moment_are_drawn_and_the_page_is_light(clusters):
    result, settings = watched(clusters, ranks=8, elements=64)
    assert result.story.rounds == 14
    for step, said in ((0, "moment 0 of 14"), (14, "moment 14 of 14"), (99, "moment 14 of 14")):
        shown = page(lab.draw_stepper(result, settings | {"step": step}))
        assert said in shown["text/plain"]
        assert len(shown["text/html"]) < 1_000_000


def test_too_many_chunks_for_one_round_leave_the_overview(clusters):
    result, settings = watched(clusters, kind="all_to_all", algorithm="pairwise", ranks=5, elements=5)
    shown = page(lab.draw_stepper(result, settings))
    assert "25 chunks on each rank are too many to show one round" in shown["text/plain"]
    assert shown["text/html"].count("<img alt=") == 1


@pytest.mark.parametrize(("chosen", "sentence"), [
    ({"elements": -1}, "the number of elements is -1; it must be 0 or more"),
    ({"elements": 10_001}, "10,001 elements are too many"),
    ({"algorithm": "Bruck"}, "unknown algorithm 'Bruck' for all_reduce"),
])
def test_settings_that_cannot_be_are_refused_before_any_rank_starts(chosen, sentence):
    def nobody(*args, **how):
        raise AssertionError("a run was started")

    with pytest.raises(ValueError, match=sentence):
        lab.run_stepper(SETTINGS | chosen, nobody)


def test_the_player_is_one_number():
    from disttutor.labs.player import Player

    heard = []
    player = Player(2, description="after round", most=6)
    player.observe(lambda change: heard.append(change["new"]), "value")
    play, slider = player.children
    slider.value = 5
    player.value = 3
    player.max = 14
    assert heard == [5, 3] and slider.value == 3
    assert slider.max == play.max == 14


def test_controls_offer_what_there_is(capsys):
    shown = lab.stepper(ranks=2, elements=4, step=1)
    controls = shown.controls
    assert controls["node"].disabled and not controls["op"].disabled
    controls["kind"].value = "all_gather"
    assert controls["algorithm"].options == ("ring", "Bruck") and controls["op"].disabled
    assert shown.wait()
    assert shown.runs == 2 and controls["step"].max == 1
    assert "ring all-gather: 2 ranks" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------- α and β


def test_the_fit_finds_the_line_that_made_the_points():
    found = alpha_beta.fit([(n, 50e-6 + n / 2e9) for n in (8, 1000, 100_000, 10_000_000)])
    assert found.link.latency == pytest.approx(50e-6) and found.link.bandwidth == pytest.approx(2e9)
    assert found.worst == pytest.approx(0, abs=1e-9)


def test_the_fit_weighs_relative_distances():
    """Two sizes at which α alone is seen, 1 and 2: least relative squares give α = (1 + 1/2)/(1 + 1/4) = 1.2."""
    found = alpha_beta.fit([(0, 1.0), (0, 2.0), (10**12, 10**12 + 1.2)])
    assert found.link.latency == pytest.approx(1.2)
    assert (found.worst, found.at) == (pytest.approx(0.4), 0)


def test_points_that_fall_give_no_bandwidth_below_zero():
    assert alpha_beta.fit([(1, 2.0), (1000, 1.0)]).link.bandwidth == float("inf")
    assert alpha_beta.fit([(1, 1e-9), (1000, 1.0)]).link.latency == 0.0
    with pytest.raises(ValueError, match="says nothing"):
        alpha_beta.fit([(8, 1.0)])


def test_messages_go_there_and_back_over_both_links():
    settings = {"repeats": 3, "most": 4096}
    result = alpha_beta.run_times(settings, run)
    assert set(result) == {alpha_beta.LOOPBACK, alpha_beta.SHARED}
    for times in result.values():
        assert list(times) == [8, 64, 512, 4096] and all(len(some) == 3 and min(some) > 0 for some in times.values())
    one, other = page(alpha_beta.draw_times(result, settings)), page(alpha_beta.draw_times(result, settings))
    assert one["text/plain"] == other["text/plain"] and "µs" not in one["text/plain"].replace("α·β", "")
    assert "<img" in one["text/html"]


def test_a_busy_machine_is_called_so():
    quiet = {"link": {8: [1.0, 1.1, 1.2]}}
    busy = {"link": {8: [1.0, 3.0, 3.5]}}
    assert alpha_beta.quietness(quiet).startswith("The machine was quiet: no median is more than 1.1 times")
    assert "the median of 8 B over the link is 3.0 times the best" in alpha_beta.quietness(busy)


# --------------------------------------------------------------------------------------------- time against size


def test_two_bandwidths_each_by_its_definition():
    """1 GB over links of 10 GB/s: 0.15 s on 4 ranks, 0.1 s on 2."""
    assert race.bandwidths(1e9, 0.15, 4) == pytest.approx((6.6667e9, 10e9), rel=1e-4)
    assert race.bandwidths(1e9, 0.1, 2) == pytest.approx((10e9, 10e9))


def test_every_way_is_measured_and_ours_are_predicted():
    settings = {"ranks": 2, "most": 16_384, "rounds": 3, "of": "median", "links": race.OWN, "show": race.BOTH}
    result = race.run_sizes(settings, run)
    assert list(result.all_reduces) == [*ALL_REDUCES, race.TORCH, race.SHARED]
    assert all(len(times) == 3 and min(times) > 0 for some in result.all_reduces.values() for times in some.values())
    link = result.link(min)
    (n, seconds), _ = result.predicted(min, race.OWN)["recursive doubling"]
    assert (n, seconds) == (1024, pytest.approx(link.seconds(1024)))
    for show in (race.BOTH, race.MEASURED, race.PREDICTED):
        for links in (race.OWN, race.SHARED_LINK):
            shown = page(race.draw_sizes(result, settings | {"show": show, "links": links, "of": "best"}))
            assert "<img" in shown["text/html"] and "bus bandwidth: that times 2/2" in shown["text/html"]


def test_in_turn_counts_all_messages_of_all_ranks():
    """4 ranks: the ring sends 24 messages of a quarter, the naive way 6 whole ones."""
    found = race.in_turn(4, [4096], Link(1.0, 4096.0))
    assert found["ring"] == [(4096, pytest.approx(24 + 6))]
    assert found["naive"] == [(4096, pytest.approx(6 + 6))]
    assert found["recursive doubling"] == [(4096, pytest.approx(8 + 8))]


@pytest.mark.parametrize("gpus", [8, 16, 32])
@pytest.mark.parametrize("way", race.LARGE)
def test_predictions_on_nodes_of_8_are_those_of_the_plans(way, gpus):
    plan = collective("all_reduce", way, gpus, 1_000_000, ranks_per_node=8)
    expected = simulate(plan, Machine(link=NVLINK_4, node=8, between=INFINIBAND_NDR)).makespan
    assert race.on_gpus(way, gpus, 4_000_000) == pytest.approx(expected, rel=1e-9)


def test_a_network_card_for_each_gpu_by_hand():
    """2 nodes of 8, 400 MB: 7 rounds of 50 MB over NVLink before and after, 2 of 25 MB over a card between."""
    expected = 14 * (3.4e-6 + 50e6 / 450e9) + 2 * (14e-6 + 25e6 / 50e9)
    assert race.on_gpus(race.RAILS, 16, 400_000_000) == pytest.approx(expected)
    with pytest.raises(ValueError, match="12 GPUs do not fill nodes of 8"):
        race.on_gpus("ring", 12, 1000)


# ---------------------------------------------------------------------------------------------------- the guesses


def test_the_guess_is_what_the_formulas_say():
    from disttutor.cost.collectives import terms

    link, ways = Link(50e-6, 4e9), ("ring", "recursive doubling", "halving-doubling", "tree", "naive")
    small, large = (sorted(ways, key=lambda way: terms("all_reduce", way, 8).seconds(nbytes, link))
                    for nbytes in (1e3, 64e6))
    assert small[0] == "recursive doubling" and large[:2] == ["halving-doubling", "ring"]
    assert lab.guess_fastest().right == ("recursive doubling for 1 kB; halving-doubling for 64 MB, with the ring close "
                                         "behind")
    report = collective("all_reduce", "ring", 4, 100).check()
    assert report.nbytes == (600,) * 4 and lab.guess_bytes().right == "1.5 S"
