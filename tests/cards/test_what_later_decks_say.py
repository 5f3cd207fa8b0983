"""What the cards of lessons 07 to 16 say, held against the installed PyTorch, the plans, and plain arithmetic."""

from importlib import resources
from inspect import signature

import pytest
import torch
from torch.distributed import pipelining
from torch.distributed.checkpoint import async_save
from torch.distributed.run import get_args_parser, parse_min_max_nnodes
from torch.utils.checkpoint import checkpoint

from disttutor.cards.card import ENGLISH, Face
from disttutor.cards.decks import read_deck
from disttutor.plans import Mesh, build_schedule, check_cut, split_evenly

WORDS = {"F": "Forward", "B": "Backward"}


def faces() -> dict[str, Face]:
    folder = resources.files("disttutor.cards") / "decks"
    files = [file for file in folder.iterdir() if file.name.endswith(".toml") and file.name >= "07"]
    return {card.id: card.faces[ENGLISH] for file in files for card in read_deck(file.read_text("utf-8"), file.name)}


FACES = faces()


def right(card: str) -> str:
    """The text of a choice's right option."""
    (option,) = (option for option in FACES[card].options if option.right)
    return option.text


def test_the_order_of_1f1b_on_two_stages_is_that_of_the_plan():
    listed = build_schedule("1F1B", 2, 3).listing(0).split()
    assert list(FACES["pp-1f1b-two-stages"].steps) == [f"{WORDS[action[0]]} {action[1:]}" for action in listed]


@pytest.mark.parametrize(("stages", "stage"), [(4, 0), (4, 3), (7, 2)])
def test_forwards_before_the_first_turn_of_1f1b(stages, stage):
    """pp-1f1b-warm-up: p-1-s, and one more as the first half of the first turn."""
    listed = build_schedule("1F1B", stages, 20).listing(stage).split()
    before = next(place for place, action in enumerate(listed) if action.startswith("B"))
    assert before - 1 == stages - 1 - stage


def test_zb_v_lays_its_stages_in_a_v():
    """pp-zb-v: rank r has stages r and 2p-1-r."""
    assert [tuple(stages) for stages in build_schedule("ZB-V", 4, 8).stages_of] == [(0, 7), (1, 6), (2, 5), (3, 4)]


def test_rank_5_and_the_data_group_of_rank_0():
    mesh = Mesh(data=2, pipeline=2, tensor=2)
    where = mesh.coordinates(5)
    assert right("mesh-who-is-rank-5") == ", ".join(f"{axis} {where[axis]}" for axis in ("data", "pipeline", "tensor"))
    assert right("mesh-data-group-of-0") == f"Rank {mesh.group(0, 'data')[1]}"


def test_ten_layers_on_three_stages():
    """pp-uneven-layers: 3, 3, 3 leaves one out, and 4, 3, 3 does not."""
    assert split_evenly(10, 3) == (4, 3, 3)
    with pytest.raises(ValueError, match="1 of 10"):
        check_cut((3, 3, 3), 10)


def test_column_and_row_cut_give_the_product():
    """tp-column-joined, tp-row-joined, tp-stacked-is-a-sum; and the stacked blocks do not fit a whole X."""
    torch.manual_seed(0)
    x, w = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64)
    assert torch.allclose(torch.cat([x @ half for half in w.chunk(2, dim=1)], dim=1), x @ w)
    assert torch.allclose(sum(a @ b for a, b in zip(x.chunk(2, dim=1), w.chunk(2, dim=0), strict=True)), x @ w)
    with pytest.raises(RuntimeError):
        x @ w.chunk(2, dim=0)[0]


def test_numbers_of_the_cards():
    assert right("pp-gpt3-does-not-fit") == f"No: {175e9 * 16 / 8 / 1e9:.0f} GB a GPU"
    assert "68.75" in FACES["choose-what-is-left"].question
    assert (12.5e9 * 4 + 12.5e9 * 12 / 8) / 1e9 == 68.75
    assert right("speedup-from-four-to-eight") == f"About {1 / (1 / 8 + 1 / 28):.1f}x"
    assert 1 / (1 / 4 + 1 / 28) == pytest.approx(3.5)
    assert int(FACES["ac-selective-share"].missing) == round(100 * 80 / (34 + 5 * 96 * 2048 / 12288))
    assert float(FACES["amdahl-limit"].missing) == pytest.approx(1 / 0.05)
    assert "12.5 times" in right("scaling-eight-to-256")
    assert 256 * 15_700 / (8 * 40_150) == pytest.approx(12.5, abs=0.05)
    assert right("pp-transfers") == f"{8 - 1} forward and {8 - 1} back"


def test_what_they_say_of_torchrun():
    given = get_args_parser().parse_args(["train.py"])
    assert str(given.max_restarts) == FACES["torchrun-default-restarts"].missing
    assert parse_min_max_nnodes("1:4") == (1, 4)                                            # torchrun-elastic


def test_what_they_say_of_pipelines_in_pytorch():
    assert {"ScheduleGPipe", "Schedule1F1B", "ScheduleLoopedBFS", "ScheduleInterleaved1F1B",
            "ScheduleInterleavedZeroBubble", "ScheduleZBVZeroBubble", "ScheduleDualPipeV"} == {
        name for name in pipelining.__all__ if name.startswith("Schedule")}


def test_what_they_say_of_checkpoints_in_pytorch():
    twice = torch.nn.BatchNorm1d(2)
    checkpoint(twice, torch.randn(4, 2, requires_grad=True), use_reentrant=False).sum().backward()
    assert twice.num_batches_tracked == 2                                                   # ac-batchnorm
    assert "Default: ``True``" in checkpoint.__doc__.split("preserve_rng_state")[1]         # ac-dropout-draw
    assert "CPU memory" in async_save.__doc__                                               # dcp-async-save
    assert "checkpoint_id" in signature(async_save).parameters


def test_the_mnemonic_spells_model_hybrid():
    first = [word.strip(" .")[0] for word in FACES["mnemonic-model-hybrid"].answer.replace(".", ",").split(",") if word]
    assert "".join(first) == "MODELHYBRID"
    letters = [name.split("-")[1] for name in FACES if name.startswith("mnemonic-") and name != "mnemonic-model-hybrid"]
    assert sorted(letters) == sorted("modelhybrid")
