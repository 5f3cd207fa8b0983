"""Number cards about memory: model states of one device (lessons 01, 15, 16) and activations (lesson 09)."""

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import ADAM, MIXED_ADAM, MOMENTUM_SGD, SGD, model_states

cards = NumberCards()

GB = 1e9
ZERO_PAPER = "Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 3.1"
KORTHIKANTI = "Korthikanti et al. 2022 (arXiv 2205.05198), table 2"
CHEN = "Chen et al. 2016 (arXiv 1604.06174), section 4"
BILLIONS = (1.5, 3, 7, 7.5, 13, 30, 70)
# What keeps how many bytes of a parameter: weight, gradient, optimizer.
PLAIN = {"SGD": (SGD, "4 + 4"), "SGD with momentum": (MOMENTUM_SGD, "4 + 4 + 4"), "Adam": (ADAM, "4 + 4 + 8")}
# Models of Korthikanti et al., table 3: width, attention heads.
WIDTHS = {6144: 64, 12288: 96, 20480: 128}


@cards.card(
    "number-training-memory", lesson=1, source=ZERO_PAPER, concepts=("memory", "optimizers"), family="memory-parts",
    unit="GB", choices={"billions": BILLIONS},
    en=("A model of <billions> billion parameters trains on one device with Adam in mixed precision: weights and "
        "gradients in 16 bits, the optimizer in float32. How many GB ($10^9$ bytes) take weights, gradients and "
        "optimizer state together?",
        "Two bytes each for weight and gradient, and 12 for the float32 weight and Adam's two moments: 16 a "
        "parameter."),
    hi=("<billions> billion parameters ka model ek device par Adam se mixed precision mein train hota hai: weights "
        "aur gradients 16 bits mein, optimizer float32 mein. Weights, gradients aur optimizer state milakar kitne GB "
        "($10^9$ bytes) lete hain?",
        "Weight aur gradient ke do-do bytes, aur float32 weight aur Adam ke do moments ke 12: har parameter ke 16."),
    working=r"<billions> \cdot (2 + 2 + 12)")
def training_memory(billions):
    return {"value": model_states(billions * GB).total / GB}


@cards.card(
    "number-optimizer-memory", lesson=1, source=ZERO_PAPER, concepts=("memory", "optimizers"), family="memory-parts",
    unit="GB", choices={"billions": BILLIONS},
    en=("A model of <billions> billion parameters trains with Adam in mixed precision. How many GB ($10^9$ bytes) of "
        "it are optimizer state, with the float32 copy of the weights?",
        "Three numbers of 4 bytes: the copy, and Adam's two moments."),
    hi=("<billions> billion parameters ka model Adam se mixed precision mein train hota hai. Ismein optimizer state "
        "kitne GB ($10^9$ bytes) hai, weights ki float32 copy milakar?",
        "4-4 bytes ke teen numbers: wo copy, aur Adam ke do moments."),
    working=r"<billions> \cdot 12")
def optimizer_memory(billions):
    return {"value": model_states(billions * GB).optimizer / GB}


@cards.card(
    "number-plain-memory", lesson=1, source="Kingma and Ba 2015, Adam (arXiv 1412.6980), algorithm 1",
    concepts=("memory", "optimizers"), family="memory-parts", unit="GB",
    choices={"optimizer": tuple(PLAIN), "billions": (0.5, 1.5, 3, 7)},
    en=("A model of <billions> billion parameters trains with <optimizer>, everything in float32. How many GB ($10^9$ "
        "bytes) take weights, gradients and optimizer state together?",
        "Four bytes each: weight, gradient, and what the optimizer remembers (SGD nothing, momentum one number, Adam "
        "two)."),
    hi=("<billions> billion parameters ka model <optimizer> se train hota hai, sab kuch float32 mein. Weights, "
        "gradients aur optimizer state milakar kitne GB ($10^9$ bytes) lete hain?",
        "Char-char bytes: weight, gradient, aur jo optimizer yaad rakhta hai (SGD kuch nahin, momentum ek number, Adam "
        "do)."),
    working=r"<billions> \cdot (<each>)")
