"""Number cards of lesson 08: what a stage holds, what it sends, and how old its weights are."""

from functools import cache

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import model_states
from disttutor.plans import BUBBLES, SCHEDULES, pipedream, pipeline_step, split_evenly, staleness

cards = NumberCards()

GB = 1e9
MEGATRON = "Narayanan et al. 2021 (arXiv 2104.04473), section 2.2"
PIPEDREAM = "Narayanan et al. 2019, PipeDream (SOSP), sections 3.2 and 3.3"


def _stage_there(ranks: int, stage: int, **_) -> bool:
    return stage < ranks


def _more_than_ranks(ranks: int, microbatches: int, **_) -> bool:
    return microbatches > ranks


@cards.card(
    "number-in-flight-1f1b", lesson=8, source=MEGATRON, concepts=("micro-batches", "memory"), family="schedules",
    usable=_stage_there, choices={"ranks": (4, 6, 8), "stage": range(6), "microbatches": (2, 3, 8, 16, 64)},
    en=("1F1B on <ranks> stages (0 is the first) with <microbatches> micro-batches: of how many micro-batches does "
        "stage <stage> hold activations at most, at one time?",
        "Stage $s$ does $p-1-s$ forwards ahead and then one more before each backward: $\\min(m, p-s)$."),
    hi=("1F1B, <ranks> stages (pehla stage 0 hai), <microbatches> micro-batches: stage <stage> ek time par zyada se "
        "zyada kitne micro-batches ke activations rakhta hai?",
        "Stage $s$ pehle $p-1-s$ forwards karta hai, phir har backward se pehle ek aur: $\\min(m, p-s)$."),
    working=r"\min(<microbatches>, <ranks> - <stage>)")
def in_flight_1f1b(ranks, stage, microbatches):
    return {"value": BUBBLES["1F1B"](ranks, microbatches, 1, 2).in_flight[stage]}


@cards.card(
    "number-in-flight-gpipe", lesson=8, source=MEGATRON, concepts=("micro-batches", "memory"), family="schedules",
    usable=_stage_there, choices={"ranks": (4, 6, 8), "stage": range(6), "microbatches": (2, 3, 8, 16, 64)},
    en=("GPipe on <ranks> stages (0 is the first) with <microbatches> micro-batches: of how many micro-batches does "
        "stage <stage> hold activations at most, at one time?",
        "All forwards come before the first backward, on every stage: $m$."),
    hi=("GPipe, <ranks> stages (pehla stage 0 hai), <microbatches> micro-batches: stage <stage> ek time par zyada se "
        "zyada kitne micro-batches ke activations rakhta hai?",
        "Har stage par saare forwards pehle backward se pehle hote hain: $m$."),
    working="m")
def in_flight_gpipe(ranks, stage, microbatches):
    return {"value": BUBBLES["GPipe"](ranks, microbatches, 1, 2).in_flight[stage]}


@cards.card(
    "number-in-flight-interleaved", lesson=8, source=MEGATRON, concepts=("micro-batches", "memory"),
    family="schedules", choices={"ranks": (2, 4, 8), "stages": (2, 3, 4), "rounds": (2, 4)},
    en=("Interleaved 1F1B on <ranks> ranks, <stages> stages on each, <microbatches> micro-batches: how many "
        "activations does rank 0 hold at most? Count each micro-batch once for each of the rank's stages.",
        "Rank $r$ does $(v-1)p + 2(p-1-r)$ forwards ahead, and one more before its first backward."),
    hi=("Interleaved 1F1B, <ranks> ranks, har ek par <stages> stages, <microbatches> micro-batches: rank 0 zyada se "
        "zyada kitne activations rakhta hai? Har micro-batch ko rank ke har stage ke liye ek baar gino.",
        "Rank $r$ pehle $(v-1)p + 2(p-1-r)$ forwards karta hai, aur pehle backward se pehle ek aur."),
    working=r"(<stages> - 1) \cdot <ranks> + 2 (<ranks> - 1) + 1")
def in_flight_interleaved(ranks, stages, rounds):
    bubble = BUBBLES["interleaved 1F1B"](ranks, rounds * ranks, 1, 2, v=stages)
    return {"value": bubble.in_flight[0], "microbatches": rounds * ranks}


@cards.card(
    "number-1f1b-saves", lesson=8, source=MEGATRON, concepts=("memory", "pipeline-parallelism"), family="schedules",
    unit="GB", usable=_more_than_ranks, section="Scale it",
    choices={"ranks": (4, 6, 8), "microbatches": (8, 16, 32, 64), "size": (0.5, 1, 1.5, 2)},
    en=("A micro-batch's activations take <size> GB on each of <ranks> stages, and there are <microbatches> "
        "micro-batches. How many GB less does the *first* stage hold at its peak with 1F1B than with GPipe?",
        "GPipe holds all $m$ of them, 1F1B on the first stage $p$."),
    hi=("Ek micro-batch ke activations har stage par <size> GB lete hain; <ranks> stages aur <microbatches> "
        "micro-batches hain. *Pehla* stage apne peak par 1F1B mein GPipe se kitne GB kam rakhta hai?",
        "GPipe saare $m$ rakhta hai, 1F1B pehle stage par $p$."),
    working=r"(<microbatches> - <ranks>) \cdot <size>")
def one_f_one_b_saves(ranks, microbatches, size):
    held = [BUBBLES[name](ranks, microbatches, 1, 2).in_flight[0] for name in ("GPipe", "1F1B")]
    return {"value": float((held[0] - held[1]) * size)}


