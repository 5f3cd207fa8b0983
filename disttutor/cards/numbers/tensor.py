"""Number cards of lessons 07 and 11: shapes and bytes where a layer, a sequence or the experts are cut."""

from math import ceil

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import terms

cards = NumberCards()

MEGATRON = "Shoeybi et al. 2019, Megatron-LM (arXiv 1909.08053), section 3"
RING_ATTENTION = "Liu et al. 2023, Ring Attention (arXiv 2310.01889), section 3"
SWITCH = "Fedus et al. 2021, Switch Transformers (arXiv 2101.03961), section 2.2"
HALF, MB = 2, 1e6       # bytes of an element in 16 bits
LAYER = 4               # all-reduces of a layer: after its attention and its MLP, forward and backward


@cards.card(
    "number-column-parallel-shape", lesson=7, source=MEGATRON, concepts=("tensor-parallelism",), family="tensor-cuts",
    choices={"width": (768, 1024, 4096, 12288), "ranks": (2, 4, 8)},
    en=("$Y = XW$, and $W$ has <width> rows and <columns> columns. <ranks> ranks cut it by *columns*. How many columns "
        "of $Y$ does each rank compute?",
        "Each rank sees all of $X$ and has its part of the columns of $W$; the parts of $Y$ stand side by side."),
    hi=("$Y = XW$, aur $W$ mein <width> rows aur <columns> columns hain. <ranks> ranks ise *columns* se kaatte "
        "hain. Har rank $Y$ ke kitne columns compute karta hai?",
        "Har rank poora $X$ dekhta hai aur $W$ ke kuch columns rakhta hai; $Y$ ke hisse saath saath rakhe jaate hain."),
    working=r"\frac{<columns>}{<ranks>}")
