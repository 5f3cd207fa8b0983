"""Number cards of lesson 10: who is who on a mesh of data, pipeline and tensor ranks."""

from disttutor.cards.numbers.number_card import NumberCards
from disttutor.plans import Mesh

cards = NumberCards()

SOURCE = "Narayanan et al. 2021 (arXiv 2104.04473), section 3; Lesson 10"
AXES = {"data": (2, 4), "pipeline": (2, 3, 4), "tensor": (2, 4)}
COUNTED = "Ranks are numbered along the tensor axis first, then pipeline, then data, all from 0."
GINTI = "Ranks ki ginti pehle tensor axis par chalti hai, phir pipeline, phir data, sab 0 se."


def _mesh(data: int, pipeline: int, tensor: int) -> Mesh:
    return Mesh(data=data, pipeline=pipeline, tensor=tensor)


@cards.card(
    "number-mesh-data-ranks", lesson=10, source=SOURCE, concepts=("mesh", "hybrid-parallelism"),
    choices={"data": (2, 4, 8, 16), "pipeline": (2, 4, 8), "tensor": (2, 4, 8)},
    en=("<world> GPUs: tensor parallelism over <tensor>, pipeline over <pipeline>, and the rest is data-parallel. How "
        "many replicas of the model are there?",
        "The product of all axes is the world size."),
    hi=("<world> GPUs: tensor parallelism <tensor> par, pipeline <pipeline> par, aur baaki data-parallel. Model ki "
        "kitni replicas hain?",
        "Saari axes ka product world size hota hai."),
    working=r"\frac{<world>}{<tensor> \cdot <pipeline>}")
def mesh_data_ranks(data, pipeline, tensor):
    world = _mesh(data, pipeline, tensor).world_size
    return {"value": world // (pipeline * tensor), "world": world}


@cards.card(
    "number-mesh-rank", lesson=10, source=SOURCE, concepts=("mesh",),
    usable=lambda data, pipeline, tensor, d, p, t: d < data and p < pipeline and t < tensor and d + p > 0,
    choices=AXES | {"d": range(4), "p": range(4), "t": range(4)},
    en=(f"A mesh of <data> x <pipeline> x <tensor> (data x pipeline x tensor). {COUNTED} Which rank stands at data "
        "<d>, pipeline <p>, tensor <t>?",
        "A step on the pipeline axis passes all tensor ranks, a step on the data axis a whole replica."),
    hi=(f"<data> x <pipeline> x <tensor> ka mesh (data x pipeline x tensor). {GINTI} Data <d>, pipeline <p>, tensor "
        "<t> par kaunsa rank hai?",
        "Pipeline par ek kadam saare tensor ranks ko paar karta hai, data par ek kadam poori replica ko."),
    working=r"(<d> \cdot <pipeline> + <p>) \cdot <tensor> + <t>")
def mesh_rank(data, pipeline, tensor, d, p, t):
    return {"value": _mesh(data, pipeline, tensor).rank_at(data=d, pipeline=p, tensor=t)}


@cards.card(
    "number-mesh-stage", lesson=10, source=SOURCE, concepts=("mesh", "pipeline-parallelism"),
    usable=lambda data, pipeline, tensor, rank: tensor < rank < data * pipeline * tensor,
    choices=AXES | {"rank": range(3, 64)},
    en=(f"A mesh of <data> x <pipeline> x <tensor> (data x pipeline x tensor). {COUNTED} On which pipeline stage is "
        "rank <rank>?",
        "Divide by the tensor ranks, drop the rest, and see where that stands in its replica."),
    hi=(f"<data> x <pipeline> x <tensor> ka mesh (data x pipeline x tensor). {GINTI} Rank <rank> kis pipeline stage "
        "par hai?",
        "Tensor ranks se divide karo, remainder chhodo, phir dekho ki wo apni replica mein kahan hai."),
    working=r"\left\lfloor \frac{<rank>}{<tensor>} \right\rfloor \bmod <pipeline>")
def mesh_stage(data, pipeline, tensor, rank):
    return {"value": _mesh(data, pipeline, tensor).coordinates(rank)["pipeline"]}


@cards.card(
    "number-mesh-groups", lesson=10, source=SOURCE, concepts=("mesh", "collectives"),
    choices=AXES | {"axis": ("data", "pipeline", "tensor")},
    en=("A mesh of <data> x <pipeline> x <tensor> (data x pipeline x tensor). How many different <axis> groups are "
        "there?",
        "A group joins the ranks that differ only on this axis; every rank is in one, so it is the world size over the "
        "size of a group."),
    hi=("<data> x <pipeline> x <tensor> ka mesh (data x pipeline x tensor). Kitne alag <axis> groups hain?",
        "Ek group mein wo ranks hain jo sirf isi axis par alag hain; har rank ek group mein hai, isliye world size "
        "ko group ke size se divide karo."),
    working=r"\frac{<data> \cdot <pipeline> \cdot <tensor>}{<size>}")
def mesh_groups(data, pipeline, tensor, axis):
    mesh = _mesh(data, pipeline, tensor)
    return {"value": len(mesh.groups(axis)), "size": mesh.sizes[axis]}


@cards.card(
    "number-mesh-next-replica", lesson=10, source=SOURCE, concepts=("mesh", "data-parallelism"),
    usable=lambda data, pipeline, tensor, rank: rank < pipeline * tensor,
    choices=AXES | {"rank": range(16)},
    en=(f"A mesh of <data> x <pipeline> x <tensor> (data x pipeline x tensor). {COUNTED} Rank <rank> all-reduces its "
        "gradients with its data group. Which is the next rank of that group?",
        "Replicas lie a whole replica apart: pipeline times tensor ranks."),
    hi=(f"<data> x <pipeline> x <tensor> ka mesh (data x pipeline x tensor). {GINTI} Rank <rank> apne data group ke "
        "saath gradients all-reduce karta hai. Us group ka agla rank kaunsa hai?",
        "Replicas ke beech poori replica ki doori hai: pipeline guna tensor ranks."),
    working=r"<rank> + <pipeline> \cdot <tensor>")
def mesh_next_replica(data, pipeline, tensor, rank):
    return {"value": _mesh(data, pipeline, tensor).group(rank, "data")[1]}
