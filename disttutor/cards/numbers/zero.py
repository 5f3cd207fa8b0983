"""Number cards of lessons 06, 10 and 13: model states with ZeRO, what it sends, and how many GPUs it takes."""

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import fewest_devices, model_states, terms

cards = NumberCards()

GB = 1e9
ZERO_PAPER = "Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), figure 1 and table 1"
SIZES = {"billions": (1.5, 7.5, 13, 30, 128), "ranks": (4, 8, 16, 64)}
QUESTION = ("ZeRO stage {stage} over <ranks> data-parallel ranks, <billions> billion parameters, Adam in mixed "
            "precision (16 bytes each): how many GB ($10^9$ bytes) of model states does each rank hold?")
SAWAAL = ("ZeRO stage {stage}, <ranks> data-parallel ranks, <billions> billion parameters, Adam mixed precision "
          "mein (har ek ke 16 bytes): har rank model states ke kitne GB ($10^9$ bytes) rakhta hai?")


def _held(billions: float, ranks: int, zero: int) -> float:
    return model_states(billions * GB, data=ranks, zero=zero).total / GB


@cards.card(
    "number-zero-1", lesson=6, source=ZERO_PAPER, concepts=("zero", "memory"), family="zero-stages", unit="GB",
    choices=SIZES, working=r"<billions> \cdot \left( 2 + 2 + \frac{12}{<ranks>} \right)",
    en=(QUESTION.format(stage=1), "Stage 1 shards the optimizer state alone, the 12 of the 16 bytes."),
    hi=(SAWAAL.format(stage=1), "Stage 1 sirf optimizer state ko baantta hai, 16 bytes mein se 12."))
def zero_1(billions, ranks):
    return {"value": _held(billions, ranks, 1)}


@cards.card(
    "number-zero-2", lesson=6, source=ZERO_PAPER, concepts=("zero", "memory"), family="zero-stages", unit="GB",
    choices=SIZES, working=r"<billions> \cdot \left( 2 + \frac{2 + 12}{<ranks>} \right)",
    en=(QUESTION.format(stage=2), "Stage 2 shards the gradients too; only the weights in 16 bits stay whole."),
    hi=(SAWAAL.format(stage=2), "Stage 2 gradients ko bhi baantta hai; sirf 16-bit weights poore rehte hain."))
def zero_2(billions, ranks):
    return {"value": _held(billions, ranks, 2)}


@cards.card(
    "number-zero-3", lesson=6, source=ZERO_PAPER, concepts=("zero", "memory"), family="zero-stages", unit="GB",
    choices=SIZES, working=r"<billions> \cdot \frac{2 + 2 + 12}{<ranks>}",
    en=(QUESTION.format(stage=3), "Stage 3 shards everything; a layer's weights are gathered while they are used, "
        "which is not counted here."),
    hi=(SAWAAL.format(stage=3), "Stage 3 sab kuch baantta hai; layer ke weights kaam ke time ikatthe hote hain, wo "
        "yahan nahin gina."))
def zero_3(billions, ranks):
    return {"value": _held(billions, ranks, 3)}


@cards.card(
    "number-zero-traffic", lesson=6, source="Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 7", unit="GB",
    concepts=("zero", "communication-overhead"), family="zero-stages",
    choices={"stage": (1, 2, 3), "billions": (1.5, 3, 7.5, 13), "ranks": (4, 8, 16)},
    en=("ZeRO stage <stage> on <ranks> ranks, <billions> billion parameters; weights and gradients travel in 2 "
        "bytes, by rings. How many GB ($10^9$ bytes) does each rank send in a step?",
        "Gradients are reduce-scattered, weights all-gathered: once with stages 1 and 2, twice (forward and backward) "
        "with stage 3. Each of these sends $\\frac{n-1}{n}$ of the array."),
    hi=("ZeRO stage <stage>, <ranks> ranks, <billions> billion parameters; weights aur gradients 2 bytes mein rings se "
        "jaate hain. Har rank ek step mein kitne GB ($10^9$ bytes) bhejta hai?",
        "Gradients ka reduce-scatter hota hai, weights ka all-gather: stage 1 aur 2 mein ek baar, stage 3 mein do baar "
        "(forward aur backward). Har ek array ka $\\frac{n-1}{n}$ bhejta hai."),
    working=r"<times> \cdot \frac{<ranks> - 1}{<ranks>} \cdot 2 \cdot <billions>")
