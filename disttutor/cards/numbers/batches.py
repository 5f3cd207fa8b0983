"""Number cards of lessons 03 and 04: how a batch is dealt out, what it is divided by, and what its size changes."""

from math import prod

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import terms
from disttutor.plans import split_evenly

cards = NumberCards()

GOYAL = "Goyal et al. 2017 (arXiv 1706.02677), section 2.1"


def _uneven(samples: int, ranks: int, **_) -> bool:
    return samples % ranks != 0


def _apart(one: int, other: int, first: float, second: float) -> bool:
    return one != other and first != second


@cards.card(
    "number-uneven-share", lesson=3, source="Lesson 03, uneven shares", concepts=("data-parallelism", "batch-size"),
    family="batch-words", usable=_uneven,
    choices={"samples": (10, 18, 30, 50, 70, 100), "ranks": (3, 4, 6, 8)},
    en=("A batch of <samples> samples is dealt out to <ranks> ranks as evenly as it can be. How many samples has the "
        "rank with the most?",
        "The shares are <shares>: they differ by at most one."),
    hi=("<samples> samples ka batch <ranks> ranks mein jitna ho sake barabar baanta gaya. Jis rank ke paas sabse zyada "
        "hain, uske paas kitne samples hain?",
        "Shares hain <shares>: unmein zyada se zyada ek ka farq hai."),
    working=r"\left\lceil \frac{<samples>}{<ranks>} \right\rceil")
def uneven_share(samples, ranks):
    shares = split_evenly(samples, ranks)
    return {"value": max(shares), "shares": shares}


@cards.card(
    "number-share-weight", lesson=3, source="The mean over a batch, by its shares", section="Break it",
    concepts=("data-parallelism",), family="batch-words", usable=_uneven,
    choices={"samples": (10, 18, 30, 50), "ranks": (3, 4, 6, 8)},
    en=("A batch of <samples> samples lies on <ranks> ranks as <shares>. Each rank has the mean gradient of its own "
        "share. With what weight does rank 0's mean go into the gradient of the whole batch?",
        "The weight is $|B_i|/b$, not $1/k$: every sample counts the same."),
    hi=("<samples> samples ka batch <ranks> ranks par aise hai: <shares>. Har rank ke paas apne share ka mean gradient "
        "hai. Poore batch ke gradient mein rank 0 ka mean kis weight se jaata hai?",
        "Weight hai $|B_i|/b$, na ki $1/k$: har sample utna hi gina jaata hai."),
    working=r"\frac{<own>}{<samples>}")
def share_weight(samples, ranks):
    shares = split_evenly(samples, ranks)
    return {"value": shares[0] / sum(shares), "own": shares[0], "shares": shares}


@cards.card(
    "number-mean-of-shares", lesson=3, source="The mean over a batch, by its shares", section="Break it",
    concepts=("data-parallelism",), family="batch-words", usable=_apart,
    choices={"one": (2, 4, 6, 8), "other": (2, 3, 5, 12), "first": (0.2, 0.6, 1.2), "second": (0.4, 0.9, 2.4)},
    en=("Rank 0 has <one> samples, and the mean of some gradient over them is <first>. Rank 1 has <other> samples, and "
        "its mean is <second>. What is the gradient of the loss that is the mean over all samples?",
        "Means are weighted by their samples."),
    hi=("Rank 0 ke paas <one> samples hain, aur un par kisi gradient ka mean <first> hai. Rank 1 ke paas <other> "
        "samples hain, uska mean <second>. Loss saare samples ka mean ho to gradient kitna hai?",
        "Har mean ka weight uske samples hain."),
    working=r"\frac{<one> \cdot <first> + <other> \cdot <second>}{<one> + <other>}")
def mean_of_shares(one, other, first, second):
    return {"value": (one * first + other * second) / (one + other)}


