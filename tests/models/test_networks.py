"""The networks: their sizes counted by hand, their shapes, their start weights, and what they refuse."""

import math

import pytest
import torch

from disttutor.models import MLP, SmallCNN, SmallGPT


def parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def gpt(**settings) -> SmallGPT:
    return SmallGPT(**{"vocabulary": 11, "context": 6, "width": 8, "heads": 2, "layers": 3, "seed": 0, **settings})


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (MLP([64, 32, 10]), 64 * 32 + 32 + 32 * 10 + 10),  # 2,410
        (MLP([64, 32, 10], batch_norm=True), 2_410 + 2 * 32),
        (MLP([3, 5]), 20),
        (SmallCNN(8), 1_922),  # 72 + 16 + 1,152 + 32 + 650
        (SmallCNN(1, classes=2), 9 + 2 + 18 + 4 + 18),
        # one layer of width 8: norms 2·16, attention 8·24+24 + 8·8+8, feed-forward 8·32+32 + 32·8+8
        (gpt(), 11 * 8 + 6 * 8 + 3 * (32 + 216 + 72 + 288 + 264) + 16),
        (gpt(tied=False), 11 * 8 + 6 * 8 + 3 * (32 + 216 + 72 + 288 + 264) + 16 + 88),
    ],
)
def test_parameters_counted_by_hand(model, count):
    assert parameters(model) == count


def test_the_formula_of_the_small_gpt_and_a_tied_weight_counts_once():
    V, T, C, L = 96, 32, 48, 2
    formula = V * C + T * C + L * (12 * C**2 + 13 * C) + 2 * C
    tied, untied = (SmallGPT(V, T, C, heads=4, layers=L, tied=tied) for tied in (True, False))
    assert parameters(tied) == formula
    assert parameters(untied) == formula + V * C
    assert tied.head.weight is tied.tokens.weight
    assert untied.head.weight is not untied.tokens.weight


@pytest.mark.parametrize("model", [MLP([64, 5, 10]), SmallCNN()])
@pytest.mark.parametrize("shape", [(3, 64), (3, 1, 8, 8)])
def test_pictures_come_flat_or_square(model, shape):
    assert model(torch.zeros(shape)).shape == (3, 10)


def test_a_linear_mlp_by_hand():
    model = MLP([2, 1], dtype=torch.float64)
    with torch.no_grad():
        model.layers.linear0.weight.copy_(torch.tensor([[2.0, -1.0]]))
        model.layers.linear0.bias.copy_(torch.tensor([0.5]))
    assert model(torch.tensor([[3.0, 4.0]], dtype=torch.float64)).item() == 2.5