def plain_memory(optimizer, billions):
    recipe, each = PLAIN[optimizer]
    return {"value": model_states(billions * GB, recipe).total / GB, "each": each}


@cards.card(
    "number-checkpointing-cannot-help", lesson=16, source=ZERO_PAPER, concepts=("activation-checkpointing", "memory"),
    family="memory-parts", unit="GB", section="Break it",
    choices={"billions": (10, 13, 20, 30), "capacity": (24, 40, 80)},
    en=("Activation checkpointing at its best: suppose activations take nothing at all. <billions> billion parameters, "
        "Adam in mixed precision (16 bytes each), one GPU of <capacity> GB: how many GB are missing?",
        "Checkpointing touches only activations; the model states stay at 16 bytes a parameter."),
    hi=("Activation checkpointing sabse achhi tarah: maan lo activations kuch bhi memory nahin lete. <billions> "
        "billion parameters, Adam mixed precision mein (16 bytes har ek ke), <capacity> GB ka ek GPU: kitne GB kam "
        "padte hain?",
        "Checkpointing sirf activations ko chhooti hai; model states har parameter ke 16 bytes hi rehte hain."),
    working=r"<billions> \cdot 16 - <capacity>")
def checkpointing_cannot_help(billions, capacity):
    return {"value": model_states(billions * GB, MIXED_ADAM).total / GB - capacity}


@cards.card(
    "number-fsdp-memory", lesson=15, source="Zhao et al. 2023, PyTorch FSDP (arXiv 2304.11277)",
    concepts=("frameworks", "zero"), family="zero-stages", unit="GB",
    choices={"billions": (1.5, 3, 7, 13), "ranks": (4, 8, 16, 64)},
    en=("PyTorch's FSDP shards a model of <billions> billion parameters fully over <ranks> ranks: weights, gradients "
        "and Adam's two moments, all in float32. How many GB ($10^9$ bytes) does each rank hold just before an update?",
        "Full sharding is ZeRO stage 3: each rank holds one of $n$ parts of everything."),
    hi=("PyTorch ka FSDP <billions> billion parameters ke model ko <ranks> ranks par poora shard karta hai: weights, "
        "gradients aur Adam ke do moments, sab float32 mein. Update se theek pehle har rank kitne GB ($10^9$ bytes) "
        "rakhta hai?",
        "Poori sharding matlab ZeRO stage 3: har rank har cheez ka $n$ mein se ek hissa rakhta hai."),
    working=r"\frac{<billions> \cdot (4 + 4 + 8)}{<ranks>}")
def fsdp_memory(billions, ranks):
    return {"value": model_states(billions * GB, ADAM, data=ranks, zero=3).total / GB}


@cards.card(
    "number-layer-activations", lesson=9, source=KORTHIKANTI, concepts=("activation-checkpointing", "transformers"),
    family="memory-parts", unit="GB",
    choices={"width": tuple(WIDTHS), "tokens": (1024, 2048, 4096), "samples": (1, 2, 4)},
    en=("A transformer layer in 16 bits keeps $s b h (34 + 5 a s / h)$ bytes for backward. How many GB ($10^9$ bytes) "
        "are that for $s =$ <tokens> tokens, $b =$ <samples>, $h =$ <width> and $a =$ <heads> heads?",
        "34 bytes an element of the activations, and <square> more for the attention's $s \\times s$ scores."),
    hi=("16-bit transformer layer backward ke liye $s b h (34 + 5 a s / h)$ bytes rakhti hai. $s =$ <tokens> tokens, "
        "$b =$ <samples>, $h =$ <width> aur $a =$ <heads> heads ho to kitne GB ($10^9$ bytes)?",
        "Activations ke har element ke 34 bytes, aur attention ke $s \\times s$ scores ke <square> aur."),
    working=r"<tokens> \cdot <samples> \cdot <width> \cdot \left( 34 + \frac{5 \cdot <heads> \cdot <tokens>}{<width>} "
            r"\right) \cdot 10^{-9}")
