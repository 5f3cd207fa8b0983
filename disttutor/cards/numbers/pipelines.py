"""Number cards of lesson 08: how long a pipeline's step takes, and how much of it is bubble."""

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.plans import BUBBLES

cards = NumberCards()

GPIPE = "Huang et al. 2019, GPipe (arXiv 1811.06965), section 2.3"
MEGATRON = "Narayanan et al. 2021 (arXiv 2104.04473), section 2.2"
ZERO_BUBBLE = "Qi et al. 2024, Zero Bubble (arXiv 2401.10241), table 2"
FORWARD, BACKWARD = 1, 2        # where only their sum counts, and that cancels


@cards.card(
    "number-bubble-share", lesson=8, source=GPIPE, concepts=("bubble", "pipeline-parallelism"), family="schedules",
    unit="%", choices={"schedule": ("GPipe", "1F1B"), "ranks": (2, 4, 8, 16), "microbatches": (4, 8, 12, 16, 32, 64)},
    en=("<schedule> on <ranks> equal stages with <microbatches> micro-batches, messages free: what share of the "
        "*total* time is a rank idle, in %?",
        "The step lasts $m+p-1$ turns of a forward and a backward; in $p-1$ of them a rank is idle."),
    hi=("<schedule>, <ranks> barabar stages aur <microbatches> micro-batches, messages free: *total* time ka kitna "
        "hissa rank khaali rehta hai, % mein?",
        "Step $m+p-1$ turns ka hota hai (ek turn matlab forward aur backward); $p-1$ turns mein rank khaali hai."),
    working=r"\frac{<ranks> - 1}{<microbatches> + <ranks> - 1} \cdot 100")
def bubble_share(schedule, ranks, microbatches):
    return {"value": 100 * BUBBLES[schedule](ranks, microbatches, FORWARD, BACKWARD).share_of_total}


@cards.card(
    "number-bubble-ratio", lesson=8, source=MEGATRON, concepts=("bubble", "pipeline-parallelism"), family="schedules",
    unit="%", choices={"schedule": ("GPipe", "1F1B"), "ranks": (2, 4, 8, 16), "microbatches": (4, 8, 12, 16, 32, 64)},
    en=("<schedule> on <ranks> equal stages with <microbatches> micro-batches, messages free: what is the ratio of a "
        "rank's idle time to the *ideal* (the time that it works), in %?",
        "$p-1$ idle turns against $m$ turns of work."),
    hi=("<schedule>, <ranks> barabar stages aur <microbatches> micro-batches, messages free: rank ka khaali time "
        "*ideal* time (jitna wo kaam karta hai) ka kitna hai, % mein?",
        "$p-1$ khaali turns, $m$ kaam ke turns ke mukaable."),
    working=r"\frac{<ranks> - 1}{<microbatches>} \cdot 100")
def bubble_ratio(schedule, ranks, microbatches):
    return {"value": 100 * BUBBLES[schedule](ranks, microbatches, FORWARD, BACKWARD).ratio_to_ideal}


@cards.card(
    "number-bubble-interleaved", lesson=8, source=MEGATRON, concepts=("bubble", "pipeline-parallelism"),
    family="schedules", unit="%", choices={"ranks": (2, 4, 8), "stages": (2, 3, 4), "rounds": (1, 2, 4, 8)},
    en=("Interleaved 1F1B on <ranks> ranks, <stages> stages on each, <microbatches> micro-batches, messages free: what "
        "is the ratio of idle time to the *ideal*, in %?",
        "With $v$ stages on each rank the pipeline fills $v$ times as fast: $(p-1)/(vm)$."),
    hi=("Interleaved 1F1B, <ranks> ranks, har rank par <stages> stages, <microbatches> micro-batches, messages free: "
        "khaali time *ideal* time ka kitna hai, % mein?",
        "Har rank par $v$ stages hon to pipeline $v$ guna jaldi bharti hai: $(p-1)/(vm)$."),
    working=r"\frac{<ranks> - 1}{<stages> \cdot <microbatches>} \cdot 100")
def bubble_interleaved(ranks, stages, rounds):
    bubble = BUBBLES["interleaved 1F1B"](ranks, rounds * ranks, FORWARD, BACKWARD, v=stages)
    return {"value": 100 * bubble.ratio_to_ideal, "microbatches": rounds * ranks}


@cards.card(
    "number-pipeline-makespan", lesson=8, source=GPIPE, concepts=("pipeline-parallelism", "bubble"),
    family="schedules", unit="ms",
    choices={"ranks": (3, 4, 6, 8), "microbatches": (8, 12, 16, 24), "forward": (5, 10, 15), "backward": (20, 25, 30)},
    en=("GPipe on <ranks> equal stages with <microbatches> micro-batches: a forward takes <forward> ms on each "
        "stage, a backward <backward> ms, messages nothing. How many ms does the step take from beginning to end?",
        "$m+p-1$ turns of forward and backward."),
    hi=("GPipe, <ranks> barabar stages, <microbatches> micro-batches: har stage par forward <forward> ms, backward "
        "<backward> ms, messages free. Step shuru se ant tak kitne ms leta hai?",
        "Forward aur backward ke $m+p-1$ turns."),
    working="(<microbatches> + <ranks> - 1) (<forward> + <backward>)")
def pipeline_makespan(ranks, microbatches, forward, backward):
    return {"value": float(BUBBLES["GPipe"](ranks, microbatches, forward, backward).makespan)}


