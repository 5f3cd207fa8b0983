"""Number cards of lessons 03 and 05: what ranks exchange, what backward hides of it, and who waits for whom."""

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.cost import exposed, terms
from disttutor.plans import Gradient, make_buckets

cards = NumberCards()

MB = 10**6
LI = "Li et al. 2020, PyTorch Distributed (arXiv 2006.15704), section 3.2"


@cards.card(
    "number-data-parallel-bytes", lesson=3, source=LI, unit="MB", concepts=("data-parallelism", "ring-all-reduce"),
    choices={"millions": (25, 60, 110, 350), "width": (2, 4), "ranks": (4, 5, 8, 10, 16)},
    en=("A model of <millions> million parameters trains data-parallel on <ranks> ranks; its gradients have <width> "
        "bytes each, and go round by a ring all-reduce. How many MB ($10^6$ bytes) does each rank send in a step?",
        "The gradients are <size> MB, and a ring sends $2(n-1)/n$ of them from each rank."),
    hi=("<millions> million parameters ka model <ranks> ranks par data-parallel train hota hai; har gradient <width> "
        "bytes ka hai, aur ring all-reduce se jaata hai. Har rank ek step mein kitne MB ($10^6$ bytes) bhejta hai?",
        "Gradients <size> MB hain, aur ring har rank se unka $2(n-1)/n$ bhejta hai."),
    working=r"2 \cdot \frac{<ranks> - 1}{<ranks>} \cdot <millions> \cdot <width>")
def data_parallel_bytes(millions, width, ranks):
    size = millions * width
    return {"value": terms("all_reduce", "ring", ranks).arrays * size, "size": size}


@cards.card(
    "number-buckets", lesson=3, source=LI, concepts=("data-parallelism", "overlap"),
    usable=lambda layers, size, limit: 2 * size <= limit,
    choices={"layers": (10, 12, 15, 20, 24), "size": (4, 6, 8, 10), "limit": (10, 20, 25, 30)},
    en=("Backward yields <layers> gradients of <size> MB each. A bucket closes before the gradient that would lift it "
        "over <limit> MB. How many buckets are exchanged?",
        "<whole> gradients fit into a bucket."),
    hi=("Backward <layers> gradients deta hai, har ek <size> MB ka. Bucket us gradient se pehle band hota hai jo use "
        "<limit> MB se upar le jaata. Kitne buckets exchange hote hain?",
        "Ek bucket mein <whole> gradients aate hain."),
    working=r"\left\lceil \frac{<layers>}{<whole>} \right\rceil")