def zero_traffic(stage, billions, ranks):
    gathers = 2 if stage == 3 else 1
    arrays = terms("reduce_scatter", "ring", ranks).arrays + gathers * terms("all_gather", "ring", ranks).arrays
    return {"value": arrays * 2 * billions, "times": 1 + gathers}


@cards.card(
    "number-fewest-gpus", lesson=13, source=ZERO_PAPER, concepts=("zero", "choosing", "memory"), family="zero-stages",
    usable=lambda billions, capacity: billions * 16 > 2 * capacity,
    choices={"billions": (7, 13, 30, 70, 175), "capacity": (24, 40, 80, 141)},
    en=("ZeRO stage 3, <billions> billion parameters, Adam in mixed precision (16 bytes each), GPUs of <capacity> GB "
        "($10^9$ bytes). What is the smallest number of GPUs that holds the model states, with nothing left for "
        "activations?",
        "16 bytes a parameter are <total> GB, and the last GPU may be partly empty."),
    hi=("ZeRO stage 3, <billions> billion parameters, Adam mixed precision mein (har ek ke 16 bytes), <capacity> GB "
        "($10^9$ bytes) ke GPUs. Kam se kam kitne GPUs mein model states aate hain, jab activations ke liye kuch na "
        "bache?",
        "Har parameter ke 16 bytes: <total> GB, aur aakhri GPU thoda khaali reh sakta hai."),
    working=r"\left\lceil \frac{<billions> \cdot 16}{<capacity>} \right\rceil")
def fewest_gpus(billions, capacity):
    return {"value": fewest_devices(billions * GB, capacity * GB), "total": billions * 16}


@cards.card(
    "number-hybrid-zero-1", lesson=10, source="ZeRO (arXiv 1910.02054), table 1, with model-parallel ranks beside it",
    concepts=("hybrid-parallelism", "zero", "memory"), family="zero-stages", unit="GB", section="Break it",
    choices={"billions": (40, 60, 100, 200), "model": (4, 8, 16), "data": (4, 8, 16)},
    en=("<billions> billion parameters, <model>-way model-parallel times <data>-way data-parallel, Adam in mixed "
        "precision (2 + 2 + 12 bytes), ZeRO stage 1 over the replicas. How many GB ($10^9$ bytes) of model states "
        "does each GPU hold? (Plain replicas would hold <plain> GB.)",
        "Of its share of <share> billion parameters a GPU keeps weights and gradients whole, and its part of the "
        "optimizer state."),
    hi=("<billions> billion parameters, <model>-way model-parallel aur <data>-way data-parallel, Adam mixed precision "
        "mein (2 + 2 + 12 bytes), replicas par ZeRO stage 1. Har GPU model states ke kitne GB ($10^9$ bytes) rakhta "
        "hai? (Seedhe replicas mein <plain> GB hote.)",
        "Apne <share> billion parameters ke weights aur gradients poore, aur optimizer state ka sirf apna hissa."),
    working=r"\frac{<billions>}{<model>} \cdot \left( 2 + 2 + \frac{12}{<data>} \right)")
def hybrid_zero_1(billions, model, data):
    held = model_states(billions * GB, tensor=model, data=data, zero=1)
    plain = model_states(billions * GB, tensor=model, data=data)
    return {"value": held.total / GB, "plain": plain.total / GB, "share": billions / model}