@cards.card(
    "number-naive-makespan", lesson=8, source="Huang et al. 2019, GPipe (arXiv 1811.06965), figure 2b", unit="ms",
    concepts=("model-parallelism", "bubble"), family="schedules",
    choices={"ranks": (3, 4, 6, 8), "microbatches": (4, 8, 12), "forward": (5, 10, 15), "backward": (20, 25, 30)},
    en=("Naive model parallelism: <ranks> equal stages, only one works at a time. A forward takes <forward> ms on each "
        "stage, a backward <backward> ms, messages nothing. How many ms do <microbatches> micro-batches take?",
        "Each micro-batch goes through all $p$ stages and back before the next one starts."),
    hi=("Naive model parallelism: <ranks> barabar stages, ek time par sirf ek kaam karta hai. Har stage par forward "
        "<forward> ms, backward <backward> ms, messages free. <microbatches> micro-batches kitne ms lete hain?",
        "Har micro-batch saare $p$ stages se jaakar wapas aata hai, tab agla shuru hota hai."),
    working=r"<microbatches> \cdot <ranks> \cdot (<forward> + <backward>)")
def naive_makespan(ranks, microbatches, forward, backward):
    return {"value": float(BUBBLES["naive"](ranks, microbatches, forward, backward).makespan)}


@cards.card(
    "number-zero-bubble-idle", lesson=8, source=ZERO_BUBBLE, concepts=("bubble",), family="schedules", unit="ms",
    choices={"ranks": (4, 6, 8), "microbatches": (8, 12, 16), "forward": (10, 12), "backward": (11, 14),
             "weight": (6, 9)},
    en=("ZB-H1 on <ranks> stages with <microbatches> micro-batches: $T_F =$ <forward> ms, $T_B =$ <backward> ms "
        "(gradient of the input) and $T_W =$ <weight> ms (of the weights) on each stage, messages free. How many ms of "
        "the step is a rank idle?",
        "1F1B idles $(p-1)(T_F+T_B+T_W)$. ZB-H1 puts W's into its gaps, and $(p-1)(T_F+T_B-T_W)$ is left."),
    hi=("ZB-H1, <ranks> stages, <microbatches> micro-batches: har stage par $T_F =$ <forward> ms, $T_B =$ <backward> "
        "ms (input ka gradient) aur $T_W =$ <weight> ms (weights ka), messages free. Step mein rank kitne ms khaali "
        "rehta hai?",
        "1F1B mein $(p-1)(T_F+T_B+T_W)$ khaali hota hai. ZB-H1 khaali jagah mein W rakhta hai, aur "
        "$(p-1)(T_F+T_B-T_W)$ bachta hai."),
    working="(<ranks> - 1) (<forward> + <backward> - <weight>)")
def zero_bubble_idle(ranks, microbatches, forward, backward, weight):
    return {"value": float(BUBBLES["ZB-H1"](ranks, microbatches, forward, backward, weight).idle)}


@cards.card(
    "number-micro-batches-for-bubble", lesson=8, source=GPIPE, concepts=("micro-batches", "bubble"),
    family="schedules", section="Scale it", choices={"ranks": (3, 4, 5, 8, 9, 16), "percent": (5, 10, 20, 25)},
    en=("GPipe on <ranks> equal stages, messages free: with how many micro-batches at least is the bubble at most "
        "<percent> % of the *total*?",
        "$\\frac{p-1}{m+p-1} \\le q$ means $m \\ge (p-1) \\frac{1-q}{q}$, and $m$ is a whole number."),
    hi=("GPipe, <ranks> barabar stages, messages free: kam se kam kitne micro-batches hon, taaki bubble *total* ka "
        "zyada se zyada <percent> % ho?",
        "$\\frac{p-1}{m+p-1} \\le q$ matlab $m \\ge (p-1) \\frac{1-q}{q}$, aur $m$ poora number hota hai."),
    working=r"\left\lceil (<ranks> - 1) \cdot \frac{100 - <percent>}{<percent>} \right\rceil")
def micro_batches_for_bubble(ranks, percent):
    enough = 1
    while BUBBLES["GPipe"](ranks, enough, FORWARD, BACKWARD).share_of_total > percent / 100:
        enough += 1
    return {"value": enough}


@cards.card(
    "number-bubble-speedup", lesson=8, source=GPIPE, concepts=("pipeline-parallelism", "speedup"), section="Scale it",
    family="speedup-words", choices={"ranks": (2, 4, 8, 16), "microbatches": (4, 8, 16, 32, 64)},
    en=("1F1B on <ranks> equal stages with <microbatches> micro-batches, messages free: how many times as fast as one "
        "device that holds all layers?",
        "One device needs $m p$ turns, the pipeline $m+p-1$."),
    hi=("1F1B, <ranks> barabar stages, <microbatches> micro-batches, messages free: us ek device se kitne guna tez, jo "
        "saari layers khud rakhta hai?",
        "Ek device ko $m p$ turns chahiye, pipeline ko $m+p-1$."),
    working=r"\frac{<microbatches> \cdot <ranks>}{<microbatches> + <ranks> - 1}")
def bubble_speedup(ranks, microbatches):
    bubble = BUBBLES["1F1B"](ranks, microbatches, FORWARD, BACKWARD)
    return {"value": ranks * bubble.busy / bubble.makespan}
