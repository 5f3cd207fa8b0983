"""The two data sets: every sample once, the right targets, and padding that counts for nothing."""

import subprocess
import sys

import pytest
import torch
from sklearn.datasets import load_digits

from disttutor.models import IGNORE, VOCABULARY, decode, digits, encode, pad, text, text_batches, topics, windows


def test_digits_are_all_there_once_between_zero_and_one():
    data = digits(torch.float64)
    assert [part.shape for part in data] == [(1438, 64), (1438,), (359, 64), (359,)]
    assert (data.train_x.dtype, data.train_y.dtype) == (torch.float64, torch.int64)
    assert (data.train_x.min(), data.train_x.max()) == (0.0, 1.0)
    original = load_digits()
    ours = torch.cat([torch.cat([data.train_x, data.test_x]) * 16, torch.cat([data.train_y, data.test_y])[:, None]], 1)
    theirs = torch.cat([torch.from_numpy(original.data), torch.from_numpy(original.target)[:, None]], 1)
    assert sorted(map(tuple, ours.tolist())) == sorted(map(tuple, theirs.tolist()))


def test_digits_are_shuffled_the_same_every_time():
    torch.manual_seed(0)
    first = digits()
    torch.manual_seed(1)
    assert all(torch.equal(a, b) for a, b in zip(first, digits(), strict=True))
    assert not torch.equal(first.train_y, digits(seed=1).train_y)
    assert first.test_y.bincount(minlength=10).min() >= 20  # every digit is tested: 359 of ten kinds
    first.train_x.zero_()
    assert digits().train_x.max() == 1.0  # what one caller does to the data is not seen by the next


def test_digits_take_another_share_for_testing_and_refuse_none():
    assert [len(digits(test_share=share).test_y) for share in (0.5, 0.1)] == [898, 180]
    with pytest.raises(ValueError, match="test_share=1.0 leaves nothing"):
        digits(test_share=1.0)


def test_models_load_without_scikit_learn():
    code = "import sys, disttutor.models; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "False"


def test_the_vocabulary_is_a_new_line_and_printable_ascii():
    assert len(VOCABULARY) == 96
    assert decode(encode(VOCABULARY)) == VOCABULARY
    assert encode("\n a~").tolist() == [0, 1, 66, 95]
    assert decode(encode("naïve “quotes”")) == "na?ve ?quotes?"


def test_text_is_pythons_own_reference():
    assert len(topics()) > 50
    assert any(topic.startswith('The "assert" statement') for topic in topics())
    assert text(100) == text()[:100]
    assert len(text()) > 200_000
    for wrong in (0, len(text()) + 1):
        with pytest.raises(ValueError, match=f"characters={wrong} cannot be: the text has"):
            text(wrong)


def test_padding_by_hand():
    ids, targets = pad(["abcdef", "ab", "a", ""], context=4)
    a, b, c, d, e = encode("abcde").tolist()
    assert ids.tolist() == [[a, b, c, d], [a, b, 0, 0], [a, 0, 0, 0], [0, 0, 0, 0]]
    assert targets.tolist() == [[b, c, d, e], [b] + [IGNORE] * 3, [IGNORE] * 4, [IGNORE] * 4]


@pytest.mark.parametrize("length", [2, 4, 5, 6, 9, 23])
def test_windows_ask_for_every_character_but_the_first_once(length):
    characters = VOCABULARY[1 : 1 + length]
    ids, targets = windows(characters, context=4)
    assert decode(targets[targets != IGNORE]) == characters[1:]
    assert decode(ids[targets != IGNORE]) == characters[:-1]
    assert ids.shape == (-(-(length - 1) // 4), 4)


def test_batches_of_text_are_cut_at_random_and_repeat_with_their_seed():
    characters = text(5_000)
    batches = list(text_batches(characters, batch=3, context=8, steps=4, seed=1))
    assert [ids.shape for ids, _ in batches] == [(3, 8)] * 4
    for ids, targets in batches:
        assert torch.equal(ids[:, 1:], targets[:, :-1])
        for row, after in zip(ids, targets, strict=True):
            assert decode(row) + decode(after[-1:]) in decode(encode(characters))
    again = list(text_batches(characters, batch=3, context=8, steps=4, seed=1))
    assert torch.equal(torch.stack([*map(torch.stack, batches)]), torch.stack([*map(torch.stack, again)]))
    assert not torch.equal(batches[0][0], batches[1][0])
    assert not torch.equal(batches[0][0], next(text_batches(characters, batch=3, context=8, steps=1, seed=2))[0])


def test_batches_reach_the_first_and_the_last_character():
    seen = list(text_batches("abcd", batch=50, context=2, steps=1))
    assert {decode(row) for row in seen[0][0]} == {"ab", "bc"}
    with pytest.raises(ValueError, match="a text of 2 characters is too short for context=2"):
        next(text_batches("ab", batch=1, context=2, steps=1))
