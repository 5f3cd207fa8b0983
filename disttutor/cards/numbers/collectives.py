"""Number cards of lesson 02: how many rounds and how many bytes a collective takes."""

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import hierarchical_terms, terms

cards = NumberCards()

THAKUR = "Thakur, Rabenseifner and Gropp 2005, section 4"
SIZES = (80, 120, 240, 400, 600, 1200)
POWERS = (4, 8, 16, 32, 64, 128)


@cards.card(
    "number-ring-bytes", lesson=2, source="Patarasuk and Yuan 2009, section 3", unit="MB",
    concepts=("ring-all-reduce", "all-reduce"), family="all-reduce-algorithms",
    choices={"ranks": (4, 5, 6, 8, 10, 16, 20), "size": SIZES},
    en=("A ring all-reduces an array of <size> MB over <ranks> ranks. How many MB does each rank send in all?",
        "Each of the $2(n-1)$ messages is one $n$-th of the array."),
    hi=("Ring <ranks> ranks par <size> MB ka array all-reduce karta hai. Har rank kul kitne MB bhejta hai?",
        "$2(n-1)$ messages hain, aur har message array ka $n$-waan hissa hai."),
    working=r"2 \cdot \frac{<ranks> - 1}{<ranks>} \cdot <size>")
def ring_bytes(ranks, size):
    return {"value": terms("all_reduce", "ring", ranks).arrays * size}


@cards.card(
    "number-ring-steps", lesson=2, source="Patarasuk and Yuan 2009, section 3",
    concepts=("ring-all-reduce",), family="all-reduce-algorithms", choices={"ranks": range(3, 33)},
    en=("How many rounds does a ring all-reduce over <ranks> ranks take, one message after the other?",
        "$n-1$ rounds of reduce-scatter, then $n-1$ rounds of all-gather."),
    hi=("<ranks> ranks ka ring all-reduce kitne rounds leta hai, jab messages ek ke baad ek jaate hain?",
        "Pehle reduce-scatter ke $n-1$ rounds, phir all-gather ke $n-1$ rounds."),
    working="2 (<ranks> - 1)")
def ring_steps(ranks):
    return {"value": int(terms("all_reduce", "ring", ranks).messages)}


@cards.card(
    "number-naive-root-bytes", lesson=2, source="Lesson 02, the naive all-reduce", unit="MB",
    concepts=("all-reduce", "communication-overhead"), family="all-reduce-algorithms",
    choices={"ranks": (4, 5, 8, 10, 16), "size": SIZES},
    en=("Naive all-reduce over <ranks> ranks: all send their <size> MB to rank 0, which adds up and sends the sum to "
        "each. How many MB go in and out of rank 0 together?",
        "$n-1$ whole arrays come in, and $n-1$ go out: rank 0 is the bottleneck."),
    hi=("<ranks> ranks ka naive all-reduce: sab apne <size> MB rank 0 ko bhejte hain, wo jodta hai aur sum sabko "
        "bhejta hai. Rank 0 ke andar aur bahar kul kitne MB jaate hain?",
        "$n-1$ poore arrays andar aate hain aur $n-1$ bahar jaate hain: rank 0 par hi bheed lagti hai."),
    working="2 (<ranks> - 1) \\cdot <size>")
def naive_root_bytes(ranks, size):
    return {"value": float(terms("all_reduce", "naive", ranks).arrays * size)}


@cards.card(
    "number-tree-steps", lesson=2, source=THAKUR, concepts=("all-reduce",), family="all-reduce-algorithms",
    choices={"ranks": (3, 4, 5, 6, 7, 8, 9, 12, 16, 20, 24, 32, 48, 64, 100, 128)},
    en=("An all-reduce reduces to rank 0 along a binomial tree and broadcasts the sum back along the same tree. How "
        "many rounds does it take on <ranks> ranks?",
        "Each round halves the ranks that are left, so one way takes $\\lceil \\log_2 n \\rceil$ rounds."),
    hi=("All-reduce binomial tree se rank 0 tak reduce karta hai, phir usi tree se sum sabko broadcast karta hai. "
        "<ranks> ranks par kitne rounds lagte hain?",
        "Har round mein bache hue ranks aadhe ho jaate hain, isliye ek taraf $\\lceil \\log_2 n \\rceil$ rounds."),
    working=r"2 \lceil \log_2 <ranks> \rceil")
def tree_steps(ranks):
    return {"value": int(terms("all_reduce", "tree", ranks).messages)}


@cards.card(
    "number-doubling-steps", lesson=2, source=THAKUR, concepts=("all-reduce",), family="all-reduce-algorithms",
    choices={"ranks": POWERS},
    en=("How many rounds does an all-reduce by recursive doubling take on <ranks> ranks?",
        "Pairs swap whole arrays, then pairs of pairs, and so on: $\\log_2 n$ rounds."),
    hi=("Recursive doubling se all-reduce <ranks> ranks par kitne rounds leta hai?",
        "Pehle do-do ranks poore arrays badalte hain, phir pairs ke pairs, aur aage bhi: $\\log_2 n$ rounds."),
    working=r"\log_2 <ranks>")