@cards.card(
    "number-pipeline-transfers", lesson=8, source="Lesson 08, eight stages, seven boundaries",
    concepts=("pipeline-parallelism", "communication-overhead"),
    choices={"ranks": (2, 4, 6, 8), "microbatches": (1, 4, 8, 12, 16)},
    en=("A pipeline of <ranks> stages, one on each rank, trains on <microbatches> micro-batches. How many messages "
        "cross the boundaries in one step, forward and backward together?",
        "$p$ stages have $p-1$ boundaries; each micro-batch crosses each of them once forward and once backward."),
    hi=("<ranks> stages ki pipeline, har rank par ek, <microbatches> micro-batches par train karti hai. Ek step mein "
        "boundaries ke paar kul kitne messages jaate hain, forward aur backward dono milakar?",
        "$p$ stages mein $p-1$ boundaries; har micro-batch har boundary ko ek baar forward, ek baar backward paar "
        "karta hai."),
    working=r"2 (<ranks> - 1) \cdot <microbatches>")
@cache
def pipeline_transfers(ranks, microbatches):
    step = pipeline_step(SCHEDULES["1F1B"](ranks, microbatches))
    return {"value": sum(op.kind == "send" for op in step)}


@cards.card(
    "number-stage-layers", lesson=8, source="Lesson 08, layers that do not divide",
    concepts=("pipeline-parallelism", "model-parallelism"), section="Break it",
    usable=lambda layers, ranks: layers % ranks != 0,
    choices={"layers": (10, 14, 22, 26, 34, 50), "ranks": (3, 4, 6, 8)},
    en=("<layers> equal layers are cut into <ranks> stages as evenly as they can be. How many layers has the largest "
        "stage, the one that all others wait for?",
        "Sizes differ by at most one, so the largest is the quotient, rounded up."),
    hi=("<layers> barabar layers ko <ranks> stages mein jitna ho sake barabar kaata. Sabse bade stage mein kitni "
        "layers hain (baaki sab usi ka wait karte hain)?",
        "Sizes mein zyada se zyada ek ka farq hota hai, isliye sabse bada hissa: quotient, upar round kiya hua."),
    working=r"\left\lceil \frac{<layers>}{<ranks>} \right\rceil")
def stage_layers(layers, ranks):
    return {"value": max(split_evenly(layers, ranks))}


@cards.card(
    "number-stage-memory", lesson=8, source="Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 3.1",
    concepts=("pipeline-parallelism", "memory"), family="memory-parts", unit="GB",
    choices={"billions": (13, 20, 30, 66, 175), "ranks": (4, 8, 16)},
    en=("A model of <billions> billion parameters is cut into <ranks> equal stages and trained with Adam in mixed "
        "precision (16-bit weights and gradients, float32 state). How many GB ($10^9$ bytes) of weights, gradients "
        "and optimizer state lie on each GPU?",
        "16 bytes a parameter, of which the weights in 16 bits are only 2: <weights> GB. Activations come on top."),
    hi=("<billions> billion parameters ka model <ranks> barabar stages mein kata hai, mixed precision mein Adam ke "
        "saath (16-bit weights aur gradients, float32 state). Har GPU par weights, gradients aur optimizer state ke "
        "kitne GB ($10^9$ bytes) hain?",
        "Har parameter ke 16 bytes; 16-bit weights usmein sirf 2 hain: <weights> GB. Activations alag se."),
    working=r"\frac{<billions> \cdot 16}{<ranks>}")
def stage_memory(billions, ranks):
    held = model_states(billions * GB, pipeline=ranks)
    return {"value": held.total / GB, "weights": held.weights / GB}


@cards.card(
    "number-staleness", lesson=8, source=PIPEDREAM, concepts=("asynchronous", "pipeline-parallelism"),
    family="sync-async", section="Break it", usable=_stage_there, choices={"ranks": (3, 4, 6, 8), "stage": range(7)},
    en=("PipeDream with <ranks> stages (0 is the first), the pipeline full: how many updates of its own weights does "
        "stage <stage> make between a mini-batch's forward and its backward?",
        "So many mini-batches are in flight ahead of this one, and each updates once: $p-1-s$."),
    hi=("PipeDream, <ranks> stages (pehla stage 0 hai), pipeline bhari hui: ek mini-batch ke forward aur backward ke "
        "beech stage <stage> apne weights ko kitni baar update karta hai?",
        "Is mini-batch se aage itne mini-batches raaste mein hain, har ek ek update karta hai: $p-1-s$."),
    working="<ranks> - 1 - <stage>")
@cache         # a plan is long, and the questions are few
def pipedream_staleness(ranks, stage):
    late = ranks            # a mini-batch that meets a full pipeline
    return {"value": staleness(pipedream(ranks, 2 * ranks))[stage, late]}


@cards.card(
    "number-weight-versions", lesson=8, source=PIPEDREAM, concepts=("asynchronous", "memory"), family="sync-async",
    section="Break it", usable=_stage_there, choices={"ranks": (3, 4, 6, 8), "stage": range(7)},
    en=("PipeDream with weight stashing, <ranks> stages (0 is the first), the pipeline full: how many versions of its "
        "weights does stage <stage> keep, with the newest?",
        "One for each mini-batch that is in flight on this stage: $p-s$."),
    hi=("PipeDream weight stashing ke saath, <ranks> stages (pehla stage 0 hai), pipeline bhari hui: stage <stage> "
        "apne weights ke kitne versions rakhta hai, sabse naya milakar?",
        "Is stage par jitne mini-batches raaste mein hain, har ek ke liye ek: $p-s$."),
    working="<ranks> - <stage>")
def weight_versions(ranks, stage):
    return {"value": BUBBLES["1F1B"](ranks, 3 * ranks, 1, 2).in_flight[stage]}
