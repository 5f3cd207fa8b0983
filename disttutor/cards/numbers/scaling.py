"""Number cards of lessons 01, 12 and 13: how long a training takes, and how much more devices help."""

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import amdahl, communication_for, efficiency, gustafson, speedup, weak_speedup

cards = NumberCards()

KAPLAN = "Kaplan et al. 2020 (arXiv 2001.08361), section 2.1: 6 N D"
CHOWDHERY = "Chowdhery et al. 2022, PaLM (arXiv 2204.02311), appendix B: MFU"
FORMULA = "Lesson 12: S = Tc / (Tc/k + Tcomm)"
FLOPS, DAY = 6, 86400           # operations a parameter and token, seconds
PETA = 1e15


@cards.card(
    "number-training-days", lesson=1, source=KAPLAN, concepts=("computation", "distributed-training"), unit="days",
    choices={"billions": (1.5, 7, 13, 70), "tokens": (0.3, 1, 2), "gpus": (64, 256, 1024), "percent": (30, 40, 50)},
    en=("Training a model of <billions> billion parameters on <tokens> trillion ($10^{12}$) tokens takes $6ND$ "
        "floating-point operations. <gpus> GPUs with a peak of 1 PFLOP/s ($10^{15}$) each reach <percent> % of it. How "
        "many days does it take?",
        "$6ND$ over what all GPUs do in a second; a day has 86400 seconds."),
    hi=("<billions> billion parameters ke model ko <tokens> trillion ($10^{12}$) tokens par train karne mein $6ND$ "
        "floating-point operations lagte hain. <gpus> GPUs, har ek ka peak 1 PFLOP/s ($10^{15}$), uska <percent> % "
        "paate hain. Kitne days lagte hain?",
        "$6ND$ ko saare GPUs ke ek second ke kaam se divide karo; ek din mein 86400 seconds."),
    working=r"\frac{6 \cdot <billions> \cdot 10^9 \cdot <tokens> \cdot 10^{12}}{<gpus> \cdot 10^{15} \cdot "
            r"<percent>/100 \cdot 86400}")
def training_days(billions, tokens, gpus, percent):
    return {"value": FLOPS * billions * 1e9 * tokens * 1e12 / (gpus * PETA * percent / 100 * DAY)}


@cards.card(
    "number-gpus-for-a-deadline", lesson=13, source=KAPLAN, concepts=("choosing", "computation"), section="Scale it",
    usable=lambda billions, tokens, days, percent: billions * tokens / days > 0.2,
    choices={"billions": (7, 13, 70), "tokens": (1, 2), "days": (7, 14, 30), "percent": (30, 40, 50)},
    en=("<billions> billion parameters are to see <tokens> trillion ($10^{12}$) tokens within <days> days: $6ND$ "
        "operations, on GPUs that reach <percent> % of 1 PFLOP/s ($10^{15}$). How many GPUs does it take at least?",
        "$6ND$ over what one GPU does in that time, rounded up."),
    hi=("<billions> billion parameters ko <days> days mein <tokens> trillion ($10^{12}$) tokens dekhne hain: $6ND$ "
        "operations, aur har GPU 1 PFLOP/s ($10^{15}$) ka <percent> % paata hai. Kam se kam kitne GPUs chahiye?",
        "$6ND$ ko ek GPU ke utne time ke kaam se divide karo, aur upar round karo."),
    working=r"\left\lceil \frac{6 \cdot <billions> \cdot 10^9 \cdot <tokens> \cdot 10^{12}}{<days> \cdot 86400 \cdot "
            r"<percent>/100 \cdot 10^{15}} \right\rceil")