@pytest.mark.parametrize(("activation", "middle"), [("relu", 2.0), ("tanh", math.tanh(2.0) + math.tanh(-2.0))])
def test_the_activation_stands_between_the_layers_and_not_behind_the_last(activation, middle):
    model = MLP([1, 2, 1], activation=activation, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.layers.linear0.weight.copy_(torch.tensor([[2.0], [-2.0]]))
        model.layers.linear1.weight.fill_(1.0)
        model.layers.linear1.bias.fill_(-9.0)
    assert model(torch.ones(1, 1, dtype=torch.float64)).item() == pytest.approx(middle - 9.0, abs=1e-15)


def test_the_layers_of_an_mlp_can_be_cut_anywhere():
    model = MLP([4, 6, 6, 3], batch_norm=True, dropout=0.5, activation="tanh")
    names = "linear0 norm0 tanh0 dropout0 linear1 norm1 tanh1 dropout1 linear2".split()
    assert [name for name, _ in model.layers.named_children()] == names
    model.eval()
    x = torch.randn(5, 4)
    assert torch.equal(model.layers[5:](model.layers[:5](x)), model(x))


def test_batch_norm_looks_across_the_batch():
    model = SmallCNN(seed=0)
    x = torch.rand(4, 64, generator=torch.Generator().manual_seed(0))
    alone = torch.cat([model(part) for part in x.split(2)])
    assert (model(x) - alone).abs().max() > 1e-3
    model.eval()
    assert torch.allclose(model(x), torch.cat([model(part) for part in x.split(2)]), atol=1e-6)


def test_a_gpt_never_looks_ahead():
    model = gpt(dtype=torch.float64)
    ids = torch.tensor([[1, 2, 3, 4, 5, 6]])
    other = torch.tensor([[1, 2, 3, 9, 9, 9]])
    assert torch.allclose(model(ids)[:, :3], model(other)[:, :3], atol=1e-14)
    assert (model(ids)[:, 3:] - model(other)[:, 3:]).abs().min(dim=-1).values.max() > 0
    assert torch.allclose(model(ids)[:, :3], model(ids[:, :3]), atol=1e-14)  # a shorter text fits too


def test_attention_equals_its_formula():
    model = gpt(layers=1, dtype=torch.float64)
    attention = model.blocks[0].attention
    x = torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    q, k, v = (x @ attention.query_key_value.weight.T + attention.query_key_value.bias).split(8, dim=-1)
    outputs = []
    for head in (slice(0, 4), slice(4, 8)):
        scores = q[..., head] @ k[..., head].mT / 2.0  # the root of 4 channels a head
        ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
        outputs.append(scores.masked_fill(ahead, -torch.inf).softmax(-1) @ v[..., head])
    by_hand = torch.cat(outputs, dim=-1) @ attention.output.weight.T + attention.output.bias
    assert torch.allclose(attention(x), by_hand, atol=1e-14)


def test_a_tied_weight_collects_the_gradients_of_both_its_uses():
    tied, untied = gpt(dtype=torch.float64), gpt(tied=False, dtype=torch.float64)
    untied.load_state_dict(tied.state_dict())
    ids = torch.tensor([[1, 2, 3]])
    for model in (tied, untied):
        model(ids).square().sum().backward()
    both = untied.tokens.weight.grad + untied.head.weight.grad
    assert torch.allclose(tied.tokens.weight.grad, both, rtol=1e-12)


def test_start_weights_of_a_gpt():
    model = SmallGPT(96, 32, 64, heads=4, layers=8, seed=0)
    assert model.tokens.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.blocks[3].feed_forward.down.weight.std().item() == pytest.approx(0.02 / 4, rel=0.05)  # √(2·8) = 4
    assert model.blocks[3].attention.query_key_value.bias.abs().max() == 0
    assert torch.equal(model.blocks[3].norm1.weight, torch.ones(64))


BUILD = {
    "mlp": lambda **settings: MLP([64, 16, 10], dropout=0.5, **settings),
    "cnn": lambda **settings: SmallCNN(4, dropout=0.5, **settings),
    "gpt": lambda **settings: gpt(**{"dropout": 0.5, **settings}),
}


@pytest.mark.parametrize("build", BUILD.values(), ids=BUILD)
def test_a_seed_fixes_the_start_weights_and_disturbs_nobody(build):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first, again, other = build(seed=1), build(seed=1), build(seed=2)
    assert torch.equal(torch.rand(3), expected)
    weights = [torch.cat([p.flatten() for p in model.parameters()]) for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    in_double = torch.cat([p.flatten() for p in build(seed=1, dtype=torch.float64).parameters()])
    assert torch.equal(in_double, weights[0].double())
    assert not torch.equal(*(next(build(seed=None).parameters()) for _ in range(2)))  # no seed: the next random numbers


@pytest.mark.parametrize("build", BUILD.values(), ids=BUILD)
def test_dropout_is_off_in_evaluation(build):
    model = build(seed=0)
    x = torch.ones(1, 6, dtype=torch.long) if isinstance(model, SmallGPT) else torch.rand(4, 64)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: gpt(heads=6, width=24 - 2), "6 heads cannot share a width of 22 evenly; .*: 1, 2, 11, 22$"),
        (lambda: gpt(heads=5, width=24), ": 1, 2, 3, 4, 6, 8, 12, 24$"),
        (lambda: gpt(layers=0), "layers=0 cannot be: a size is a whole number of at least 1"),
        (lambda: gpt()(torch.zeros(1, 7, dtype=torch.long)), "7 tokens do not fit this model: its context is 6"),
        (lambda: MLP([64]), r"widths=\[64\] is no network: give at least two"),
        (lambda: MLP([64, 0, 10]), r"widths=\[64, 0, 10\] cannot be"),
        (lambda: MLP([64, 2.5, 10]), r"widths=\[64, 2.5, 10\] cannot be"),
        (lambda: MLP([64, 10], activation="step"), "activation='step' is not one of 'relu', 'tanh'"),
        (lambda: MLP([64, 10], dropout=1.0), "dropout=1.0 cannot be"),
        (lambda: SmallCNN(0), "channels=0 cannot be"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(build, sentence):
    with pytest.raises(ValueError, match=sentence):
        build()
