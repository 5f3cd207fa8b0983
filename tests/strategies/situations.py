"""The situations in which every strategy must equal one process: model, objective, optimizer, batches; float64."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from disttutor.models import IGNORE, MLP, SmallCNN, SmallGPT, classification, next_token

STEPS = 10
SGD = partial(torch.optim.SGD, lr=0.1)
MOMENTUM = partial(torch.optim.SGD, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)
ADAMW = partial(torch.optim.AdamW, lr=0.01, weight_decay=0.1)


@dataclass(frozen=True)
class Situation:
    """One of them. `by_share`: the oracle works through the shares of each batch one after the other, as the layers
    look across the samples of a share or draw by share; else it takes the batch at once. `freezes`: parameters with
    this prefix are frozen before step 5. `tolerance`: where the model itself is not all float64."""

    name: str
    model: Callable[[], nn.Module]
    batches: Callable[[], list[Any]]
    objective: Callable = classification
    optimizer: Callable = SGD
    options: dict[str, Any] = field(default_factory=dict)
    by_share: bool = False
    freezes: str | None = None
    tolerance: float = 1e-12


def images(*sizes: int) -> list[Any]:
    """STEPS batches of (x [n, 8], y [n]), their sizes taken from `sizes` in turn."""
    g = torch.Generator().manual_seed(5)
    ns = [sizes[i % len(sizes)] for i in range(STEPS)]
    return [(torch.randn(n, 8, generator=g, dtype=torch.float64), torch.randint(0, 3, (n,), generator=g)) for n in ns]


def pictures() -> list[Any]:
    g = torch.Generator().manual_seed(6)
    return [(torch.randn(9, 1, 8, 8, generator=g, dtype=torch.float64), torch.randint(0, 10, (9,), generator=g))
            for _ in range(STEPS)]


def sentences() -> list[Any]:
    """Token ids [7, 6] and targets of which each row has another number that count, one row none at all."""
    g = torch.Generator().manual_seed(7)
    out = []
    for _ in range(STEPS):
        ids, targets = (torch.randint(0, 11, (7, 6), generator=g) for _ in range(2))
        for row in range(7):
            targets[row, row:] = IGNORE
        out.append((ids, targets))
    return out


def mlp(**kw: Any) -> nn.Module:
    return MLP([8, 16, 16, 3], seed=0, **kw).double()


CNN = partial(SmallCNN, seed=0, dtype=torch.float64)


def frozen() -> nn.Module:
    model = mlp()
    next(model.parameters()).requires_grad_(False)
    return model


class Heads(nn.Module):
    """Three heads; samples of class 0 use `a`, others `b`; nobody uses `c`."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.a, self.b, self.c = (nn.Linear(8, 3) for _ in range(3))
        self.double()


def by_head(model: Heads, batch):
    x, y = batch
    total = torch.zeros((), dtype=torch.float64)
    for head, mine in ((model.a, y == 0), (model.b, y != 0)):
        if mine.any():
            total = total + F.cross_entropy(head(x[mine]), y[mine], reduction="sum")
    return total, len(y)


class Tied(nn.Module):
    """One weight used twice, and its transpose a third time."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.first, self.second, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.second.weight = self.first.weight
        self.double()

    def forward(self, x):
        return self.out(torch.tanh(self.second(torch.tanh(self.first(x)))) @ self.first.weight)


class Transposed(nn.Module):
    """Weights whose memory order is not the plain one, and one that is a scalar."""

    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(8)
        self.w = nn.Parameter(torch.randn(3, 8, generator=g, dtype=torch.float64).t())
        self.scale = nn.Parameter(torch.tensor(0.7, dtype=torch.float64))

    def forward(self, x):
        return x @ self.w * self.scale


class Rows(nn.Module):
    """A sparse table of which each batch touches a few rows, the padding row among them, and a dense layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(9)
        self.table, self.out = nn.Embedding(12, 4, padding_idx=0, sparse=True), nn.Linear(4, 3)
        self.double()

    def forward(self, ids):
        return self.out(self.table(ids).sum(1))


def rows() -> list[Any]:
    g = torch.Generator().manual_seed(10)
    return [(torch.randint(0, 12, (7, 3), generator=g) * (torch.arange(7) > 2).long()[:, None],
             torch.randint(0, 3, (7,), generator=g)) for _ in range(STEPS)]


