"""Named devices and links of large machines, with the source of each number.

Rates: the best that a large bf16 matrix multiplication was measured to reach (stas00/ml-engineering, "maximum
achievable matmul FLOPS"), which is about four fifths of the datasheet's; training reaches less. Bandwidths: for one
direction, of a GPU's NVLink, and of all NICs of a node together; vendors' data as gathered there. Latencies: of one
hop, as NCCL's own tuner counts a ring's (src/graph/tuning.cc, protocol Simple).
"""

from disttutor.plans import Device, Link

H100 = Device(794.5e12, "H100")

NVLINK_4 = Link(3.4e-6, 450e9, "NVLink 4")
INFINIBAND_NDR = Link(14e-6, 8 * 50e9, "InfiniBand NDR")    # DGX H100: 8 NICs of 400 Gbit/s a node
INFINIBAND_HDR = Link(14e-6, 8 * 25e9, "InfiniBand HDR")    # DGX A100: 8 of 200 Gbit/s
EFA_V1 = Link(14e-6, 4 * 12.5e9, "AWS EFA v1")              # P4d: 4 of 100 Gbit/s
ONE_NIC = Link(14e-6, 12.5e9, "one NIC of 100 Gbit/s")

GPUS_A_NODE = 8


def ring_over_nodes(between: Link, gpus: int, within: Link = NVLINK_4) -> Link:
    """One link that stands for all hops of a ring all-reduce of `gpus` over whole nodes.

    between: all NICs of a node together. One ring enters a node once, through one NIC, and leaves it once. NCCL lays
    several rings, each with a share of the array, so that every NIC of the node carries one and all carry at once;
    NVLink carries them all within the node. The hop is therefore as fast as the slower of the two: the node's NICs
    together, or a GPU's NVLink (NVIDIA/nccl#412). Bus bandwidths of an all-reduce as reported there, in GB/s: 192 with
    8 NICs of 25 a node (nccl#812), 96 with 4 of 25 (nccl-tests#119), 48 with 4 of 12.5 against 12.2 with one
    (nccl-tests#29), 366 with 8 of 50 over four nodes of H100s (nccl-tests#309).

    Latency is the mean of one ring's hops, of which one for each node leads to the next; the rings wait side by side.

    Raises ValueError if the GPUs do not fill whole nodes.
    """
    if gpus <= GPUS_A_NODE:
        return within
    nodes, rest = divmod(gpus, GPUS_A_NODE)
    if rest:
        raise ValueError(f"{gpus} GPUs do not fill nodes of {GPUS_A_NODE}; multiples of {GPUS_A_NODE} work")
    latency = (nodes * between.latency + (gpus - nodes) * within.latency) / gpus
    return Link(latency, min(between.bandwidth, within.bandwidth), between.name)
