"""Backward in two halves gives what torch's own backward gives: the input's gradient first, the weights' later; and
nothing of the second half before it is asked for."""

import pytest
import torch
from stage_modules import MODULES, D
from torch import Tensor, nn

from disttutor.strategies.split_backward import SplitBackward


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
