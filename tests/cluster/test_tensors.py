"""Tensors arrive as they are, whatever part of whatever memory they look at."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from disttutor.cluster import run
from disttutor.cluster.pickles import pack, unpack

DTYPES = [torch.bool, torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64, torch.complex64, torch.complex128]  # fmt: skip


@st.composite
def views(draw, base: torch.Tensor) -> torch.Tensor:
    """A view of `base` after some steps, each of which any learner may take."""
    view = base
    for _ in range(draw(st.integers(0, 4))):
        axes = st.integers(0, view.dim() - 1)
        step = draw(st.sampled_from(["slice", "transpose", "expand", "select", "new axis", "conj", "neg", "imag"]))
        if step == "conj":
            view = view.conj()
        elif step == "neg" and view.dtype != torch.bool:
            view = torch._neg_view(view)
        elif step == "imag" and view.is_complex():
            view = view.conj().imag
        elif step == "new axis":
            view = view.unsqueeze(draw(st.integers(0, view.dim())))
        elif view.dim() == 0:
            continue
        elif step == "slice":
            axis = draw(axes)
            start, length = draw(st.integers(0, view.shape[axis])), draw(st.integers(0, view.shape[axis]))
            index = [slice(None)] * view.dim()
            index[axis] = slice(start, start + length, draw(st.integers(1, 3)))
            view = view[tuple(index)]
        elif step == "transpose":
            view = view.transpose(draw(axes), draw(axes))
        elif step == "expand":
            axis = draw(axes)
            if view.shape[axis] == 1:
                sizes = [-1] * view.dim()
                sizes[axis] = draw(st.integers(0, 4))
                view = view.expand(sizes)
        elif step == "select":
            axis = draw(axes)
            if view.shape[axis]:
                view = view.select(axis, draw(st.integers(0, view.shape[axis] - 1)))
    return view


@st.composite
def views_of_one_storage(draw) -> list[torch.Tensor]:
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    count = torch.Size(shape).numel()
    base = torch.arange(1, count + 1).reshape(shape)
    dtype = draw(st.sampled_from(DTYPES))
    base = (base * (1 + 2j)).to(dtype) if dtype.is_complex else (base % 3 if dtype == torch.bool else base).to(dtype)
    return draw(st.lists(views(base), min_size=1, max_size=3))


def same(arrived: torch.Tensor, sent: torch.Tensor) -> bool:
    plain = sent.detach().resolve_conj().resolve_neg()
    return (arrived.dtype, arrived.shape) == (sent.dtype, sent.shape) and arrived.tolist() == plain.tolist()


@given(views_of_one_storage())
@settings(max_examples=300)
def test_any_views_of_one_storage(sent):
    arrived = unpack(pack(sent))
    assert all(map(same, arrived, sent))


@pytest.mark.parametrize("count", [6, 60_000])  # in the pickle, and beside it
def test_views_with_an_offset_as_large_as_their_storage(count):
    x = torch.arange(float(count))
    half = count // 2
    assert same(unpack(pack(x[half:].expand(2, half))), torch.stack([x[half:], x[half:]]))
    assert same(unpack(pack(x[-1].expand(count))), torch.full((count,), count - 1.0))
    assert same(unpack(pack(x.flip(0)[half:])), torch.arange(half - 1.0, -1.0, -1.0))


def test_a_view_sends_its_part_and_a_repetition_is_sent_once():
    x = torch.zeros(1_000_000)
    assert pack(x[10:13]).nbytes < 2000
    assert pack(x[:1].clone().expand(1_000_000)).nbytes < 2000
    assert pack(x[-1].expand(1000)).nbytes < 6000


def test_as_arguments_and_results_of_real_ranks():
    x = torch.arange(6.0)

    def there_and_back(rank, a, b):
        y = torch.arange(6.0)
        return a.tolist(), b.tolist(), y[3:].expand(2, 3), y[-1].expand(8)

    ((a, b, c, d),) = run(there_and_back, x[3:].expand(2, 3), x[-1].expand(8), ranks=1)
    assert a == c.tolist() == [[3, 4, 5], [3, 4, 5]]
    assert b == d.tolist() == [5] * 8


def test_parameters_that_are_views():
    x = torch.arange(6.0)
    parameter = torch.nn.Parameter(x[3:].expand(2, 3))
    arrived = unpack(pack(parameter))
    assert isinstance(arrived, torch.nn.Parameter) and arrived.requires_grad
    assert same(arrived, parameter)
    graph = (torch.nn.Parameter(torch.tensor([1 + 2j])) * 3).conj()
    assert unpack(pack(graph)).tolist() == [3 - 6j] and not unpack(pack(graph)).requires_grad


def test_tensors_of_other_kinds():
    assert unpack(pack(torch._efficientzerotensor((3,)))).tolist() == [0, 0, 0]
    assert unpack(pack(torch.eye(3).to_sparse()))[1].to_dense().tolist() == [0, 1, 0]
    quantized = torch.quantize_per_tensor(torch.arange(4.0), 0.5, 0, torch.qint8)
    assert unpack(pack(quantized[2:])).dequantize().tolist() == [2, 3]
    assert unpack(pack(torch.arange(6.0)[3:].view(torch.uint8)[3:9])).tolist() == [64, 0, 0, 128, 64, 0]
    nested = unpack(pack(torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)])))
    assert [part.tolist() for part in nested.unbind()] == [[1, 1], [0, 0, 0]]
    assert unpack(pack(torch.empty(3, device="meta"))).device.type == "meta"