@cards.card(
    "number-mean-of-means-error", lesson=4, source="Lesson 04, the wrong divisor", section="Break it",
    concepts=("gradient-accumulation",), family="batch-words", usable=lambda one, other, **_: one > other,
    choices={"one": (600, 800, 900), "other": (100, 200, 400), "first": (1, 2), "second": (3, 4, 5)},
    en=("Two micro-batches of text: one has <one> tokens and a mean loss of <first> a token, the other <other> tokens "
        "and a mean of <second>. By how much is the mean of the two means too high, against the mean over all tokens?",
        "The mean of means gives a short text as much weight as a long one: <wrong> instead of <right>."),
    hi=("Text ke do micro-batches: ek mein <one> tokens, mean loss <first> per token; doosre mein <other> tokens, mean "
        "<second>. Dono means ka mean, saare tokens ke mean se kitna zyada aata hai?",
        "Means ka mean chhote text ko bhi lambe jitna weight deta hai: <right> ki jagah <wrong>."),
    working=r"\frac{<first> + <second>}{2} - \frac{<one> \cdot <first> + <other> \cdot <second>}{<one> + <other>}")
def mean_of_means_error(one, other, first, second):
    wrong, right = (first + second) / 2, (one * first + other * second) / (one + other)
    return {"value": wrong - right, "wrong": wrong, "right": right}


@cards.card(
    "number-global-batch", lesson=4, source="Lesson 04, which batch is it?", concepts=("batch-size",),
    family="batch-words",
    choices={"own": (4, 8, 16, 32), "ranks": (4, 8, 16, 64), "accumulate": (2, 4, 8)},
    en=("Each of <ranks> data-parallel ranks brings micro-batches of <own> samples and accumulates <accumulate> of "
        "them before each update. How many samples does one update see?",
        "Micro-batch, times ranks, times accumulated micro-batches."),
    hi=("<ranks> data-parallel ranks; har ek <own> samples ke micro-batches laata hai aur har update se pehle "
        "<accumulate> accumulate karta hai. Ek update kitne samples dekhta hai?",
        "Micro-batch, guna ranks, guna accumulate kiye hue micro-batches."),
    working=r"<own> \cdot <ranks> \cdot <accumulate>")
def global_batch(own, ranks, accumulate):
    return {"value": prod((own, ranks, accumulate))}


@cards.card(
    "number-accumulation-steps", lesson=4, source="Lesson 04, which batch is it?",
    concepts=("gradient-accumulation", "batch-size"), family="batch-words",
    choices={"own": (2, 4, 8), "ranks": (4, 8, 16), "steps": (2, 4, 8, 16, 32)},
    en=("An update is to see <batch> samples. <ranks> data-parallel ranks can hold <own> samples each at one time. How "
        "many micro-batches does each rank accumulate before an update?",
        "Batch over ranks, over the samples of a micro-batch."),
    hi=("Ek update ko <batch> samples dekhne hain. <ranks> data-parallel ranks hain, har ek ek time par <own> samples "
        "rakh sakta hai. Har rank update se pehle kitne micro-batches accumulate karta hai?",
        "Batch ko ranks se, phir micro-batch ke samples se divide karo."),
    working=r"\frac{<batch>}{<ranks> \cdot <own>}")