def penalty(model: nn.Module, batch):
    """Cross-entropy and, for each sample, the squared gradient of the output's sum by the input."""
    x, y = batch
    x = x.clone().requires_grad_()
    out = model(x)
    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return F.cross_entropy(out, y, reduction="sum") + slope.square().sum(), len(y)


class MixedTypes(nn.Module):
    """Weights of two types: they cannot share a bucket."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(11)
        self.a, self.b, self.c = nn.Linear(8, 8).double(), nn.Linear(8, 8), nn.Linear(8, 3).double()

    def forward(self, x):
        return self.c(torch.tanh(self.b(torch.tanh(self.a(x)).float()).double()))


class HalfOnly(nn.Module):
    """All weights in bfloat16: no bucket in which a count of samples would be exact. Small whole numbers, so that
    sums of gradients are exact all the same."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(8, dtype=torch.bfloat16))


def half_loss(model: HalfOnly, batch):
    x, y = batch
    return (model.w * y[:, None].to(torch.bfloat16)).sum(), len(y)


def two_groups(named):
    """Decay for matrices only."""
    return torch.optim.AdamW([{"params": [p for _, p in named if p.dim() > 1], "weight_decay": 0.1},
                              {"params": [p for _, p in named if p.dim() < 2], "weight_decay": 0.0, "lr": 0.003}],
                             lr=0.01)


def sparse_sgd(named):
    return torch.optim.SGD([p for _, p in named], lr=0.1)


def warm_up(optimizer):
    return torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=6)


SITUATIONS = [
    Situation("SGD", mlp, partial(images, 12)),
    Situation("momentum, decay", mlp, partial(images, 12), optimizer=MOMENTUM),
    Situation("AdamW", mlp, partial(images, 12), optimizer=ADAMW),
    Situation("clipping", mlp, partial(images, 12), optimizer=MOMENTUM, options={"clip_norm": 0.1}),
    Situation("schedule", mlp, partial(images, 12), options={"schedule": warm_up}),
    Situation("two groups", mlp, partial(images, 12), optimizer=two_groups),
    Situation("accumulate 3", mlp, partial(images, 24), options={"accumulate": 3}),
    Situation("uneven shares", mlp, partial(images, 10, 7, 13), optimizer=ADAMW),
    Situation("uneven, accumulate", mlp, partial(images, 10, 7, 13), options={"accumulate": 2}),
    Situation("fewer than ranks", mlp, partial(images, 3, 1, 12, 2), optimizer=ADAMW),
    Situation("tied", Tied, partial(images, 10), optimizer=MOMENTUM, options={"clip_norm": 0.5}),
    Situation("frozen", frozen, partial(images, 10), optimizer=ADAMW),
    Situation("frozen half-way", mlp, partial(images, 10), optimizer=MOMENTUM, freezes="layers.linear1"),
    Situation("unused, used by some", Heads, partial(images, 5, 10), objective=by_head, optimizer=ADAMW),
    Situation("gradient penalty", partial(mlp, activation="tanh"), partial(images, 10), objective=penalty),
    Situation("memory order, scalar", Transposed, partial(images, 10), optimizer=MOMENTUM),
    Situation("sparse rows", Rows, rows, optimizer=sparse_sgd),
    Situation("mixed types", MixedTypes, partial(images, 10), tolerance=1e-6),
    Situation("bfloat16 weights", HalfOnly, partial(images, 4), objective=half_loss,
              optimizer=partial(torch.optim.SGD, lr=1.0)),
    Situation("GPT, valid tokens", partial(SmallGPT, 11, 6, 8, 2, 2, seed=0, dtype=torch.float64), sentences,
              objective=next_token, optimizer=ADAMW),
    Situation("CNN, BatchNorm over all", CNN, pictures,
              options={"sync_batch_norm": True}),
    Situation("CNN, BatchNorm by share", CNN, pictures, by_share=True),
    Situation("dropout", partial(mlp, dropout=0.5), partial(images, 10), by_share=True),
    Situation("dropout, accumulate", partial(mlp, dropout=0.5), partial(images, 10), by_share=True,
              options={"accumulate": 2}),
]