def column_parallel_shape(width, ranks):
    return {"value": 4 * width // ranks, "columns": 4 * width}


@cards.card(
    "number-row-parallel-shape", lesson=7, source=MEGATRON, concepts=("tensor-parallelism",), family="tensor-cuts",
    choices={"width": (768, 1024, 4096, 12288), "ranks": (2, 4, 8)},
    en=("$Y = XW$, and $W$ has <rows> rows and <width> columns. <ranks> ranks cut it by *rows*. How many columns of "
        "$Y$ does each rank compute, before the all-reduce?",
        "Each rank has <own> rows of $W$ and that part of $X$. Its product has all columns of $Y$, but only a part of "
        "each sum: the all-reduce adds them up."),
    hi=("$Y = XW$, aur $W$ mein <rows> rows aur <width> columns hain. <ranks> ranks ise *rows* se kaatte hain. "
        "All-reduce se pehle har rank $Y$ ke kitne columns compute karta hai?",
        "Har rank ke paas $W$ ki <own> rows aur $X$ ka wahi hissa hai. Uske product mein $Y$ ke sab columns hain, "
        "lekin har sum ka sirf ek hissa: all-reduce unko jodta hai."),
    working=r"\text{columns of } Y")
def row_parallel_shape(width, ranks):
    return {"value": width, "rows": 4 * width, "own": 4 * width // ranks}


@cards.card(
    "number-heads-that-divide", lesson=7, source=MEGATRON, concepts=("tensor-parallelism", "transformers"),
    family="tensor-cuts", section="Break it", choices={"heads": (12, 20, 25, 28, 36, 40, 52), "gpus": (8, 16)},
    en=("A transformer has <heads> attention heads, and each rank must hold the same number of whole heads. How "
        "many GPUs of a node of <gpus> can tensor parallelism use at most?",
        "The number of ranks must divide the number of heads."),
    hi=("Transformer mein <heads> attention heads hain, aur har rank ko barabar poore heads rakhne hain. <gpus> GPUs "
        "ke node mein tensor parallelism zyada se zyada kitne GPUs use kar sakta hai?",
        "Ranks ka number heads ke number ko divide karna chahiye."),
    working=r"\max \{ t \le <gpus> : <heads> \bmod t = 0 \}")
def heads_that_divide(heads, gpus):
    return {"value": max(t for t in range(1, gpus + 1) if heads % t == 0)}


@cards.card(
    "number-tensor-all-reduces", lesson=7, source=MEGATRON, concepts=("tensor-parallelism", "all-reduce"),
    family="tensor-cuts", choices={"layers": (12, 24, 32, 48, 80, 96)},
    en=("Megatron's tensor parallelism in a transformer of <layers> layers: how many all-reduces does one forward and "
        "backward make in the layers, without sequence parallelism or recomputation?",
        "Two in the forward of each layer (after the attention and after the MLP), and two in its backward."),
    hi=("<layers> layers ke transformer mein Megatron wala tensor parallelism: ek forward aur backward mein layers "
        "ke andar kitne all-reduces hote hain, bina sequence parallelism aur recomputation ke?",
        "Har layer ke forward mein do (attention ke baad aur MLP ke baad), aur backward mein do."),
    working=r"(2 + 2) \cdot <layers>")
def tensor_all_reduces(layers):
    return {"value": LAYER * layers}


@cards.card(
    "number-tensor-bytes", lesson=7, source=MEGATRON, concepts=("tensor-parallelism", "communication-overhead"),
    family="tensor-cuts", unit="MB", section="Scale it",
    choices={"tokens": (1024, 2048, 4096), "samples": (1, 2, 4), "width": (4096, 8192, 12288), "ranks": (2, 4, 8)},
    en=("Tensor parallelism over <ranks> ranks all-reduces activations of <samples> x <tokens> tokens, <width> wide, 2 "
        "bytes an element, 4 times a layer (forward and backward), by rings. How many MB ($10^6$ bytes) does each rank "
        "send for one layer?",
        "The array is <size> MB, and each ring all-reduce sends $2(t-1)/t$ of it."),
    hi=("<ranks> ranks ka tensor parallelism <samples> x <tokens> tokens ke activations all-reduce karta hai, width "
        "<width>, har element 2 bytes, har layer mein 4 baar (forward aur backward), ring se. Ek layer ke liye har "
        "rank kitne MB ($10^6$ bytes) bhejta hai?",
        "Array <size> MB ka hai, aur har ring all-reduce uska $2(t-1)/t$ bhejta hai."),
    working=r"4 \cdot 2 \cdot \frac{<ranks> - 1}{<ranks>} \cdot <samples> \cdot <tokens> \cdot <width> \cdot 2 \cdot "
            r"10^{-6}")
def tensor_bytes(tokens, samples, width, ranks):
    size = samples * tokens * width * HALF / MB
    return {"value": LAYER * terms("all_reduce", "ring", ranks).arrays * size, "size": size}


@cards.card(
    "number-ring-attention-steps", lesson=11, source=RING_ATTENTION, concepts=("long-sequences",),
    choices={"thousands": (64, 128, 256, 512), "ranks": (2, 4, 8, 16, 32)},
    en=("Ring attention spreads <thousands>,000 tokens over <ranks> ranks. How many times does each rank pass a "
        "block of keys and values on, until every query has seen all keys?",
        "Each rank has its own block at the beginning, and needs those of all others. Each is <block> tokens long."),
    hi=("Ring attention <thousands>,000 tokens ko <ranks> ranks par baantta hai. Har rank keys aur values ka block "
        "kitni baar aage bhejta hai, jab tak har query sabhi keys na dekh le?",
        "Har rank ke paas shuru mein apna block hai, aur use baaki sabke chahiye. Har block <block> tokens ka hai."),
    working="<ranks> - 1")
def ring_attention_steps(thousands, ranks):
    return {"value": int(terms("all_gather", "ring", ranks).messages), "block": thousands * 1000 / ranks}


@cards.card(
    "number-ring-attention-bytes", lesson=11, source=RING_ATTENTION, unit="MB", section="Scale it",
    concepts=("long-sequences", "communication-overhead"),
    choices={"thousands": (32, 64, 128, 256), "width": (2048, 4096, 8192), "ranks": (4, 8, 16)},
    en=("Ring attention over <ranks> ranks: <thousands>,000 tokens; keys and values are each <width> wide, 2 bytes an "
        "element. How many MB ($10^6$ bytes) does each rank send in the forward of one layer?",
        "It passes on a block of keys and values ($2 \\cdot s/n \\cdot h$ elements) $n-1$ times."),
    hi=("<ranks> ranks par ring attention: <thousands>,000 tokens; keys aur values dono ki width <width>, har "
        "element 2 bytes. Ek layer ke forward mein har rank kitne MB ($10^6$ bytes) bhejta hai?",
        "Wo keys aur values ka ek block ($2 \\cdot s/n \\cdot h$ elements) $n-1$ baar aage bhejta hai."),
    working=r"(<ranks> - 1) \cdot 2 \cdot \frac{<thousands>000}{<ranks>} \cdot <width> \cdot 2 \cdot 10^{-6}")
def ring_attention_bytes(thousands, width, ranks):
    keys_and_values = 2 * thousands * 1000 * width * HALF / MB
    return {"value": terms("all_gather", "ring", ranks).arrays * keys_and_values}


@cards.card(
    "number-expert-all-to-all", lesson=11, source="Lepikhin et al. 2020, GShard (arXiv 2006.16668)",
    concepts=("experts", "collectives"), unit="MB", section="Scale it",
    choices={"tokens": (2048, 4096, 8192), "width": (2048, 4096), "best": (1, 2), "ranks": (4, 8, 16)},
    en=("Each of <ranks> ranks has <tokens> tokens, <width> wide, 2 bytes an element, and holds one expert. Routing "
        "is top-<best>, and all experts are equally wanted. How many MB ($10^6$ bytes) does a rank send "
        "to *other* ranks in the all-to-all that brings tokens to experts?",
        "Of what it sends out, $1/n$ is for its own expert and stays."),
    hi=("<ranks> ranks mein har ek ke paas <tokens> tokens hain, width <width>, har element 2 bytes, aur ek expert. "
        "Routing top-<best> hai, aur har expert ko barabar tokens milte hain. Tokens ko experts tak le jaane wale "
        "all-to-all mein ek rank *doosre* ranks ko kitne MB ($10^6$ bytes) bhejta hai?",
        "Jo wo baantta hai, uska $1/n$ apne hi expert ka hai aur wahin rehta hai."),
    working=r"\frac{<ranks> - 1}{<ranks>} \cdot <best> \cdot <tokens> \cdot <width> \cdot 2 \cdot 10^{-6}")
def expert_all_to_all(tokens, width, best, ranks):
    return {"value": terms("all_to_all", "pairwise", ranks).arrays * best * tokens * width * HALF / MB}


@cards.card(
    "number-expert-capacity", lesson=11, source=SWITCH, concepts=("experts",),
    choices={"tokens": (1000, 1024, 2048, 4096), "experts": (8, 16, 32, 64), "factor": (1, 1.25, 1.5, 2)},
    en=("<tokens> tokens, each sent to one of <experts> experts, and a capacity factor of <factor>. How many tokens "
        "does one expert take at most (rounded up)? Tokens beyond that are dropped.",
        "An even share of the tokens, times the factor."),
    hi=("<tokens> tokens, har ek <experts> experts mein se ek ko jaata hai, capacity factor <factor>. Ek expert "
        "zyada se zyada kitne tokens leta hai (upar round karke)? Jo zyada hain wo drop ho jaate hain.",
        "Tokens ka barabar hissa, guna factor."),
    working=r"\left\lceil <factor> \cdot \frac{<tokens>}{<experts>} \right\rceil")
def expert_capacity(tokens, experts, factor):
    return {"value": ceil(factor * tokens / experts)}