def layer_activations(width, tokens, samples):
    square = 5 * WIDTHS[width] * tokens / width
    return {"value": tokens * samples * width * (34 + square) / GB, "heads": WIDTHS[width], "square": square}


@cards.card(
    "number-full-recompute", lesson=9, source=KORTHIKANTI, concepts=("activation-checkpointing", "transformers"),
    unit="GB", choices={"width": (4096, 6144, 12288), "tokens": (2048, 4096), "samples": (1, 2, 4),
                        "layers": (32, 48, 96)},
    en=("With full recomputation a transformer of <layers> layers keeps only each layer's input: $s =$ <tokens> "
        "tokens, $b =$ <samples>, $h =$ <width>, 2 bytes an element. How many GB ($10^9$ bytes) are kept?",
        "$2 s b h$ bytes a layer. While one layer is computed again, its own activations come on top."),
    hi=("Full recomputation mein <layers> layers ka transformer har layer ka sirf input rakhta hai: $s =$ <tokens> "
        "tokens, $b =$ <samples>, $h =$ <width>, har element 2 bytes. Kitne GB ($10^9$ bytes) rakhe jaate hain?",
        "Har layer ke $2 s b h$ bytes. Jab ek layer dobara compute hoti hai, uske apne activations upar se."),
    working=r"2 \cdot <tokens> \cdot <samples> \cdot <width> \cdot <layers> \cdot 10^{-9}")
def full_recompute(width, tokens, samples, layers):
    return {"value": 2 * tokens * samples * width * layers / GB}


@cards.card(
    "number-checkpoint-segments", lesson=9, source=CHEN, concepts=("activation-checkpointing",),
    choices={"layers": (16, 25, 36, 64, 100, 144)},
    en=("<layers> equal layers; each keeps one unit of memory, and so does a checkpoint. One checkpoint opens each "
        "segment, and backward brings back one segment at a time. With the best length of a segment, how many units "
        "are held at the peak: all checkpoints, and the layers of one segment?",
        "$n/s + s$ is least at $s = \\sqrt{n}$."),
    hi=("<layers> barabar layers; har layer ek unit memory rakhti hai, aur har checkpoint bhi. Har segment ke shuru "
        "mein ek checkpoint hai, aur backward ek time par ek segment wapas laata hai. Segment ki sabse achhi lambai "
        "par peak mein kitne units hain: saare checkpoints, aur ek segment ki layers?",
        "$n/s + s$ sabse chhota $s = \\sqrt{n}$ par hota hai."),
    working=r"2 \sqrt{<layers>}")
def checkpoint_segments(layers):
    return {"value": min(layers // size + size for size in range(1, layers + 1) if layers % size == 0)}


@cards.card(
    "number-recompute-time", lesson=9, source=CHEN, concepts=("activation-checkpointing", "computation"),
    unit="ms", choices={"time": (120, 150, 240, 300, 360, 450)},
    en=("A step computes for <time> ms, and backward takes twice as long as forward. How many ms does it compute when "
        "every layer is recomputed once (full activation checkpointing)?",
        "Forward is a third of the step, and is done once more: 4/3 of the time."),
    hi=("Ek step <time> ms compute karta hai, aur backward forward se do guna time leta hai. Agar har layer ek baar "
        "dobara compute ho (full activation checkpointing), to step kitne ms compute karta hai?",
        "Forward step ka ek tihaai hai, aur wo ek baar aur hota hai: time ka 4/3."),
    working=r"\frac{4}{3} \cdot <time>")
def recompute_time(time):
    return {"value": time + time / 3}