def buckets(layers, size, limit):
    gradients = [Gradient(f"layer {i}", size * MB // 4) for i in range(layers)]
    made = make_buckets(gradients, limit * MB)
    return {"value": len(made), "whole": len(made[0])}


@cards.card(
    "number-hidden-by-backward", lesson=3, source=LI, concepts=("overlap", "communication-overhead"), unit="ms",
    usable=lambda backward, buckets, each: each * buckets >= backward,
    choices={"backward": (40, 60, 80, 120), "buckets": (4, 5, 8), "each": (12, 18, 25, 32)},
    en=("Backward lasts <backward> ms and fills <buckets> buckets at even distances, the last one at its very end. "
        "The all-reduce of a bucket takes <each> ms; they go one after the other, beside backward. How many ms does "
        "the rank still wait after backward?",
        "Communication can begin when the first bucket is full, after <first> ms, and then never pauses."),
    hi=("Backward <backward> ms ka hai aur barabar doori par <buckets> buckets bharta hai, aakhri bilkul ant mein. Ek "
        "bucket ka all-reduce <each> ms leta hai; wo ek ke baad ek jaate hain, backward ke saath saath. Backward ke "
        "baad rank ko aur kitne ms wait karna hai?",
        "Communication tab shuru hoti hai jab pehla bucket bhar jaaye, <first> ms baad, aur phir rukti nahin."),
    working=r"<buckets> \cdot <each> - \left( <backward> - \frac{<backward>}{<buckets>} \right)")
def hidden_by_backward(backward, buckets, each):
    first = backward / buckets
    return {"value": exposed(buckets * each, backward - first), "first": first}


@cards.card(
    "number-step-with-overlap", lesson=3, source=LI, concepts=("overlap",), unit="ms",
    choices={"forward": (30, 40, 50), "backward": (60, 80, 100), "exchange": (20, 45, 70), "share": (0.5, 0.75, 0.9)},
    en=("A step: forward <forward> ms, backward <backward> ms, exchange of gradients <exchange> ms. <percent> % of "
        "*backward* can go on beside the exchange, and hides as much of it as it lasts. How many ms is the step?",
        "<seen> ms of the exchange are not hidden."),
    hi=("Ek step: forward <forward> ms, backward <backward> ms, gradients ka exchange <exchange> ms. *Backward* ka "
        "<percent> % exchange ke saath saath chal sakta hai, aur jitna lamba hai utna chhupa deta hai. Step kitne ms "
        "ka hai?",
        "Exchange ke <seen> ms nahin chhupte."),
    working=r"<forward> + <backward> + \max\left(0, <exchange> - \frac{<percent>}{100} \cdot <backward>\right)")
def step_with_overlap(forward, backward, exchange, share):
    seen = exposed(exchange, share * backward)
    return {"value": forward + backward + seen, "seen": seen, "percent": round(100 * share)}


@cards.card(
    "number-straggler", lesson=5, source="Lesson 05, one rank slowed", concepts=("synchronous", "efficiency"),
    family="sync-async", unit="%",
    choices={"ranks": (4, 5, 8, 10), "normal": (80, 100, 200), "times": (1.25, 1.5, 2, 3)},
    en=("<ranks> synchronous ranks: one takes <slow> ms for its share, all others <normal> ms. Messages are free. What "
        "share of the time of all ranks together is spent waiting, in %?",
        "All wait for the slowest: $k-1$ ranks wait <wait> ms in each step of <slow> ms."),
    hi=("<ranks> synchronous ranks: ek apne share ke liye <slow> ms leta hai, baaki sab <normal> ms. Messages free "
        "hain. Sabhi ranks ke kul time ka kitna hissa wait mein jaata hai, % mein?",
        "Sab sabse slow rank ka wait karte hain: <slow> ms ke har step mein $k-1$ ranks <wait> ms wait karte hain."),
    working=r"\frac{(<ranks> - 1) \cdot <wait>}{<ranks> \cdot <slow>} \cdot 100")
def straggler(ranks, normal, times):
    slow = normal * times
    return {"value": 100 * (ranks - 1) * (slow - normal) / (ranks * slow), "slow": slow, "wait": slow - normal}


@cards.card(
    "number-parameter-server-staleness", lesson=5, source="Lesson 05, the parameter server",
    concepts=("asynchronous",), family="sync-async", section="Break it", choices={"ranks": (3, 4, 5, 8, 16, 32)},
    en=("<ranks> equally fast workers take turns at an asynchronous parameter server: each fetches the weights, "
        "computes a gradient and pushes it, which updates the weights at once. How many updates by others lie "
        "between a worker's fetch and its push?",
        "Each of the other workers pushes once in between."),
    hi=("<ranks> barabar tez workers baari baari se ek asynchronous parameter server ke paas jaate hain: har ek "
        "weights leta hai, gradient banata hai aur push karta hai; push hote hi weights update hote hain. Ek worker "
        "ke fetch aur push ke beech doosron ke kitne updates hote hain?",
        "Beech mein baaki workers mein se har ek ek baar push karta hai."),
    working="<ranks> - 1")
def parameter_server_staleness(ranks):
    return {"value": ranks - 1}


@cards.card(
    "number-local-sgd-traffic", lesson=5, source="Stich 2018, Local SGD (arXiv 1805.09767)",
    concepts=("synchronous", "communication-overhead"), family="sync-async", unit="GB", section="Scale it",
    choices={"ranks": (4, 5, 8), "size": (0.5, 1, 2), "steps": (1000, 2000), "every": (10, 50, 100, 500)},
    en=("Local SGD on <ranks> ranks: all train alone and average their <size> GB of weights every <every> steps, by a "
        "ring all-reduce. How many GB does each rank send in <steps> steps?",
        "There are <meetings> meetings; each sends $2\\frac{n-1}{n} S$ from a rank."),
    hi=("Local SGD, <ranks> ranks: sab akele train karte hain, aur har <every> steps par <size> GB weights ka average "
        "ring all-reduce se lete hain. Har rank <steps> steps mein kitne GB bhejta hai?",
        "<meetings> baar milte hain; har baar rank se $2\\frac{n-1}{n} S$ jaata hai."),
    working=r"\frac{<steps>}{<every>} \cdot 2 \cdot \frac{<ranks> - 1}{<ranks>} \cdot <size>")
def local_sgd_traffic(ranks, size, steps, every):
    meetings = steps // every
    return {"value": meetings * terms("all_reduce", "ring", ranks).arrays * size, "meetings": meetings}
