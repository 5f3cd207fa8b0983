"""Fifteen sentences about distributed training that are widely believed, what is right instead, and a look at each: a
number that is computed here, now, by the library or by a few lines of PyTorch.

The sentences are those of the note that this course grew from, in short.
"""

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import torch

from disttutor.cost import communication_for, fewest_devices, model_states, speedup, terms
from disttutor.labs.large_machines import predicted_step
from disttutor.plans import build_schedule, pipedream, pipeline_step, staleness
from disttutor.strategies import EpochSampler, share_sizes, split
from disttutor.traces import hidden_communication

GB = 1e9


@dataclass(frozen=True, slots=True)
class Misconception:
    """What is believed, what is right, and `look`: says in a sentence what came out when it was tried."""

    number: int
    believed: str
    right: str
    look: Callable[[], str]


# ------------------------------------------------------------------------------------------------ the fifteen looks


def cuts_of_a_layer() -> str:
    x, w = torch.arange(8.0).reshape(2, 4), torch.arange(24.0).reshape(4, 6)
    whole = x @ w
    columns = torch.cat([x @ part for part in w.chunk(2, dim=1)], dim=1)
    rows = sum(a @ b for a, b in zip(x.chunk(2, dim=1), w.chunk(2, dim=0), strict=True))
    mixed = torch.cat([a @ b for a, b in zip(x.chunk(2, dim=1), w.chunk(2, dim=0), strict=True)], dim=1)
    return (f"columns, put side by side, give Y: {torch.equal(columns, whole)}; rows, added up, give Y: "
            f"{torch.equal(rows, whole)}; rows put side by side give a matrix of {shape(mixed)}, and Y is "
            f"{shape(whole)}")


def shape(matrix: torch.Tensor) -> str:
    """`2 x 6`."""
    return " x ".join(map(str, matrix.shape))


def which_batch() -> str:
    shared, own = sum(share_sizes(64, 4)), 4 * 64
    return f"a batch of 64 split over 4 ranks counts {shared} samples in all; 64 brought by each of 4 ranks {own}"


def mean_of_means() -> str:
    samples = torch.tensor([1.0, 2.0, 3.0, 10.0, 20.0])
    shares = split(samples, 3)
    of_means = torch.stack([share.mean() for share in shares]).mean()
    weighted = sum(len(share) / len(samples) * share.mean() for share in shares)
    return (f"of 1, 2, 3, 10, 20 on 3 ranks: the mean is {samples.mean():.2f}, the mean of the ranks' means "
            f"{of_means:.2f}, and weighted by |Bi|/b it is {weighted:.2f}")


def same_bits() -> str:
    a, b, c = torch.tensor([1e8, 1.0, -1e8], dtype=torch.float32)
    return f"in float32 (1e8 + 1) - 1e8 is {(a + b) + c:.0f}, and (1e8 - 1e8) + 1 is {(a + c) + b:.0f}"


def during_backward() -> str:
    hidden = hidden_communication(predicted_step(64), 0)
    return (f"predicted, for 64 GPUs and a model of 1.3 billion parameters: backward hides {hidden:.0%} of the "
            "communication")


def half_of_k() -> str:
    constant = speedup(1.0, 64, 1 / 64)
    few, many = (terms("all_reduce", "ring", k) for k in (4, 256))
    return (f"Tcomm = Tc/k on 64 ranks gives S = {constant:g}; S = 3.5 on 4 ranks means Tcomm = Tc/"
            f"{1 / communication_for(3.5, 1.0, 4):.0f}; a ring takes {few} on 4 ranks, and {many} on 256")


def smaller_working_set() -> str:
    return f"64 MB of data over 16 ranks are {64 / 16:g} MB on each: those may fit in a cache where 64 MB do not"


def ten_billion() -> str:
    need = model_states(10e9).total / GB
    return (f"mixed-precision Adam holds {need:.0f} GB before any activation: with ZeRO-3 {fewest_devices(10e9, 40e9)} "
            "GPUs of 40 GB are full to the last byte, so it takes more")


