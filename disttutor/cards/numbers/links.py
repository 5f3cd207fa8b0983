"""Number cards of lesson 02: how long messages and collectives take on a link of latency and bandwidth."""

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import closed_form, terms
from disttutor.plans import Link

cards = NumberCards()

MICRO, MB, GB = 1e-6, 1e6, 1e9
LATENCIES = (5, 10, 20, 50)             # µs
BANDWIDTHS = (10, 25, 50, 100)          # GB/s


def _link(latency: float, bandwidth: float) -> Link:
    return Link(latency * MICRO, bandwidth * GB)


@cards.card(
    "number-message-time", lesson=2, source="Hockney 1994: α + S/β", unit="ms",
    concepts=("interconnect", "communication-overhead"),
    choices={"size": (0.1, 0.5, 1, 2, 5), "latency": LATENCIES, "bandwidth": BANDWIDTHS},
    en=("A link has a latency of <latency> $\\mu$s and <bandwidth> GB/s. How many ms does one message of <size> MB "
        "take? (MB and GB are $10^6$ and $10^9$ bytes.)",
        "Latency, plus size over bandwidth. (1 MB over 1 GB/s is 1 ms.)"),
    hi=("Ek link ki latency <latency> $\\mu$s hai aur bandwidth <bandwidth> GB/s. <size> MB ka ek message kitne ms "
        "leta hai? (MB aur GB matlab $10^6$ aur $10^9$ bytes.)",
        "Latency, plus size by bandwidth. (1 MB ko 1 GB/s par 1 ms lagta hai.)"),
    working=r"\frac{<latency>}{1000} + \frac{<size>}{<bandwidth>}")
def message_time(size, latency, bandwidth):
    return {"value": _link(latency, bandwidth).seconds(size * MB) * 1e3}


@cards.card(
    "number-ring-time", lesson=2, source="Patarasuk and Yuan 2009; Hockney 1994", unit="ms", section="Scale it",
    concepts=("ring-all-reduce", "communication-overhead"), family="all-reduce-algorithms",
    choices={"ranks": (4, 8, 10, 16), "size": (100, 400, 1000), "latency": LATENCIES, "bandwidth": BANDWIDTHS},
    en=("<ranks> ranks all-reduce <size> MB over a ring; each hop has a latency of <latency> $\\mu$s and <bandwidth> "
        "GB/s in each direction. How many ms does it take?",
        "$2(n-1)$ rounds; in each a message of one $n$-th of the array takes the latency, plus its size over the "
        "bandwidth. (1 MB over 1 GB/s is 1 ms.)"),
    hi=("<ranks> ranks ring se <size> MB all-reduce karte hain; har hop ki latency <latency> $\\mu$s hai, aur har "
        "direction mein <bandwidth> GB/s. Kitne ms lagte hain?",
        "$2(n-1)$ rounds; har round mein array ka $n$-waan hissa jaata hai: latency, plus size by bandwidth. "
        "(1 MB ko 1 GB/s par 1 ms lagta hai.)"),
    working=r"2 (<ranks> - 1) \cdot \left( \frac{<latency>}{1000} + \frac{<size>}{<ranks> \cdot <bandwidth>} \right)")
def ring_time(ranks, size, latency, bandwidth):
    return {"value": closed_form("all_reduce", "ring", ranks, size * MB, _link(latency, bandwidth)) * 1e3}


@cards.card(
    "number-latency-bandwidth-even", lesson=2, source="Patarasuk and Yuan 2009; Hockney 1994", unit="MB",
    concepts=("ring-all-reduce", "interconnect"), section="Scale it",
    choices={"ranks": (8, 16, 32, 64, 128), "latency": LATENCIES, "bandwidth": BANDWIDTHS},
    en=("A ring all-reduce on <ranks> ranks, hops of <latency> $\\mu$s and <bandwidth> GB/s: for an array of how many "
        "MB do latency and bandwidth each take half of the time?",
        "$2(n-1) \\alpha = 2 \\frac{n-1}{n} \\cdot \\frac{S}{\\beta}$ gives $S = n \\alpha \\beta$; smaller arrays "
        "wait mostly for latency."),
    hi=("<ranks> ranks ka ring all-reduce, har hop <latency> $\\mu$s aur <bandwidth> GB/s: kitne MB ke array par "
        "latency aur bandwidth dono aadha-aadha time lete hain?",
        "$2(n-1) \\alpha = 2 \\frac{n-1}{n} \\cdot \\frac{S}{\\beta}$ se $S = n \\alpha \\beta$; chhote arrays mein "
        "zyada time latency ka hi hota hai."),
    working=r"<ranks> \cdot <latency> \cdot 10^{-6} \cdot <bandwidth> \cdot 10^3")
