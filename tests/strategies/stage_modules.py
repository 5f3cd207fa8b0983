"""Modules of many kinds that a pipeline stage may be, for the backward in two halves; all take x [4, 6]."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from disttutor.models import SmallGPT

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
