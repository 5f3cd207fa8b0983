"""Values as they travel: functions and classes of the notebook by value, tensors as their plain memory.

cloudpickle does the functions. Tensors get a way of their own: what travels is the data, on the CPU, without the
graph that computed it, and large memory is not copied into the pickle but sent from where it lies.
"""

from __future__ import annotations

import importlib
import io
import linecache
import os
import pickle
import sys
import types
from typing import Any

from disttutor.cluster.channel import Parcel

_BESIDE = 1 << 16  # memory of at least this many bytes travels beside the pickle, not in it


def pack(value: Any, sources: dict[str, list[str]] | None = None) -> Parcel:
    """Make `value` ready to travel. Raises whatever pickling raises (TypeError, PicklingError, ...).

    `sources` is filled with the text of the notebook cells whose functions are in it: file name -> lines.
    """
    out, buffers = io.BytesIO(), []

    def keep_beside(buffer: pickle.PickleBuffer) -> bool:
        memory = buffer.raw()
        if memory.nbytes < _BESIDE:
            return True
        buffers.append(memory)
        return False

    _pickler_class()(out, keep_beside, {} if sources is None else sources).dump(value)
    return Parcel(out.getbuffer(), buffers)


def unpack(parcel: Parcel) -> Any:
    """The value again, in the other process. Raises whatever unpickling raises."""
    return pickle.loads(parcel.body, buffers=parcel.buffers)


_PICKLER: list[type] = []


def _pickler_class() -> type:
    """The pickler; cloudpickle is imported when it is first needed, to keep the import of this room light."""
    if _PICKLER:
        return _PICKLER[0]
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def __init__(self, out, keep_beside, sources) -> None:
            super().__init__(out, protocol=5, buffer_callback=keep_beside)
            self.sources = sources

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, io.IOBase):
                return _reduce_file(value)
            torch = sys.modules.get("torch")
            if torch is not None and isinstance(value, torch.Tensor):
                return _reduce_tensor(value, torch)
            if isinstance(value, types.FunctionType):
                _note_source(value.__code__.co_filename, self.sources)
            if isinstance(value, types.ModuleType) and type(value) is not types.ModuleType:
                # Such as torch.ops, which cloudpickle packs for whoever names torch and an attribute `ops` of anything.
                if sys.modules.get(value.__name__) is value:
                    return importlib.import_module, (value.__name__,)
            if isinstance(value, types.CodeType):  # cloudpickle forgets the cell that code comes from
                make, arguments = self.dispatch_table[types.CodeType](value)
                return _code, (make, arguments, value.co_filename)
            return super().reducer_override(value)

    _PICKLER.append(Pickler)
    return Pickler


def _code(make: Any, arguments: tuple, filename: str) -> types.CodeType:
    return make(*arguments).replace(co_filename=filename)


def _note_source(filename: str, sources: dict[str, list[str]]) -> None:
    """Keep the lines of a cell: the rank has no other way to show them in its traceback."""
    entry = linecache.cache.get(filename)
    if entry and len(entry) == 4 and filename not in sources and not filename.startswith("<frozen"):
        if not os.path.exists(filename):
            sources[filename] = entry[2]


def _reduce_file(file: io.IOBase) -> Any:
    for name in ("stdout", "stderr"):
        if file in (getattr(sys, name), getattr(sys, f"__{name}__")):
            return getattr, (sys, name)
    if isinstance(file, io.BytesIO | io.StringIO):
        return NotImplemented
    raise TypeError("an open file stays in the process that opened it")


def _reduce_tensor(tensor: Any, torch: types.ModuleType) -> Any:
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    if not plain or tensor.is_quantized or tensor.is_nested or tensor.device.type == "meta":
        return NotImplemented  # torch's own way
    data = tensor.detach().cpu().resolve_conj().resolve_neg()
    if data._is_zerotensor():  # of forward-mode differentiation: it has no memory
        data = torch.zeros_like(data)
    if data.untyped_storage().nbytes() > data.numel() * data.element_size():
        data = data.clone(memory_format=torch.contiguous_format)  # a view: take its part, leave the rest at home
    memory = torch.empty(0, dtype=torch.uint8).set_(data.untyped_storage())
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    grad = tensor.requires_grad and tensor.is_leaf
    layout = (data.dtype, data.storage_offset(), tuple(data.shape), data.stride())
    return _tensor, (pickle.PickleBuffer(memory.numpy()), *layout, is_parameter, grad, dict(tensor.__dict__))


def _tensor(memory: Any, dtype: Any, offset: int, shape: tuple, stride: tuple, is_parameter: bool, grad: bool,
            attributes: dict) -> Any:  # fmt: skip
    import torch

    memory = memoryview(memory)
    flat = torch.frombuffer(memory, dtype=torch.uint8) if memory.nbytes else torch.empty(0, dtype=torch.uint8)
    if flat.data_ptr() % 64:  # as torch itself allocates: kernels may sum in another order on other alignments
        flat = flat.clone()
    tensor = torch.empty(0, dtype=dtype).set_(flat.untyped_storage(), offset, shape, stride)
    if is_parameter:
        tensor = torch.nn.Parameter(tensor, requires_grad=grad)
    elif grad:
        tensor.requires_grad_()
    tensor.__dict__.update(attributes)
    return tensor