def accumulation_steps(own, ranks, steps):
    batch = own * ranks * steps
    return {"value": batch // (ranks * own), "batch": batch}


@cards.card(
    "number-accumulation-divisor", lesson=4, source="Lesson 04, the wrong divisor", section="Break it",
    concepts=("gradient-accumulation",), family="batch-words",
    choices={"own": (2, 4, 8, 16), "ranks": (2, 4, 8), "accumulate": (2, 4, 8)},
    en=("<ranks> ranks accumulate <accumulate> micro-batches of <own> samples each; the loss of a micro-batch is the "
        "*mean* over its samples. The all-reduce *adds up* all ranks' gradients. By which number must the result be "
        "divided to be the gradient of the mean over all samples?",
        "It is a sum of as many means of equal size as there are micro-batches on all ranks; within a micro-batch it "
        "is divided already."),
    hi=("<ranks> ranks, har ek <own> samples ke <accumulate> micro-batches accumulate karta hai; micro-batch ka loss "
        "uske samples ka *mean* hai. All-reduce sabhi ranks ke gradients ka *sum* karta hai. Sum ko kis number se "
        "divide karein, taaki saare samples ke mean ka gradient mile?",
        "Ye barabar size ke utne means ka sum hai jitne sabhi ranks par micro-batches hain; micro-batch ke andar "
        "divide ho chuka hai."),
    working=r"<ranks> \cdot <accumulate>")
def accumulation_divisor(own, ranks, accumulate):
    return {"value": ranks * accumulate}


@cards.card(
    "number-accumulation-traffic", lesson=4, source="Lesson 04, exchange only once", unit="GB",
    concepts=("gradient-accumulation", "communication-overhead"), section="Scale it",
    choices={"ranks": (4, 5, 8, 10), "accumulate": (2, 4, 8), "size": (0.5, 1, 2, 4)},
    en=("<ranks> ranks accumulate <accumulate> micro-batches and exchange <size> GB of gradients by a ring all-reduce. "
        "How many GB does each rank save for one update, by exchanging only once and not after each micro-batch?",
        "A ring all-reduce of $S$ sends $2\\frac{n-1}{n} S$ from each rank; all but one are saved."),
    hi=("<ranks> ranks, <accumulate> micro-batches accumulate hote hain, aur <size> GB gradients ring all-reduce se "
        "jaate hain. Har micro-batch ke baad nahin, sirf ek baar exchange karne se har rank ek update mein kitne GB "
        "bachata hai?",
        "$S$ ka ring all-reduce har rank se $2\\frac{n-1}{n} S$ bhejta hai; ek ko chhodkar baaki sab bach jaate hain."),
    working=r"(<accumulate> - 1) \cdot 2 \cdot \frac{<ranks> - 1}{<ranks>} \cdot <size>")
def accumulation_traffic(ranks, accumulate, size):
    return {"value": (accumulate - 1) * terms("all_reduce", "ring", ranks).arrays * size}


@cards.card(
    "number-learning-rate", lesson=4, source=GOYAL, concepts=("batch-size", "optimizers"), family="batch-words",
    choices={"rate": (0.05, 0.1, 0.2), "batch": (64, 128, 256), "times": (4, 8, 16, 32)},
    en=("SGD trains well with a learning rate of <rate> at a batch of <batch>. What learning rate does the linear "
        "scaling rule give for a batch of <larger>?",
        "As many times the learning rate as the batch; it needs a warm-up, and ends somewhere: it is no law."),
    hi=("SGD learning rate <rate> aur batch <batch> par achha train karta hai. Linear scaling rule batch <larger> ke "
        "liye kaunsa learning rate deta hai?",
        "Batch jitna guna, learning rate utna guna; warm-up chahiye, aur kahin ye ruk jaata hai: ye law nahin hai."),
    working=r"<rate> \cdot \frac{<larger>}{<batch>}")
def learning_rate(rate, batch, times):
    return {"value": float(rate * times), "larger": batch * times}


@cards.card(
    "number-updates-per-epoch", lesson=4, source="Lesson 04, what a larger batch changes", section="Scale it",
    concepts=("batch-size", "optimizers"), family="batch-words",
    choices={"updates": (25, 50, 125, 250), "own": (16, 32, 64), "ranks": (4, 8, 16)},
    en=("A data set has <samples> samples. <ranks> data-parallel ranks bring <own> each to every update. How many "
        "updates does one pass over the data make?",
        "Samples over the global batch; one rank alone would make <alone> updates."),
    hi=("Data set mein <samples> samples hain. <ranks> data-parallel ranks mein har ek har update ke liye "
        "<own> samples laata hai. Poore data par ek baar jaane mein kitne updates hote hain?",
        "Samples ko global batch se divide karo; akela ek rank <alone> updates karta."),
    working=r"\frac{<samples>}{<own> \cdot <ranks>}")
def updates_per_epoch(updates, own, ranks):
    samples = updates * own * ranks
    return {"value": samples // (own * ranks), "samples": samples, "alone": samples // own}