def latency_bandwidth_even(ranks, latency, bandwidth):
    ring, link = terms("all_reduce", "ring", ranks), _link(latency, bandwidth)
    return {"value": ring.messages * link.latency / ring.arrays * link.bandwidth / MB}


@cards.card(
    "number-ring-or-tree", lesson=2, source="Thakur, Rabenseifner and Gropp 2005, section 4", unit="MB",
    concepts=("ring-all-reduce", "all-reduce"), family="all-reduce-algorithms", section="Scale it",
    choices={"ranks": (8, 16, 32, 64), "latency": LATENCIES, "bandwidth": BANDWIDTHS},
    en=("On <ranks> ranks, hops of <latency> $\\mu$s and <bandwidth> GB/s: up to how many MB is an all-reduce by a "
        "tree ($2\\log_2 n$ messages of the whole array) faster than one by a ring ($2(n-1)$ messages of an $n$-th)?",
        "Both take the same time where $\\log_2 n (\\alpha + S/\\beta) = (n-1) (\\alpha + \\frac{S}{n \\beta})$."),
    hi=("<ranks> ranks, har hop <latency> $\\mu$s aur <bandwidth> GB/s: kitne MB tak tree ka all-reduce (poore "
        "array ke $2\\log_2 n$ messages) ring ke all-reduce ($n$-wein hisse ke $2(n-1)$ messages) se tez hota hai?",
        "Dono ka time wahan barabar hai jahan $\\log_2 n (\\alpha + S/\\beta) = (n-1) (\\alpha + \\frac{S}{n "
        "\\beta})$."),
    working=r"<latency> \cdot 10^{-6} \cdot <bandwidth> \cdot 10^3 \cdot "
            r"\frac{(<ranks> - 1) - <rounds>}{<rounds> - (<ranks> - 1) / <ranks>}")
def ring_or_tree(ranks, latency, bandwidth):
    ring, tree = terms("all_reduce", "ring", ranks), terms("all_reduce", "tree", ranks)
    link = _link(latency, bandwidth)
    seconds_of_an_array = (ring.messages - tree.messages) * link.latency / (tree.arrays - ring.arrays)
    return {"value": seconds_of_an_array * link.bandwidth / MB, "rounds": tree.messages // 2}


@cards.card(
    "number-bus-bandwidth", lesson=2, source="NVIDIA nccl-tests, doc/PERFORMANCE.md", unit="GB/s",
    concepts=("interconnect", "all-reduce"), family="collectives", section="Scale it",
    choices={"ranks": (4, 8, 16, 32), "size": (1, 2, 4), "time": (10, 20, 25, 40, 50)},
    en=("nccl-tests all-reduces <size> GB on <ranks> GPUs in <time> ms. What bus bandwidth does it print, in GB/s?",
        "Algorithm bandwidth is size over time; bus bandwidth is that times $2(n-1)/n$, so that it can be compared "
        "with what the link can do."),
    hi=("nccl-tests <ranks> GPUs par <size> GB ka all-reduce <time> ms mein karta hai. Wo kitni bus bandwidth dikhata "
        "hai, GB/s mein?",
        "Algorithm bandwidth matlab size by time; bus bandwidth usi ko $2(n-1)/n$ se multiply karke milti hai, taaki "
        "link ki apni speed se compare ho sake."),
    working=r"\frac{<size>}{<time> / 1000} \cdot 2 \cdot \frac{<ranks> - 1}{<ranks>}")
def bus_bandwidth(ranks, size, time):
    return {"value": size / (time / 1e3) * terms("all_reduce", "ring", ranks).arrays}
