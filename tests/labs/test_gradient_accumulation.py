"""Lesson 04's experiments, on real ranks: what is equal, what is not, who exchanges when, and what it costs."""

import pytest
import torch

from disttutor import run
from disttutor.labs import gradient_accumulation as lesson
from disttutor.labs.batch_size import (
    NETWORKS,
    Activations,
    Recipe,
    computing_share,
    gpt2_xl,
    losses_by_epoch,
    predicted_step,
    prices_of_a_step,
)
from disttutor.models import IGNORE, MLP, classification, digits, next_token
from disttutor.traces import bytes_entered, operations, ring_bytes_sent


def test_uneven_sizes_grow_in_proportion_and_lose_no_sample():
    assert lesson.uneven_sizes(10, 4) == [1, 2, 3, 4]
    assert lesson.uneven_sizes(96, 8) == [3, 5, 8, 11, 13, 16, 19, 21]
    assert sum(lesson.uneven_sizes(101, 7)) == 101


@pytest.mark.parametrize(("uneven", "right_divisor", "equal"), [
    (False, True, True), (True, True, True), (False, False, True), (True, False, False)])
def test_the_wrong_divisor_is_wrong_only_where_micro_batches_differ(uneven, right_divisor, equal):
    objective = classification if right_divisor else lesson.mean_of_each(classification)
    for apart in run(lesson.distances, lesson.batches(48), 3, uneven, objective, ranks=2):
        assert len(apart) == 10
        assert (max(apart) <= 1e-12) == equal
        assert equal or max(apart) > 1e-4


def test_sorted_padded_text_has_micro_batches_with_very_different_numbers_of_tokens():
    ids, targets = lesson.lines_by_length()[0]
    tokens = [int((part != IGNORE).sum()) for part in targets.split(4)]
    assert ids.shape == targets.shape == (16, 64)
    assert tokens == sorted(tokens) and tokens[-1] > 2 * tokens[0]


def test_a_language_model_on_padded_text_needs_the_number_of_tokens():
    lines = lesson.lines_by_length(steps=2)
    right, wrong = (run(lesson.distances, lines, 2, False, objective, next_token, lesson.small_gpt, ranks=2)[0]
                    for objective in (next_token, lesson.mean_of_each(next_token)))
    assert max(right) <= 1e-12 and min(wrong) > 1e-4


def test_exchanging_each_time_gives_the_same_weights_for_three_times_the_bytes():
    batch = lesson.batches(48)[0]
    once, each = (run(steps, batch, 3, ranks=2, record=True).trace.only(1)
                  for steps in (lesson.steps_exchanging_once, lesson.steps_exchanging_each_time))
    assert [operations(t, 0, "all_reduce") for t in (once, each)] == [2, 6]
    weights = 64 * 32 + 32 + 32 * 10 + 10
    assert bytes_entered(each, 0) == 3 * weights * 8
    flags = (4 + 4) * 8                         # that each parameter was used; the header of four
    assert bytes_entered(once, 0) == ring_bytes_sent(once, 0) == weights * 8 + flags
    assert {s.op.microbatch for s in each.of(1) if s.kind == "all_reduce"} == {0, 1, 2}


def exchange_each_time(rank, batch):
    model = lesson.little_network()
    lesson._exchange_each_time(model, lesson.microbatches_of(rank, 2, batch, 3, True), len(batch[1]))
    return [p.grad for p in model.parameters()]


def test_the_gradients_exchanged_each_time_are_those_of_the_whole_batch():
    batch = lesson.batches(50)[0]
    whole = lesson.little_network()
    total, count = classification(whole, batch)
    (total / count).backward()
    for gradients in run(exchange_each_time, batch, ranks=2):
        for mine, p in zip(gradients, whole.parameters(), strict=True):
            assert torch.allclose(mine, p.grad, rtol=0, atol=1e-14)


def test_batches_go_round_the_digits():
    data = digits(torch.float64)
    last = lesson.batches(256, steps=6)[-1]
    assert torch.equal(last[1], torch.cat([data.train_y[1280:], data.train_y[:98]]))


