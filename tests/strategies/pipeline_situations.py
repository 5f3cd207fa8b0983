"""The situations in which a pipeline must equal one process, with models of eight layers and more (four ranks with two
stages each need so many); float64."""

from functools import partial
from typing import Any

import torch
from situations import ADAMW, MOMENTUM, Situation, images, pictures, two_groups, warm_up
from torch import Tensor, nn

from disttutor.models import IGNORE, MLP, SmallGPT, next_token

STEPS = 6           # what has a weight frozen has it so before the last


def few(*sizes: int) -> list[Any]:
    return images(*sizes)[:STEPS]


def mlp(**kw: Any) -> nn.Module:
    """Eight linear layers, all boundaries of other widths."""
    return MLP([8, 16, 12, 10, 9, 8, 7, 6, 3], seed=0, **kw).double()


def convolutions() -> nn.Module:
    """Boundaries with channels, height and width, then without; stages without any weight; one works in place."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(inplace=True), nn.Flatten(), nn.Tanh(),
                         nn.Linear(96, 12), nn.ReLU(inplace=True), nn.Linear(12, 10)).double()


def tied_ends() -> nn.Module:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 8), nn.Tanh(),
                          nn.Linear(8, 8), nn.Linear(8, 8))
    model[7].weight = model[0].weight
    return model.double()


def tied_neighbours() -> nn.Module:
    """One weight in three layers: on two ranks they lie in one stage, on four in two."""
    model = tied_ends()
    model[7].weight = nn.Parameter(model[7].weight.detach().clone())
    model[1] = nn.Linear(8, 8).double()
    model[1].weight = model[0].weight
    model[6].weight = model[0].weight
    return model


def frozen(*prefixes: str) -> nn.Module:
    model = mlp()
    for name, p in model.named_parameters():
        p.requires_grad_(not name.startswith(prefixes))
    return model


class Several(nn.Module):
    """Between its layers go a hidden state, whole numbers that every layer looks up, and what came in at first."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.table = nn.Linear(8, 8), nn.Embedding(5, 8)

        def forward(self, x: Tensor, ids: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return torch.tanh(self.linear(x)) + self.table(ids), ids, first * 0.9

    class First(Layer):
        def forward(self, x: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return super().forward(x, ids, x)

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 3)

        def forward(self, x: Tensor, ids: Tensor, first: Tensor) -> Tensor:
            return self.linear(x + first) * (1 + ids[:, None])

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.parts = nn.ModuleList([self.First(), *(self.Layer() for _ in range(6)), self.Last()]).double()

    def layers_in_order(self) -> list[nn.Module]:
        return list(self.parts)

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        passed = x, ids
        for part in self.parts:
            passed = part(*passed)
        return passed


def with_ids(model: nn.Module, batch: Any) -> tuple[Tensor, int]:
    x, y = batch
    return nn.functional.cross_entropy(model(x, y), y, reduction="sum"), len(y)


class Unused(nn.Module):
    """A layer has a weight that takes no part, and the model one that lies in no layer."""

    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.Linear(7, 7), nn.Linear(7, 7)

        def forward(self, x: Tensor) -> Tensor:
            return torch.tanh(self.used(x))

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        middle = [self.Half() for _ in range(6)]
        self.parts = nn.Sequential(nn.Linear(8, 7), *middle, nn.Linear(7, 3))
        self.spare = nn.Linear(2, 2)
        self.double()

    def layers_in_order(self) -> list[nn.Module]:
        return list(self.parts)

    def forward(self, x: Tensor) -> Tensor:
        return self.parts(x)


class Masked(nn.Module):
    """A layer that keeps a tensor which is neither weight nor buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = torch.tensor([1.0, 0.5, 0.0, 2.0] * 2, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.mask


def masked() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(*(part for _ in range(4) for part in (Masked(), nn.Linear(8, 8)))).double()


class Detach(nn.Module):
    """What lies before it has no gradient at all: no decay, no momentum."""

    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


def cut_off() -> nn.Module:
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 8), Detach(), nn.Linear(8, 8),
                         nn.Tanh(), nn.Linear(8, 3)).double()


class Shift(nn.Module):
    """x + a + b: torch gives one tensor as the gradient of all three."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.linspace(0, 1, width, dtype=torch.float64)[None]) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.a + self.b


def shifts() -> nn.Module:
    torch.manual_seed(6)
    return nn.Sequential(*(part for _ in range(4) for part in (Shift(8), nn.Linear(8, 8).double())))


def sentences() -> list[Any]:
    """Token ids [7, 6]; rows with another number of targets that count, the last row (a micro-batch of its own) with
    none."""
    g = torch.Generator().manual_seed(7)
    out = []
    for _ in range(STEPS):
        ids, targets = (torch.randint(0, 11, (7, 6), generator=g) for _ in range(2))
        for row in range(7):
            targets[row, 6 - row:] = IGNORE
        out.append((ids, targets))
    return out


GPT = partial(SmallGPT, 11, 6, 8, 2, 6, seed=0, dtype=torch.float64)       # embedding, 6 blocks, head: 8 layers
TWELVE = partial(few, 12)


def case(name: str, model: Any = mlp, batches: Any = TWELVE, **what: Any) -> Situation:
    return Situation(name, model, batches, **what)


SITUATIONS = [
    case("SGD"),
    case("uneven: 10 in 4", batches=partial(few, 10), optimizer=ADAMW),
    case("fewer samples than micro-batches", batches=partial(few, 3, 1, 12, 2), optimizer=ADAMW),
    case("momentum, decay", optimizer=MOMENTUM),
    case("AdamW", optimizer=ADAMW),
    case("two groups", optimizer=two_groups),
    case("clipping", optimizer=MOMENTUM, options={"clip_norm": 0.1}),
    case("learning-rate schedule", options={"schedule": warm_up}),
    case("all of them", tied_ends, partial(few, 10, 7), optimizer=two_groups,
         options={"schedule": warm_up, "clip_norm": 0.3}),
    case("one micro-batch", optimizer=ADAMW, options={"accumulate": 1}),
    case("two micro-batches", optimizer=ADAMW, options={"accumulate": 2}),
    case("seven micro-batches", batches=partial(few, 20), optimizer=ADAMW, options={"accumulate": 7}),
    case("convolutions", convolutions, lambda: pictures()[:STEPS], optimizer=MOMENTUM),
    case("several tensors between layers", Several, optimizer=ADAMW, objective=with_ids),
    case("tied ends", tied_ends, partial(few, 10), optimizer=MOMENTUM, options={"clip_norm": 0.5}),
    case("tied three times", tied_neighbours, partial(few, 10), optimizer=ADAMW),
    case("GPT, tied, valid tokens", GPT, sentences, objective=next_token, optimizer=ADAMW,
         options={"clip_norm": 0.5}),
    case("first stage frozen", partial(frozen, *(f"layers.linear{i}." for i in range(4))), optimizer=ADAMW),
    case("middle frozen", partial(frozen, "layers.linear2", "layers.linear3", "layers.linear4"), optimizer=ADAMW),
    case("frozen half-way", optimizer=MOMENTUM, freezes="layers.linear1"),
    case("tied frozen half-way", tied_ends, partial(few, 10), optimizer=MOMENTUM, freezes="0."),
    case("unused", Unused, optimizer=ADAMW),
    case("cut off", cut_off, optimizer=ADAMW),
    case("a mask", masked, optimizer=MOMENTUM),
    case("shared gradients", shifts, partial(few, 4), optimizer=ADAMW),
    case("BatchNorm by micro-batch", partial(mlp, batch_norm=True, activation="tanh"), partial(few, 40), by_share=True),
]