def hundred_billion() -> str:
    plain, zero = model_states(100e9, data=8, tensor=8), model_states(100e9, data=8, tensor=8, zero=1)
    return (f"8 x 8 with plain copies: {plain.total / GB:g} GB on each GPU; with ZeRO-1 over the copies "
            f"{zero.total / GB:g} GB, which GPUs of 80 GB hold")


def gpt3_in_eight() -> str:
    weights, training = 175e9 * 2 / 8 / GB, model_states(175e9, pipeline=8).total / GB
    step = pipeline_step(build_schedule("1F1B", 8, 1))
    sends = sum(op.kind == "send" for ops in step.ops for op in ops)
    return (f"{weights:g} GB are the weights alone, training holds {training:g} GB on each GPU; one micro-batch makes "
            f"{sends} transfers, {sends // 2} of them forward")


def whole_batches() -> str:
    old = max(staleness(pipedream(4, 12)).values())
    return (f"PipeDream on 4 stages: the first stage's gradient is of weights {old} updates ago; with micro-batches of "
            "one batch there is no update in between")


def padded_texts() -> str:
    losses = [torch.full((10,), 1.0), torch.full((2,), 4.0)]
    per_token, of_means = torch.cat(losses).mean(), torch.stack([part.mean() for part in losses]).mean()
    return f"10 tokens of loss 1 and 2 of loss 4: {per_token:g} for each token, {of_means:g} as a mean of two means"


def frameworks_moved() -> str:
    from importlib import import_module

    parts = ("torch.distributed.tensor", "torch.distributed.pipelining", "torch.distributed.fsdp")
    there = [name for name in parts if import_module(name)]
    return f"PyTorch {torch.__version__.split('+')[0]} here has {', '.join(there)}"


def bytes_of_a_step(tokens: int, layers: int = 24, width: int = 2048, ranks: int = 8) -> dict[str, float]:
    """Bytes that a rank sends in one training step of a transformer, 2 bytes a number, with `tokens` tokens on each
    copy of the model: data, tensor and pipeline parallel (a stage in the middle), and ZeRO-3.

    A layer has 12 width² weights; tensor parallelism all-reduces tokens x width numbers twice in its forward and twice
    in its backward (Shoeybi et al. 2019, section 3).
    """
    weights, activations = 2 * 12 * layers * width**2, 2 * tokens * width
    ring, half = terms("all_reduce", "ring", ranks).arrays, terms("all_gather", "ring", ranks).arrays
    return {"data": ring * weights, "tensor": 4 * layers * ring * activations, "pipeline": 2 * activations,
            "ZeRO-3": 3 * half * weights}


def bytes_compared() -> str:
    few, many = bytes_of_a_step(4096), bytes_of_a_step(32768)
    return "in a step each of 8 ranks sends, with 4,096 and with 32,768 tokens: " + ", ".join(
        f"{name} {few[name] / GB:.2f} and {many[name] / GB:.2f} GB" for name in few)


def fewer_updates() -> str:
    of_32, of_512 = (len(EpochSampler(1438, batch)) for batch in (32, 512))
    return (f"1,438 digits in batches of 32 are {of_32} updates an epoch, in batches of 512 they are {of_512}: the "
            "same gradients in the mean, another training")


