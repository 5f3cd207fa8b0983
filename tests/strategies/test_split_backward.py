"""Backward in two halves gives what torch's own backward gives: the input's gradient first, the weights' later; and
nothing of the second half before it is asked for."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from disttutor.models import SmallGPT
from disttutor.strategies.split_backward import SplitBackward

D = torch.float64


class Tied(nn.Module):
    """One layer used three times, one of them transposed."""

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        return self.out(torch.tanh(self.layer(torch.tanh(self.layer(x)))) @ self.layer.weight.t())


class Residual(nn.Module):
    """A weight between two ways round it; a scalar and a whole-shaped one joined by sums that hand one gradient on."""

    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(6, 6), nn.Parameter(torch.tensor(0.7))
        self.shifts = nn.ParameterList(torch.linspace(0, i + 1, 24).view(4, 6) for i in range(3))

    def forward(self, x):
        for shift in self.shifts:
            x = x + shift
        return x + self.scale * torch.relu(self.layer(x)) + self.shifts[0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x):
        y, _ = self.attention(x[None], x[None], x[None], need_weights=False)
        return y[0]


class Parts(nn.Module):
    """Outputs of chunk and split go different ways, one nowhere."""

    def __init__(self):
        super().__init__()
        self.wide, self.out = nn.Linear(6, 24), nn.Linear(6, 6)

    def forward(self, x):
        a, b = self.wide(x).chunk(2, dim=1)
        c, d = b.split([6, 6], dim=1)
        return self.out(a[:, :6] * torch.sigmoid(c))


class Both(nn.Module):
    """Several outputs, one of which needs no gradient."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x):
        y = self.a(x)
        return y, self.b(y), (y > 0).to(D), torch.arange(4)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.square() * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * g * x * w, (g * x.square()).sum(0)


class Own(nn.Module):
    """A function with a backward of its own, in which weight and input join."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.linspace(-1, 1, 6))

    def forward(self, x):
        return Square.apply(Square.apply(x, self.w), self.w.exp())


class Recomputed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6)), nn.Linear(6, 6)

    def forward(self, x):
        return self.out(checkpoint(self.inner, x, use_reentrant=False))


class Alone(nn.Module):
    """Its output hangs on weights only."""

    def __init__(self):
        super().__init__()
        self.w, self.layer = nn.Parameter(torch.linspace(-1, 1, 24).view(4, 6)), nn.Linear(6, 6)

    def forward(self, x):
        return self.layer(self.w) + torch.zeros_like(x)


class Idle(nn.Module):
    """A weight that takes no part, one that is frozen, and one that is the output itself."""

    def __init__(self):
        super().__init__()
        self.idle, self.layer, self.bare = nn.Linear(6, 6), nn.Linear(6, 6), nn.Parameter(torch.ones(3))
        self.layer.bias.requires_grad_(False)

    def forward(self, x):
        return self.layer(x), self.bare


class Unlinked(nn.Module):
    """The input is cut off from the output."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        return self.layer(x.detach())


def gpt() -> nn.Module:
    return nn.Sequential(*SmallGPT(11, 6, 6, 2, 2).layers_in_order()[1:])


MODULES = {
    "linear": lambda: nn.Linear(6, 5),
    "linear without bias": lambda: nn.Linear(6, 5, bias=False),
    "deep": lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 7), nn.GELU(), nn.Linear(7, 5)),
    "layer norm": lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.LayerNorm(6)),
    "batch norm": lambda: nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh()),
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 3), nn.GroupNorm(3, 3), nn.Flatten()),
    "convolution 2d": lambda: nn.Sequential(nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 2, 2, padding=1), nn.MaxPool2d(2)),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 6)),
    "spectral norm": lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6)), nn.Linear(6, 6)),
    "prelu": lambda: nn.Sequential(nn.Linear(6, 6), nn.PReLU(), nn.Linear(6, 6)),
    "attention": Attention,
    "views": lambda: nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Flatten(1), nn.Linear(6, 6)),
    "recurrent": lambda: Recurrent(),
    "tied": Tied,
    "residual, sums": Residual,
    "chunk and split": Parts,
    "several outputs": Both,
    "own function": Own,
    "recomputed": Recomputed,
    "weights only": Alone,
    "no weights": nn.Tanh,
    "identity": nn.Identity,
    "idle, frozen, bare": Idle,
    "input cut off": Unlinked,
    "in place": lambda: nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 6)),
    "all frozen": lambda: nn.Linear(6, 6).requires_grad_(False),
    "bilinear": lambda: Pair(),
    "transformer blocks": gpt,
}


class Recurrent(nn.Module):
    """One cell, used at every place of a sequence, and an LSTM."""

    def __init__(self):
        super().__init__()
        self.cell, self.long = nn.RNNCell(2, 3), nn.LSTM(3, 4, batch_first=True)

    def forward(self, x):
        state, states = torch.zeros(len(x), 3, dtype=D), []
        for part in x.view(len(x), 3, 2).unbind(1):
            state = self.cell(part, state)
            states.append(state)
        return self.long(torch.stack(states, 1))[0]


class Pair(nn.Module):
    """A weight that meets the input twice in one operation."""

    def __init__(self):
        super().__init__()
        self.bilinear = nn.Bilinear(6, 6, 4)

    def forward(self, x):
        return self.bilinear(x, x.tanh())


def made(name: str) -> nn.Module:
    torch.manual_seed(0)
    return MODULES[name]().to(D)


def given(name: str, seed: int) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    shape = (4, 6, 6) if name == "transformer blocks" else (4, 6)
    return torch.randn(shape, generator=g, dtype=D)


