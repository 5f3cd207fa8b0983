"""Named devices and links of large machines, with the source of each number.

Rates: the best that a large bf16 matrix multiplication was measured to reach (stas00/ml-engineering, "maximum
achievable matmul FLOPS"), which is about four fifths of the datasheet's; training reaches less. Bandwidths: for one
GPU and direction, vendors' data as gathered there. Latencies: of one hop, as NCCL's own tuner counts a ring's
(src/graph/tuning.cc, protocol Simple).
"""

from disttutor.plans import Device, Link

H100 = Device(794.5e12, "H100")

NVLINK_4 = Link(3.4e-6, 450e9, "NVLink 4")
INFINIBAND_NDR = Link(14e-6, 50e9, "InfiniBand NDR")      # DGX H100: 8 x 400 Gbit/s for 8 GPUs
INFINIBAND_HDR = Link(14e-6, 25e9, "InfiniBand HDR")      # DGX A100: 8 x 200 Gbit/s for 8 GPUs
EFA_V1 = Link(14e-6, 6.25e9, "AWS EFA v1")                # P4d: 4 x 100 Gbit/s for 8 GPUs

GPUS_A_NODE = 8


def ring_over_nodes(between: Link, gpus: int, within: Link = NVLINK_4) -> Link:
    """One link that stands for all hops of a ring of `gpus` over whole nodes: as fast as its slowest hop, and with the
    mean latency of its hops, of which one for each node leads to the next.

    Raises ValueError if the GPUs do not fill whole nodes.
    """
    if gpus <= GPUS_A_NODE:
        return within
    nodes, rest = divmod(gpus, GPUS_A_NODE)
    if rest:
        raise ValueError(f"{gpus} GPUs do not fill nodes of {GPUS_A_NODE}; multiples of {GPUS_A_NODE} work")
    latency = (nodes * between.latency + (gpus - nodes) * within.latency) / gpus
    return Link(latency, min(between.bandwidth, within.bandwidth), between.name)