MISCONCEPTIONS = (
    Misconception(1, "In tensor parallelism W is cut into rows, and the outputs are put side by side.",
                  "Columns: all of X, outputs side by side. Rows: X is cut too, outputs are added up.",
                  cuts_of_a_layer),
    Misconception(2, "A batch b over k ranks is a batch of b times k.",
                  "Split, it is a batch of b. Only if each rank brings its own b is it k times b.", which_batch),
    Misconception(3, "Data parallelism gives the right gradient by linearity of expectation.",
                  "By linearity of differentiation: nothing is random. It takes a mean over samples, and equal shares "
                  "or weights |Bi|/b, where share i holds |Bi| of the b samples.", mean_of_means),
    Misconception(4, "Deterministic means the same bits as one device.",
                  "The same mathematics. The order of additions, and with it the last bits, differ.", same_bits),
    Misconception(5, "Data parallelism talks only after backward.",
                  "It talks bucket by bucket, during backward.", during_backward),
    Misconception(6, "Communication time is one constant, and 4 GPUs give a speedup of 3.5.",
                  "In a ring the bandwidth term hardly grows with k, the latency term with every rank.", half_of_k),
    Misconception(7, "k devices can be more than k times as fast, since a larger batch fits in cache.",
                  "They can, since each device's working set is smaller.", smaller_working_set),
    Misconception(8, "With checkpointing, 10 billion parameters train on one GPU of 40 GB.",
                  "Checkpointing shrinks activations only; the states alone are four times too large.", ten_billion),
    Misconception(9, "100 billion parameters on 64 GPUs: 8-way model times 8 copies, and done.",
                  "Plain copies do not fit; with sharded optimizer states they do.", hundred_billion),
    Misconception(10, "GPT-3, cut by layers over 8 GPUs, takes 7 transfers, and that is the only way.",
                  "7 forward and 7 backward for each micro-batch; and there are tensor parallelism, ZeRO, offload.",
                  gpt3_in_eight),
    Misconception(11, "A pipeline starts the next batch while the last one is under way.",
                  "The next micro-batch of the same batch. Whole batches in flight are PipeDream, with old weights.",
                  whole_batches),
    Misconception(12, "Gradients accumulated with weights 1/k are always those of the large batch.",
                  "Only if all micro-batches count as many samples, or tokens.", padded_texts),
    Misconception(13, "JAX has xmap, PyTorch needs Megatron and PipeDream.",
                  "JAX has jit with shardings and shard_map; PyTorch has DTensor, pipelining and FSDP of its own.",
                  frameworks_moved),
    Misconception(14, "Model parallelism is better for large models.",
                  "Tensor parallelism talks in every layer, and more with every token; a pipeline talks little and "
                  "waits. Count the bytes before you choose.", bytes_compared),
    Misconception(15, "A larger batch with the same gradient is the same training.",
                  "There are fewer updates in an epoch: the learning rate has to change, and gains shrink.",
                  fewer_updates),
)


@dataclass(frozen=True, slots=True)
class Corrections:
    """Misconceptions, each with what is right and what came out. As a cell's value it shows itself: the right sentence
    unfolds when the reader has made up their mind."""

    rows: tuple[tuple[int, str, str, str], ...]

    def html(self) -> str:
        """A foldable line for each."""
        return "".join(
            f"<details><summary>{number}. “{escape(believed)}”</summary><p style='margin:4px 0 12px 24px'>"
            f"<b>{escape(right)}</b><br>{escape(found)}.</p></details>" for number, believed, right, found in self.rows)

    def _lines(self) -> Iterator[str]:
        for number, believed, right, found in self.rows:
            yield f"{number}. “{believed}”"
            yield from textwrap.wrap(right, 90, initial_indent="    ", subsequent_indent="    ")
            yield from textwrap.wrap(f"{found}.", 90, initial_indent="    - ", subsequent_indent="      ")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return "\n".join(self._lines())


def misconceptions(*numbers: int) -> Corrections:
    """Look at these of the fifteen, or at all of them. Raises ValueError for a number that there is not."""
    known = {one.number: one for one in MISCONCEPTIONS}
    if unknown := [number for number in numbers if number not in known]:
        raise ValueError(f"there is no misconception {unknown[0]!r}; they are numbered 1 to {len(known)}")
    chosen = [known[number] for number in numbers or known]
    return Corrections(tuple((one.number, one.believed, one.right, one.look()) for one in chosen))
