"""A model cut into stages: which layers lie where, what each rank keeps, and the shape of every message before one is
sent."""

import pytest
import torch
from pipeline_situations import GPT, Several, convolutions, masked, mlp, tied_ends
from torch import nn

from disttutor.models import MLP, SmallCNN, accuracy, classification, next_token, regression
from disttutor.strategies.stages import Stages, as_tensors, cut_into, layers_of
from disttutor.strategies.stand_ins import Head, Tail, inputs_of

D = torch.float64


def cut(model: nn.Module, rank_of: list[int], rank: int = 0, how="evenly") -> Stages:
    return Stages(model, cut_into(layers_of(model), len(rank_of), how), rank_of, rank)


# --------------------------------------------------------------------------------------------------------- the layers


def test_layers_are_those_in_order_or_of_a_sequential():
    model = convolutions()
    assert layers_of(model) == list(model)
    gpt = GPT()
    assert layers_of(gpt)[1:-1] == list(gpt.blocks)
    with pytest.raises(TypeError, match=r"a Linear cannot be cut into stages: make it a torch.nn.Sequential, or give "
                                        r"it a method layers_in_order\(\)"):
        layers_of(nn.Linear(2, 2))


def test_cuts_by_hand():
    layers = [nn.Linear(n, n) for n in (1, 1, 1, 9, 1, 1)]          # 2, 2, 2, 90, 2, 2 weights

    def sizes(stages, how):
        return [len(stage) for stage in cut_into(layers, stages, how)]

    assert sizes(4, "evenly") == [2, 2, 1, 1]
    assert sizes(3, "by weights") == [3, 1, 2]                      # 6, 90, 4: the dear one alone
    assert sizes(2, (1, 5)) == sizes(2, [1, 5]) == [1, 5]
    assert [layer for stage in cut_into(layers, 4, "evenly") for layer in stage] == layers


@pytest.mark.parametrize(("stages", "how", "words"), [
    (3, "by layers", "unknown cut 'by layers'; cuts that work: 'evenly', 'by weights', or the number of layers"),
    (5, "evenly", "4 layers cannot be cut into 5 stages, each with a layer; it works with 1 to 4 stages"),
    (5, "by weights", "4 layers cannot be cut into 5 stages"),
    (3, (1, 3), r"the cut \(1, 3\) has 2 stages, but the schedule has 3; give 3 sizes that add up to 4 layers"),
    (3, (1, 1, 1), r"has 3 layers, but 1 of 4 would be on no stage; what works is, for example, \(2, 1, 1\)"),
    (3, (2, 2, 2), "has 6 layers, but there are only 4"),
    (3, (4, 0, 0), "stage 1 has 0 layers; each stage needs a whole number from 1 up"),
    (3, (), "has no stage"),
])
def test_cuts_that_cannot_be(stages, how, words):
    with pytest.raises(ValueError, match=words):
        cut_into([nn.Linear(2, 2) for _ in range(4)], stages, how)


# ----------------------------------------------------------------------------------------------------- what lies where


def test_who_holds_what():
    """Eight layers in a V on two ranks: 0 and 3 on rank 0, 1 and 2 on rank 1. The first weight is the last one too."""
    stages = cut(tied_ends(), [0, 1, 1, 0], rank=1)
    assert stages.mine == [1, 2]
    assert stages.owners["0.weight"] == stages.owners["7.weight"] == (0,) and stages.owners["4.bias"] == (1,)
    assert stages.tied == {} and [name for name, _ in stages.own_parameters()] == [
        "2.weight", "2.bias", "4.weight", "4.bias"]
    assert stages.work == [72, 54, 56, 144]                 # 8·8 + 8; 8·6 + 6; 6·8 + 8; two of the first size


def test_a_weight_on_several_ranks_has_them_in_order():
    stages = cut(tied_ends(), [2, 1, 1, 0])
    assert stages.owners["0.weight"] == (0, 2) and stages.tied == {"0.weight": (0, 2)}
    assert [name for name, _ in stages.own_parameters()] == ["0.weight", "6.weight", "6.bias", "7.bias"]


def test_a_weight_in_no_layer_is_the_first_stages():
    class Spare(MLP):
        def __init__(self):
            super().__init__([8, 4, 4, 3], batch_norm=True)
            self.spare = nn.Parameter(torch.zeros(2))

    stages = cut(Spare(), [1, 0, 2])
    assert stages.owners["spare"] == (1,) and stages.owners["layers.norm1.running_mean"] == (0,)
    assert set(stages.owners) == set(Spare().state_dict())


