"""Number cards of lessons 00 and 14: ranks and threads of machines, and what failures cost."""

from math import sqrt

from disttutor.cards.numbers.number_card import NumberCards

cards = NumberCards()

TORCHRUN = "PyTorch, torchrun (Elastic Launch)"
YOUNG = "Young 1974, a first order approximation to the optimum checkpoint interval"
DALY = "Daly 2006, a higher order estimate of the optimum checkpoint interval"


@cards.card(
    "number-threads-per-rank", lesson=0, source="Lesson 00, your machine", concepts=("distributed-training",),
    section="What this machine has",
    choices={"cores": (2, 4, 8, 12, 16), "ranks": (2, 3, 4, 8)},
    en=("A machine has <cores> cores and starts <ranks> ranks. How many threads should each rank use, if all use as "
        "many as can be without two threads for one core, but at least one?",
        "Cores over ranks, rounded down, and never 0."),
    hi=("Machine mein <cores> cores hain aur <ranks> ranks chalte hain. Har rank kitne threads use kare, jab sab "
        "barabar aur zyada se zyada lein, bina ek core par do threads ke, lekin kam se kam ek?",
        "Cores ko ranks se divide karke neeche round karo, aur 0 kabhi nahin."),
    working=r"\max\left(1, \left\lfloor \frac{<cores>}{<ranks>} \right\rfloor\right)")
def threads_per_rank(cores, ranks):
    return {"value": max(1, cores // ranks)}


@cards.card(
    "number-torchrun-world", lesson=14, source=TORCHRUN, concepts=("distributed-training", "frameworks"),
    choices={"nodes": (2, 3, 4, 16), "each": (2, 4, 8)},
    en=("On every one of <nodes> machines somebody starts `torchrun --nnodes <nodes> --nproc-per-node <each> "
        "train.py`. What is the world size?",
        "Machines times processes on each of them."),
    hi=("<nodes> machines mein se har ek par koi `torchrun --nnodes <nodes> --nproc-per-node <each> train.py` "
        "chalata hai. World size kitna hai?",
        "Machines guna har ek ke processes."),
    working=r"<nodes> \cdot <each>")
def torchrun_world(nodes, each):
    return {"value": nodes * each}


@cards.card(
    "number-torchrun-rank", lesson=14, source=TORCHRUN, concepts=("distributed-training", "frameworks"),
    usable=lambda each, node, local: local < each,
    choices={"each": (4, 8), "node": (1, 2, 3, 5), "local": range(8)},
    en=("Every machine runs <each> processes, and ranks are counted machine by machine from 0. Which rank has the "
        "process with local rank <local> on machine number <node> (the first is number 0)?",
        "All machines before it are full, and then come the local ranks before it."),
    hi=("Har machine par <each> processes hain, aur ranks machine dar machine 0 se gine jaate hain. Machine number "
        "<node> (pehli ka number 0) par local rank <local> wale process ka rank kya hai?",
        "Usse pehle ki saari machines bhari hain, phir usse pehle ke local ranks."),
    working=r"<node> \cdot <each> + <local>")
def torchrun_rank(each, node, local):
    return {"value": node * each + local}


@cards.card(
    "number-cluster-failures", lesson=14, source="Daly 2006: independent failures", unit="hours",
    concepts=("fault-tolerance", "training-at-scale"), section="Scale it",
    choices={"thousands": (20, 30, 50), "gpus": (512, 1000, 2048, 4000, 16000)},
    en=("A GPU with all that belongs to it fails once in <thousands>,000 hours, independently of others. How many "
        "hours does a run on <gpus> GPUs go on average until the first of them fails?",
        "With $n$ GPUs something fails $n$ times as often."),
    hi=("Ek GPU, apne saare saamaan ke saath, <thousands>,000 hours mein ek baar fail hota hai, doosron se alag. "
        "<gpus> GPUs par run average mein kitne hours chalta hai, jab tak pehla fail ho?",
        "$n$ GPUs mein $n$ guna zyada baar kuch fail hota hai."),
    working=r"\frac{<thousands>000}{<gpus>}")
def cluster_failures(thousands, gpus):
    return {"value": thousands * 1000 / gpus}


@cards.card(
    "number-checkpoint-interval", lesson=14, source=YOUNG, concepts=("fault-tolerance",), unit="minutes",
    choices={"cost": (0.5, 2, 3, 4), "hours": (3, 6, 12, 24)},
    en=("Writing a checkpoint stops the training for <cost> minutes, and a failure comes every <hours> hours on "
        "average. How many minutes should lie between two checkpoints (Young's formula)?",
        "$\\tau = \\sqrt{2 C M}$, with $M$ in minutes: rarer checkpoints lose more work, more frequent ones more "
        "time."),
    hi=("Checkpoint likhne mein training <cost> minutes rukti hai, aur average mein har <hours> hours par ek failure "
        "aata hai. Do checkpoints ke beech kitne minutes hone chahiye (Young ka formula)?",
        "$\\tau = \\sqrt{2 C M}$, $M$ minutes mein: kam checkpoints ho to zyada kaam khota hai, zyada ho to zyada "
        "time."),
    working=r"\sqrt{2 \cdot <cost> \cdot <hours> \cdot 60}")
def checkpoint_interval(cost, hours):
    return {"value": sqrt(2 * cost * hours * 60)}


@cards.card(
    "number-lost-time", lesson=14, source=DALY, concepts=("fault-tolerance", "efficiency"), unit="%", section="Scale "
    "it",
    choices={"every": (10, 20, 30, 60), "cost": (0.5, 2, 3), "hours": (4, 6, 12)},
    en=("A checkpoint every <every> minutes of work takes <cost> minutes; failures come every <hours> hours on "
        "average and each loses half an interval of work. To first order, and with restarts for free: what is lost, "
        "in % of the time of work?",
        "$C/\\tau$ for writing, and $\\tau/(2M)$ for work that is done again."),
    hi=("Har <every> minutes ke kaam par ek checkpoint, jo <cost> minutes leta hai; average mein har <hours> hours par "
        "failure aata hai aur aadhe interval ka kaam khota hai. First order mein, restart free: kaam ke time ka "
        "kitna % khota hai?",
        "Likhne ka $C/\\tau$, aur dobara kiye kaam ka $\\tau/(2M)$."),
    working=r"\left( \frac{<cost>}{<every>} + \frac{<every>}{2 \cdot <hours> \cdot 60} \right) \cdot 100")
def lost_time(every, cost, hours):
    return {"value": 100 * (cost / every + every / (2 * hours * 60))}
