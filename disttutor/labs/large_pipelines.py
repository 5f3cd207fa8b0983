"""Pipelines where we have no machine: lesson 08's plans priced for GPUs, and a published table worked out again."""

from disttutor.cost import simulate
from disttutor.cost.hardware import GPUS_A_NODE, H100, INFINIBAND_NDR, NVLINK_4
from disttutor.labs.page import Table
from disttutor.labs.pipelines import percent
from disttutor.plans import BUBBLES, Device, Link, Machine, StageWork, build_schedule, pipeline_step
from disttutor.traces import Trace, bubble_share

# A transformer of 40 layers, 5120 wide (12 · 5120² weights a layer, 12.6 billion in all), with sequences of 2048 tokens
# in bfloat16. A micro-batch is one sequence.
WIDTH, LAYERS, TOKENS = 5120, 40, 2048
PARAMETERS = 12 * WIDTH**2 * LAYERS
BOUNDARY_BYTES = 2 * TOKENS * WIDTH
# Between nodes a GPU sends through the card that is its own: one of the node's eight.
NDR_CARD = Link(INFINIBAND_NDR.latency, INFINIBAND_NDR.bandwidth / GPUS_A_NODE, "one InfiniBand card of 50 GB/s")
COMPARED = ("GPipe", "1F1B", "interleaved 1F1B", "ZB-H1", "ZB-H2")


def pipeline_of_gpus(schedule: str, microbatches: int, stages: int = 8, link: Link = NVLINK_4) -> Trace:
    """One step of the transformer on `stages` H100s, predicted. F, B and W are 2 operations a weight and token each, so
    they last the same; the attention scores, which have no weights, are left out (6 % at this width and length)."""
    built = build_schedule(schedule, stages, microbatches)
    flops = 2.0 * PARAMETERS * TOKENS / built.stages
    plan = pipeline_step(built, work=StageWork(flops, flops, flops), boundary_bytes=BOUNDARY_BYTES)
    return simulate(plan, Machine(H100, link))


def shares(microbatches: tuple[int, ...] = (8, 16, 32, 64, 128), stages: int = 8,
           link: Link = NVLINK_4) -> dict[str, dict[int, float]]:
    """Bubble as a share of the total, predicted, by schedule and number of micro-batches."""
    return {name: {m: bubble_share(pipeline_of_gpus(name, m, stages, link)) for m in microbatches}
            for name in COMPARED}


def share_table(found: dict[str, dict[int, float]], stages: int = 8) -> Table:
    """The shares, each beside its closed form in brackets where there is one."""
    rows = [[name, *(percent(share) + _formula(name, stages, m) for m, share in line.items())]
            for name, line in found.items()]
    counts = next(iter(found.values()))
    return Table(["bubble, share of the total", *(f"m = {m}" for m in counts)], rows,
                 caption=f"{stages} stages, predicted (in brackets by formula, without messages).")


def _formula(name: str, stages: int, m: int) -> str:
    try:
        return f" ({percent(BUBBLES[name](stages, m, 1, 1, 1).share_of_total)})"
    except ValueError:
        return ""


# Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv 2401.10241), the 1.5B model on 8 GPUs: for each number of
# micro-batches F, B, W and a message in milliseconds (table 9), and the bubble rates that they report (table 5).
PROFILED_MS = {24: (18.522, 18.086, 9.337, 0.601), 32: (18.513, 18.086, 9.331, 0.626),
               64: (18.546, 18.097, 9.321, 0.762)}
REPORTED = {24: {"1F1B": 0.2431, "ZB-H1": 0.1585, "ZB-H2": 0.1083},
            32: {"1F1B": 0.1985, "ZB-H1": 0.1242, "ZB-H2": 0.0837},
            64: {"1F1B": 0.124, "ZB-H1": 0.0674, "ZB-H2": 0.0444}}


def bubble_rate(schedule: str, microbatches: int, stages: int = 8) -> float:
    """Zero Bubble's rate of one of its profiles, from our own plan: what the longest stage, from its own start to its
    own end, is longer than its work, as a share of it."""
    f, b, w, message = PROFILED_MS[microbatches]
    built = build_schedule(schedule, stages, microbatches)
    trace = simulate(pipeline_step(built, work=StageWork(f, b, w)), Machine(Device(1.0), Link(message)))
    longest = max(spans[-1].end - spans[0].start for rank in range(stages)
                  for spans in [[s for s in trace.of(rank, "compute") if s.kind != "update"]])
    return 1 - microbatches * (f + b + w) / longest