def test_others_weights_are_let_go_of_and_own_ones_kept():
    model, whole = MLP([8, 16, 4, 3], batch_norm=True, seed=0), MLP([8, 16, 4, 3], batch_norm=True, seed=0).state_dict()
    stages = cut(model, [0, 1, 2], rank=1)
    stages.let_go()
    held = {name: t for name, t in model.state_dict().items() if t.numel()}
    assert {name for name in held if "num_batches" not in name} == {
        "layers.linear1.weight", "layers.linear1.bias", "layers.norm1.weight", "layers.norm1.bias",
        "layers.norm1.running_mean", "layers.norm1.running_var"}
    assert all(torch.equal(t, whole[name]) for name, t in held.items())
    gone = [p for p in model.parameters() if not p.numel()]
    assert len(gone) == 6 and all(p.untyped_storage().nbytes() == 0 for p in gone)
    assert stages.boundary_shapes([torch.zeros(5, 8)]) == [[((5, 16), torch.float32)], [((5, 4), torch.float32)]]


def test_a_stage_that_may_work_in_place_is_known():
    assert cut(convolutions(), [0, 1, 2, 3, 4]).in_place == [True, False, True, False, True]
    assert not any(cut(mlp(), [0, 1]).in_place)


# ------------------------------------------------------------------------------------------------------------- shapes


def test_shapes_of_messages_by_hand():
    """10 layers in 5 stages: behind the first ReLU, the second convolution, Flatten, and the first linear layer."""
    stages = cut(convolutions(), [0, 1, 2, 3, 4])
    assert stages.boundary_shapes([torch.zeros(3, 1, 8, 8, dtype=D)]) == [
        [((3, 4, 8, 8), D)], [((3, 6, 4, 4), D)], [((3, 96), D)], [((3, 12), D)]]


def test_shapes_are_those_of_what_really_passes():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(2, 8, dtype=D)
    for model, inputs in ((GPT(), [torch.randint(0, 11, (2, 6), generator=g)]), (masked(), [x]),
                          (SmallCNN(seed=0), [torch.randn(4, 64)]), (mlp(batch_norm=True), [x]),
                          (Several(), [x, torch.tensor([0, 4])])):
        stages = cut(model, list(range(len(layers_of(model)))))
        before = [t.clone() for t in model.buffers()]
        planned, passed, really = stages.boundary_shapes(inputs), inputs, []
        assert all(torch.equal(a, b) for a, b in zip(before, model.buffers(), strict=True))    # nobody has seen a batch
        for module in stages.modules[:-1]:
            passed = as_tensors(module(*passed), "")
            really.append([(tuple(t.shape), t.dtype) for t in passed])
        assert planned == really


def test_a_layer_that_passes_on_no_tensor():
    class Wordy(nn.Module):
        def forward(self, x):
            return {"x": x}

    stages = cut(nn.Sequential(Wordy(), nn.Identity()), [0, 1])
    with pytest.raises(ValueError, match="stage 0 passes on a dict; between stages go tensors, or tuples of them"):
        stages.boundary_shapes([torch.zeros(2, 2)])


# ----------------------------------------------------------------------------------------------- the objective's model


def test_what_the_objective_gives_the_model():
    x, y = torch.randn(4, 8), torch.arange(4) % 3
    for objective in (classification, accuracy):
        (given,) = inputs_of(objective, (x, y))
        assert given is x
    assert inputs_of(regression, (x, x))[0] is x
    ids = torch.zeros(2, 3, dtype=torch.int64)
    assert inputs_of(next_token, (ids, ids))[0] is ids

    def two(model, batch):
        return model(batch[0] * 2, batch[1]).sum(), 4

    a, b = inputs_of(two, (x, y))
    assert torch.equal(a, 2 * x) and b is y

    def careful(model, batch):
        try:
            return model(batch[0]).sum(), 4
        except Exception:
            return torch.zeros(()), 0

    assert inputs_of(careful, (x, y))[0] is x               # no failure of the model's, which objectives may handle


@pytest.mark.parametrize(("objective", "words"), [
    (lambda model, batch: (batch[0].sum(), 1), "does not call the model: a pipeline cannot see what its first stage"),
    (lambda model, batch: model([batch[0]]), "the objective passes on a list; between stages go tensors"),
])
def test_objectives_that_cannot_be(objective, words):
    with pytest.raises(ValueError, match=words):
        inputs_of(objective, (torch.zeros(2), torch.zeros(2)))


def test_the_last_stages_model_gives_what_came_through_the_others_once():
    tail = Tail(nn.Linear(3, 2), [torch.ones(4, 3)])
    assert torch.equal(tail(torch.zeros(4, 8)), tail.stage(torch.ones(4, 3)))
    with pytest.raises(ValueError, match="the objective calls the model more than once; a pipeline passes each"):
        tail(torch.zeros(4, 8))
    with pytest.raises(ValueError, match="the objective asks the model for its weights, and no rank of a pipeline has"):
        list(Head().parameters())