def ran(module: nn.Module, x: Tensor, seed: int) -> tuple[list[Tensor], list[Tensor]]:
    """Outputs that need a gradient, and a gradient for each."""
    out = module(x)
    outputs = [t for t in (out if isinstance(out, tuple) else (out,)) if t.requires_grad]
    g = torch.Generator().manual_seed(100 + seed)
    return outputs, [torch.randn(t.shape, generator=g, dtype=D) for t in outputs]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("needs", [True, False], ids=["input needs a gradient", "input needs none"])
def test_the_two_halves_are_backward(name, needs):
    """Three micro-batches in flight, the weights' halves in another order and late: sums are torch's."""
    plain, split = made(name), made(name)
    expected = []
    for seed in range(3):
        x = given(name, seed).requires_grad_(needs)
        outputs, gradients = ran(plain, x, seed)
        if outputs:
            torch.autograd.backward(outputs, gradients)
        expected.append(x.grad)
    halves = []
    for seed in range(3):
        x = given(name, seed).requires_grad_(needs)
        outputs, gradients = ran(split, x, seed)
        halves.append((SplitBackward(outputs, [x], list(split.parameters())), gradients))
    for (half, gradients), wanted in zip(halves, expected, strict=True):
        kept = [g.clone() for g in gradients]
        found = half.input_gradients(gradients)
        assert len(found) == needs
        if needs:
            assert (found[0] is None) == (wanted is None)
            if wanted is not None:
                torch.testing.assert_close(found[0], wanted, rtol=0, atol=1e-13)
        assert all(torch.equal(a, b) for a, b in zip(kept, gradients, strict=True))      # they are the caller's
    for half, _ in (halves[2], halves[0], halves[1]):
        half.weight_gradients()
    for (label, p), q in zip(plain.named_parameters(), split.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None), label
        if p.grad is not None:
            torch.testing.assert_close(q.grad, p.grad, rtol=0, atol=1e-12, msg=lambda m, n=label: f"{n}: {m}")


@pytest.mark.parametrize("name", MODULES)
def test_no_two_weights_share_a_gradients_memory(name):
    module = made(name)
    x = given(name, 0).requires_grad_()
    outputs, gradients = ran(module, x, 0)
    half = SplitBackward(outputs, [x], list(module.parameters()))
    found = half.input_gradients(gradients)
    half.weight_gradients()
    others = [g.untyped_storage().data_ptr() for g in (*found, *gradients) if g is not None]
    own = [p.grad.untyped_storage().data_ptr() for p in module.parameters() if p.grad is not None]
    assert len(set(own)) == len(own) and not set(own) & set(others)


def test_the_loss_needs_no_gradient_given():
    plain, split, x = made("deep"), made("deep"), given("deep", 0)
    plain(x).sum().backward()
    half = SplitBackward([split(x).sum()], [], list(split.parameters()))
    assert half.input_gradients(None) == []
    half.weight_gradients()
    for p, q in zip(plain.parameters(), split.parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad, rtol=0, atol=1e-13)


def test_the_weights_wait_for_the_second_half():
    """Of a chain of layers none has its gradient before; only one that is used twice gets it at once."""
    module, x = made("deep"), given("deep", 0).requires_grad_()
    half = SplitBackward([module(x)], [x], list(module.parameters()))
    half.input_gradients([torch.ones(4, 5, dtype=D)])
    assert all(p.grad is None for p in module.parameters())
    half.weight_gradients()
    assert all(p.grad is not None for p in module.parameters())

    tied = made("tied")
    half = SplitBackward([tied(x)], [x], list(tied.parameters()))
    half.input_gradients([torch.ones(4, 6, dtype=D)])
    assert [name for name, p in tied.named_parameters() if p.grad is not None] == ["layer.weight", "layer.bias"]


def test_embedding_and_padding():
    """Whole numbers come in: no input's gradient, all of the table's in the second half; the padding row has none."""
    def make():
        torch.manual_seed(0)
        return nn.Sequential(nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 3)).to(D)

    plain, split, ids = make(), make(), torch.tensor([[0, 1, 1], [3, 0, 6]])
    plain(ids).square().sum().backward()
    half = SplitBackward([split(ids).square().sum()], [], list(split.parameters()))
    half.input_gradients(None)
    assert split[0].weight.grad is None
    half.weight_gradients()
    assert torch.equal(split[0].weight.grad[0], torch.zeros(4, dtype=D))
    for p, q in zip(plain.parameters(), split.parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad, rtol=0, atol=1e-13)


def test_sparse_rows_add_up():
    def make():
        torch.manual_seed(0)
        return nn.Embedding(7, 4, sparse=True).to(D)

    plain, split = make(), make()
    for ids in (torch.tensor([1, 1, 3]), torch.tensor([3, 6])):
        plain(ids).square().sum().backward()
        half = SplitBackward([split(ids).square().sum()], [], list(split.parameters()))
        half.input_gradients(None)
        half.weight_gradients()
    assert split.weight.grad.is_sparse
    torch.testing.assert_close(split.weight.grad.to_dense(), plain.weight.grad.to_dense(), rtol=0, atol=1e-13)


def test_what_is_done_is_let_go_of():
    import gc
    import weakref

    module, x = made("own function"), given("own function", 0).requires_grad_()
    out = module(x)
    node = weakref.ref(out.grad_fn)
    half = SplitBackward([out], [x], list(module.parameters()))
    del out
    half.input_gradients([torch.ones(4, 6, dtype=D)])
    assert node() is not None
    half.weight_gradients()
    gc.collect()
    assert node() is None