def gpus_for_a_deadline(billions, tokens, days, percent):
    work, each = FLOPS * billions * 10**9 * tokens * 10**12, days * DAY * percent * 10**13
    return {"value": -(-work // each)}          # rounded up, in whole numbers


@cards.card(
    "number-mfu", lesson=12, source=CHOWDHERY, concepts=("efficiency", "computation"), family="speedup-words", unit="%",
    choices={"billions": (1.5, 7, 13), "gpus": (8, 64, 256), "rate": (3, 4, 5), "peak": (312, 989)},
    usable=lambda billions, gpus, rate, peak: 0.15 < _used(billions, _rate(billions, rate), peak) < 0.65,
    en=("<gpus> GPUs with a peak of <peak> TFLOP/s ($10^{12}$) each train a model of <billions> billion parameters at "
        "<each> tokens a second and GPU. What is the model FLOPs utilisation (MFU) with $6N$ operations a token, in %?",
        "The number of GPUs cancels: what one does for the model in a second, over its peak."),
    hi=("<gpus> GPUs, har ek ka peak <peak> TFLOP/s ($10^{12}$), <billions> billion parameters ka model train karte "
        "hain: har GPU <each> tokens per second. Har token ke $6N$ operations maan kar model FLOPs utilisation (MFU) "
        "kitna hai, % mein?",
        "GPUs ka number kat jaata hai: ek GPU model ke liye ek second mein jo karta hai, uske peak se divide karo."),
    working=r"\frac{6 \cdot <billions> \cdot 10^9 \cdot <each>}{<peak> \cdot 10^{12}} \cdot 100")
def mfu(billions, gpus, rate, peak):
    each = _rate(billions, rate)
    return {"value": 100 * _used(billions, each, peak), "each": each}


@cards.card(
    "number-speedup", lesson=12, source=FORMULA, concepts=("speedup", "communication-overhead"), family="speedup-words",
    choices={"compute": (240, 480, 960), "ranks": (2, 4, 8, 16), "sent": (5, 10, 20, 30, 60)},
    en=("A step computes for <compute> ms on one device. <ranks> devices share the work equally and add <sent> ms of "
        "communication that nothing hides. What is the speedup?",
        "$S = T_c / (T_c/k + T_{comm})$."),
    hi=("Ek step ek device par <compute> ms compute karta hai. <ranks> devices kaam barabar baantte hain, aur <sent> "
        "ms communication judti hai jo kahin nahin chhupti. Speedup kitna hai?",
        "$S = T_c / (T_c/k + T_{comm})$."),
    working=r"\frac{<compute>}{<compute> / <ranks> + <sent>}")
def plain_speedup(compute, ranks, sent):
    return {"value": speedup(compute, ranks, sent)}


@cards.card(
    "number-efficiency", lesson=12, source=FORMULA, concepts=("efficiency", "communication-overhead"),
    family="speedup-words", unit="%",
    choices={"compute": (240, 480, 960), "ranks": (2, 4, 8, 16), "sent": (5, 10, 20, 30, 60)},
    en=("A step computes for <compute> ms on one device. <ranks> devices share the work equally and add <sent> ms of "
        "communication that nothing hides. What is the efficiency, in %?",
        "$E = S/k$: the share of its time in which a device computes."),
    hi=("Ek step ek device par <compute> ms compute karta hai. <ranks> devices kaam barabar baantte hain, aur <sent> "
        "ms communication judti hai jo kahin nahin chhupti. Efficiency kitni hai, % mein?",
        "$E = S/k$: apne time ka jitna hissa device compute karta hai."),
    working=r"\frac{<compute>}{<ranks> \cdot (<compute> / <ranks> + <sent>)} \cdot 100")
def plain_efficiency(compute, ranks, sent):
    return {"value": 100 * efficiency(speedup(compute, ranks, sent), ranks)}


@cards.card(
    "number-speedup-overlap", lesson=12, source=FORMULA, concepts=("speedup", "overlap"), family="speedup-words",
    choices={"compute": (240, 480, 960), "ranks": (4, 8), "sent": (20, 40, 60), "hidden": (10, 15, 30)},
    en=("A step computes for <compute> ms on one device; <ranks> devices share the work equally. Of <sent> ms of "
        "communication, up to <hidden> ms can go on beside computation. What is the speedup?",
        "Only what cannot be hidden counts: <seen> ms."),
    hi=("Ek step ek device par <compute> ms compute karta hai; <ranks> devices kaam barabar baantte hain. <sent> ms "
        "communication mein se <hidden> ms tak computation ke saath chal sakti hai. Speedup kitna hai?",
        "Sirf wo gini jaati hai jo chhup nahin sakti: <seen> ms."),
    working=r"\frac{<compute>}{<compute> / <ranks> + <seen>}")
def speedup_overlap(compute, ranks, sent, hidden):
    return {"value": speedup(compute, ranks, sent, hidden), "seen": max(0, sent - hidden)}


@cards.card(
    "number-communication-from-speedup", lesson=12, source=FORMULA, family="speedup-words", unit="ms",
    concepts=("communication-overhead", "speedup"), usable=lambda compute, ranks, reached: reached < 0.98 * ranks,
    choices={"compute": (280, 560, 840), "ranks": (4, 8, 16), "reached": (2.5, 3.5, 5, 6, 7, 10, 12)},
    en=("On one device a step computes for <compute> ms. <ranks> devices are <reached> times as fast. How many ms of "
        "communication that nothing hides explain that?",
        "$T_{comm} = T_c/S - T_c/k$."),
    hi=("Ek device par step <compute> ms compute karta hai. <ranks> devices <reached> guna tez hain. Kitne ms ki "
        "communication, jo kahin nahin chhupti, isko samjhati hai?",
        "$T_{comm} = T_c/S - T_c/k$."),
    working=r"\frac{<compute>}{<reached>} - \frac{<compute>}{<ranks>}")
def communication_from_speedup(compute, ranks, reached):
    return {"value": communication_for(reached, compute, ranks)}


@cards.card(
    "number-amdahl", lesson=12, source="Amdahl 1967", concepts=("scaling-wall", "speedup"), family="speedup-words",
    choices={"percent": (1, 2, 5, 10, 20), "ranks": (8, 16, 32, 64, 100)},
    en=("<percent> % of a job's time on one device cannot be split; the rest splits over <ranks> devices at no cost. "
        "What is the speedup (Amdahl)?",
        "It can never be more than <limit>, with however many devices."),
    hi=("Ek device par kaam ke time ka <percent> % baanta nahin ja sakta; baaki <ranks> devices mein bina kharch baant "
        "jaata hai. Speedup kitna hai (Amdahl)?",
        "Kitne bhi devices hon, <limit> se zyada kabhi nahin."),
    working=r"\frac{1}{<percent>/100 + (1 - <percent>/100) / <ranks>}")
def amdahls_law(percent, ranks):
    return {"value": amdahl(percent / 100, ranks), "limit": 100 / percent}


@cards.card(
    "number-gustafson", lesson=12, source="Gustafson 1988", concepts=("scaling-wall", "speedup"),
    family="speedup-words",
    choices={"percent": (1, 2, 5, 10, 20), "ranks": (8, 16, 32, 64, 100)},
    en=("On <ranks> devices, <percent> % of the time goes into work that does not split, and the work that does split "
        "has grown with the devices. What is the scaled speedup (Gustafson)?",
        "One device would need the serial share once, and the rest $k$ times."),
    hi=("<ranks> devices par time ka <percent> % us kaam mein jaata hai jo baanta nahin ja sakta, aur baaki kaam "
        "devices ke saath badha hai. Scaled speedup kitna hai (Gustafson)?",
        "Ek device ko serial hissa ek baar aur baaki $k$ baar karna padta."),
    working=r"\frac{<percent>}{100} + \left( 1 - \frac{<percent>}{100} \right) \cdot <ranks>")
def gustafsons_law(percent, ranks):
    return {"value": gustafson(percent / 100, ranks)}


@cards.card(
    "number-weak-scaling", lesson=12, source="Lesson 12, weak scaling", concepts=("efficiency", "scaling-wall"),
    family="speedup-words", unit="%",
    choices={"compute": (120, 240, 400), "ranks": (16, 64, 256), "sent": (10, 40, 80)},
    en=("Weak scaling: each of <ranks> devices does the same <compute> ms of work as one alone, and adds <sent> ms of "
        "communication that nothing hides. What is the efficiency, in %?",
        "A step with the communication is as much slower as the time that it adds; the number of devices cancels."),
    hi=("Weak scaling: <ranks> devices mein har ek utna hi kaam karta hai jitna ek akela, <compute> ms, aur <sent> ms "
        "communication judti hai jo kahin nahin chhupti. Efficiency kitni hai, % mein?",
        "Step utna hi lamba hota hai jitna communication jude; devices ka number kat jaata hai."),
    working=r"\frac{<compute>}{<compute> + <sent>} \cdot 100")
def weak_scaling(compute, ranks, sent):
    return {"value": 100 * efficiency(weak_speedup(compute, ranks, sent), ranks)}


def _rate(billions: float, rate: int) -> int:
    """Tokens a second and GPU: the larger the model, the fewer."""
    return round(rate * 8000 / billions)


def _used(billions: float, each: float, peak: float) -> float:
    return FLOPS * billions * 1e9 * each / (peak * 1e12)