def doubling_steps(ranks):
    return {"value": int(terms("all_reduce", "recursive doubling", ranks).messages)}


@cards.card(
    "number-doubling-bytes", lesson=2, source=THAKUR, concepts=("all-reduce", "communication-overhead"), unit="MB",
    family="all-reduce-algorithms", choices={"ranks": POWERS, "size": SIZES},
    en=("An all-reduce by recursive doubling of <size> MB on <ranks> ranks: how many MB does each rank send in all?",
        "In each of the $\\log_2 n$ rounds a rank sends its whole array."),
    hi=("<ranks> ranks par <size> MB ka all-reduce, recursive doubling se: har rank kul kitne MB bhejta hai?",
        "$\\log_2 n$ rounds hain, aur har round mein rank apna poora array bhejta hai."),
    working=r"\log_2 <ranks> \cdot <size>")
def doubling_bytes(ranks, size):
    return {"value": float(terms("all_reduce", "recursive doubling", ranks).arrays * size)}


@cards.card(
    "number-halving-doubling-steps", lesson=2, source=THAKUR, concepts=("all-reduce",),
    family="all-reduce-algorithms", choices={"ranks": POWERS},
    en=("How many rounds does an all-reduce by halving-doubling (Rabenseifner's) take on <ranks> ranks?",
        "$\\log_2 n$ rounds of halving (reduce-scatter), then $\\log_2 n$ rounds of doubling (all-gather)."),
    hi=("Halving-doubling (Rabenseifner ka) all-reduce <ranks> ranks par kitne rounds leta hai?",
        "Halving (reduce-scatter) ke $\\log_2 n$ rounds, phir doubling (all-gather) ke $\\log_2 n$ rounds."),
    working=r"2 \log_2 <ranks>")
def halving_doubling_steps(ranks):
    return {"value": int(terms("all_reduce", "halving-doubling", ranks).messages)}


@cards.card(
    "number-all-gather-bytes", lesson=2, source=THAKUR, concepts=("collectives",), family="collectives", unit="MB",
    choices={"ranks": (4, 5, 8, 10, 16), "size": SIZES},
    en=("A ring all-gather on <ranks> ranks: each brings an equal part, and in the end everybody has all <size> MB. "
        "How many MB does each rank send?",
        "$n-1$ rounds, in each of which a rank passes on one part: half of a ring all-reduce."),
    hi=("<ranks> ranks ka ring all-gather: har rank barabar ka hissa laata hai, aur baad mein sabke paas poore <size> "
        "MB hote hain. Har rank kitne MB bhejta hai?",
        "$n-1$ rounds, har round mein rank ek hissa aage bhejta hai: ring all-reduce ka aadha."),
    working=r"\frac{<ranks> - 1}{<ranks>} \cdot <size>")
def all_gather_bytes(ranks, size):
    return {"value": terms("all_gather", "ring", ranks).arrays * size}


@cards.card(
    "number-reduce-scatter-result", lesson=2, source="Lesson 02, reduce-scatter", concepts=("collectives", "zero"),
    family="collectives", unit="MB", choices={"ranks": (4, 5, 8, 10, 16), "size": SIZES},
    en=("Every one of <ranks> ranks brings an array of <size> MB to a reduce-scatter. How many MB of the sum does each "
        "rank hold afterwards?",
        "Each rank gets the sum of one of $n$ equal chunks."),
    hi=("<ranks> ranks mein se har ek reduce-scatter mein <size> MB ka array laata hai. Baad mein har rank ke paas sum "
        "ke kitne MB hote hain?",
        "Har rank ko $n$ barabar chunks mein se ek ka sum milta hai."),
    working=r"\frac{<size>}{<ranks>}")
def reduce_scatter_result(ranks, size):
    return {"value": size / ranks}


@cards.card(
    "number-hierarchical-bytes", lesson=2, source="Lesson 02, the hierarchical all-reduce", unit="MB",
    concepts=("all-reduce", "interconnect"), family="all-reduce-algorithms", section="Scale it",
    choices={"nodes": (2, 4, 5, 8, 10), "gpus": (4, 8), "size": SIZES},
    en=("<nodes> nodes of <gpus> GPUs all-reduce <size> MB hierarchically: reduce-scatter within the nodes, ring "
        "all-reduce between them, all-gather within. How many MB leave each node?",
        "Between $m$ nodes the GPUs of a node together send what one rank of a ring of $m$ would."),
    hi=("<nodes> nodes, har ek mein <gpus> GPUs, <size> MB ka hierarchical all-reduce karte hain: node ke andar "
        "reduce-scatter, nodes ke beech ring all-reduce, phir andar all-gather. Har node se kitne MB bahar jaate hain?",
        "$m$ nodes ke beech, ek node ke saare GPUs milkar utna bhejte hain jitna $m$ ki ring ka ek rank."),
    working=r"2 \cdot \frac{<nodes> - 1}{<nodes>} \cdot <size>")
def hierarchical_bytes(nodes, gpus, size):
    _, between = hierarchical_terms(nodes * gpus, gpus)
    return {"value": between.arrays * size}
