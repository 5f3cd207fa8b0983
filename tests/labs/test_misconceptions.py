"""What is believed and what is right: each number that the lesson shows, worked out by hand."""

import pytest

from disttutor.labs.misconceptions import MISCONCEPTIONS, Corrections, bytes_of_a_step, misconceptions

# number: what its look must say, from arithmetic that is written beside it
BY_HAND = {
    1: "give Y: True; rows, added up, give Y: True; rows put side by side give a matrix of 2 x 12, and Y is 2 x 6",
    2: "counts 64 samples in all; 64 brought by each of 4 ranks 256",
    3: "the mean is 7.20, the mean of the ranks' means 9.33, and weighted by |Bi|/b it is 7.20",   # 1.5, 6.5, 20
    4: "is 0, and (1e8 - 1e8) + 1 is 1",                                # 1e8 + 1 lies between floats 8 apart
    6: "gives S = 32; S = 3.5 on 4 ranks means Tcomm = Tc/28; a ring takes 6 α + 1.5 S/β on 4",    # 1/3.5 - 1/4 = 1/28
    7: "are 4 MB on each",
    8: "160 GB before any activation: with ZeRO-3 4 GPUs of 40 GB are full to the last byte",      # 10 x 16; 160/40
    9: "200 GB on each GPU; with ZeRO-1 over the copies 68.75 GB",      # 12.5 x 16; 12.5 x (2 + 2) + 12.5 x 12/8
    10: "43.75 GB are the weights alone, training holds 350 GB on each GPU; one micro-batch makes 14 transfers, 7 of",
    11: "weights 3 updates ago",                                        # p - 1 - s for stage 0 of 4
    12: "1.5 for each token, 2.5 as a mean of two means",               # 18/12; (1 + 4)/2
    13: "torch.distributed.tensor, torch.distributed.pipelining, torch.distributed.fsdp",
    15: "32 are 45 updates an epoch, in batches of 512 they are 3",     # 1438/32 = 44.9; 1438/512 = 2.8
}


@pytest.mark.parametrize("number", BY_HAND)
def test_what_came_out(number):
    ((_, _, _, found),) = misconceptions(number).rows
    assert BY_HAND[number] in found


def test_most_of_the_exchange_is_hidden():
    ((_, _, _, found),) = misconceptions(5).rows
    assert 80 <= int(found.split("hides ")[1].split("%")[0]) <= 99


def test_bytes_of_a_step_by_hand():
    """24 layers of 12 x 2048² weights are 1.208e9, 2.416 GB in 2 bytes; 4096 tokens of width 2048 are 16.78 MB."""
    few, many = bytes_of_a_step(4096), bytes_of_a_step(32768)
    assert few["data"] == many["data"] == pytest.approx(1.75 * 2.415919104e9)         # 2 (8-1)/8
    assert few["ZeRO-3"] == pytest.approx(1.5 * few["data"])
    assert few["tensor"] == pytest.approx(24 * 4 * 1.75 * 16.777216e6)
    assert many["tensor"] == pytest.approx(8 * few["tensor"])
    assert few["pipeline"] == pytest.approx(2 * 16.777216e6)             # forward one way, back the other
    assert few["tensor"] < few["data"] < many["tensor"]                 # so neither is always the better one


def test_all_fifteen_are_there_and_fold():
    assert [one.number for one in MISCONCEPTIONS] == list(range(1, 16))
    html = Corrections(((1, "a < b", "<script>", "c"),)).html()
    assert "<script>" not in html and html.startswith("<details><summary>1. “a &lt; b”</summary>")


def test_a_number_that_there_is_not():
    with pytest.raises(ValueError, match="there is no misconception 16; they are numbered 1 to 15"):
        misconceptions(16)