def test_the_lab_says_what_came_out(capsys):
    lab = lesson.lab()
    lab.controls["sizes"].value = lesson.UNEVEN
    lab.show()
    text = capsys.readouterr().out
    assert "cut into 2 x 4 micro-batches of 3, 5, 8, 11, 13, 16, 19, 21 samples" in text
    assert "those of one process" in text and "not those" not in text
    assert lab.result["trace"].source == "slow motion" and operations(lab.result["trace"], 0, "all_reduce") == 2
    lab.controls["divisor"].value = lesson.WRONG
    assert lab.wait()
    assert "The weights are not those of one process" in capsys.readouterr().out
    lab.controls["sizes"].value, lab.controls["batch"].value, lab.controls["ranks"].value = lesson.EVEN, 32, 1
    assert lab.wait() and max(lab.result["distances"]) <= 1e-12


@pytest.mark.parametrize("guess", [lesson.guess_divisor, lesson.guess_exchanges])
def test_a_guess_does_not_give_its_answer_away(guess):
    assert guess().why not in repr(guess())
    assert guess().right in repr(guess().reveal())


# ------------------------------------------------------------------------------------------------- memory and time


def test_activations_are_those_of_one_micro_batch():
    x, y = torch.rand(512, 64), torch.randint(10, (512,))
    (prices,) = run(prices_of_a_step, [1, 8], (x, y), ranks=1)
    # float32 input, two hidden layers and output, an int64 label; and one number that the loss keeps
    sample = 4 * (64 + 512 + 512 + 10) + 8
    assert {k: p.activations for k, p in prices.items()} == {1: 512 * sample + 4, 8: 64 * sample + 4}
    assert all(p.seconds > 0 for p in prices.values())


def test_activations_are_let_go_by_backward_and_weights_are_not_counted():
    model = MLP([4, 3, 2], seed=0)
    x, y = torch.rand(5, 4), torch.tensor([0, 1, 0, 1, 1])
    with Activations(model, known=[x, y]) as activations:
        total, _ = classification(model, (x, y))
        assert activations.held == 5 * (3 + 2) * 4 + 4          # hidden layer, log-probabilities
        total.backward()
        assert activations.held == 0
    assert activations.peak == 5 * (3 + 2) * 4 + 4


# ------------------------------------------------------------------------------------------------- learning rates


def test_the_linear_rule_catches_up_and_the_same_rate_does_not():
    data = digits(torch.float64)
    recipes = [Recipe(32, 0.04), Recipe(256, 0.04), Recipe(256, 0.32, warm_up=6)]
    small, same, scaled = run(losses_by_epoch, recipes, data.train_x, data.train_y, 6, ranks=3)
    assert small[0] == same[0] == scaled[0] and len(small) == 7
    assert small[-1] < 0.15 and scaled[-1] < 0.3 and same[-1] > 1.0


# ------------------------------------------------------------------------------------------------- far away


def test_gpt2_xl_has_its_published_number_of_parameters():
    assert sum(g.numel for g in gpt2_xl()) == 1_557_611_200


def test_the_predicted_step_is_compute_and_one_exchange():
    slow = NETWORKS["50 GB/s a node (AWS P4d)"]
    work = 6 * 1_557_611_200 * 4 * 1024 / 794.5e12               # seconds of one micro-batch
    one, four = predicted_step(1, slow), predicted_step(4, slow)
    assert four.makespan - one.makespan == pytest.approx(3 * work)
    exchange = sum(s.duration for s in one.of(0) if s.kind == "all_reduce")
    on_the_wire = 2 * 31 / 32 * 2 * 1_557_611_200 / 50e9         # seconds of 32 ranks' exchange, but for latency
    assert on_the_wire < exchange < 1.1 * on_the_wire
    assert computing_share(4, slow) == pytest.approx(4 * work / four.makespan)
    shares = [computing_share(1, network) for network in NETWORKS.values()]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.95 and shares[-1] < 0.1                 # nothing to gain on one network, much on another
