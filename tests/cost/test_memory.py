"""Model states per device, against the numbers that the ZeRO paper prints and some worked out by hand."""

import pytest

from disttutor.cost import ADAM, MIXED_ADAM, MOMENTUM_SGD, SGD, fewest_devices, model_states

# Rajbhandari et al. 2020 (arXiv 1910.02054), figure 1: 7.5B parameters, 64 GPUs; GB of model states on each.
FIGURE_1 = {0: 120, 1: 31.4, 2: 16.6, 3: 1.9}
# The same, table 1: GB with ZeRO stage 1, 2 and 3. The paper cuts off as often as it rounds (4187.5 is 4187).
TABLE_1 = {
    7.5e9: {1: (120, 120, 120), 4: (52.5, 41.3, 30), 16: (35.6, 21.6, 7.5), 64: (31.4, 16.6, 1.88),
            256: (30.4, 15.4, 0.47), 1024: (30.1, 15.1, 0.12)},
    128e9: {1: (2048, 2048, 2048), 4: (896, 704, 512), 16: (608, 368, 128), 64: (536, 284, 32), 256: (518, 263, 8),
            1024: (513, 257, 2)},
    1e12: {1: (16000, 16000, 16000), 4: (7000, 5500, 4000), 16: (4750, 2875, 1000), 64: (4187, 2218, 250),
           256: (4046, 2054, 62.5), 1024: (4011, 2013, 15.6)},
}


@pytest.mark.parametrize("stage", FIGURE_1)
def test_figure_1_of_the_paper(stage):
    printed = FIGURE_1[stage]
    assert model_states(7.5e9, data=64, zero=stage).total / 1e9 == pytest.approx(printed, abs=0.05)


@pytest.mark.parametrize("parameters, ranks", [(p, n) for p, rows in TABLE_1.items() for n in rows])
def test_table_1_of_the_paper(parameters, ranks):
    for stage, printed in enumerate(TABLE_1[parameters][ranks], 1):
        last_digit = 10.0 ** -len(f"{printed}".partition(".")[2])
        found = model_states(parameters, data=ranks, zero=stage).total / 1e9
        assert found == pytest.approx(printed, abs=last_digit)


def test_the_parts_of_a_device():
    """1000 parameters, stage 2 on 4 ranks: weights 2 · 1000 whole, gradients 2 · 250, optimizer 12 · 250."""
    held = model_states(1000, data=4, zero=2)
    assert (held.weights, held.gradients, held.optimizer) == (2000, 500, 3000)
    assert held.total == 5500


@pytest.mark.parametrize("recipe, bytes_a_parameter", [(MIXED_ADAM, 16), (ADAM, 16), (MOMENTUM_SGD, 12), (SGD, 8)])
def test_bytes_a_parameter(recipe, bytes_a_parameter):
    assert recipe.total == model_states(1, recipe).total == bytes_a_parameter


def test_100b_on_64_gpus():
    """8-way model x 8-way data: plain copies 200 GB a GPU; with ZeRO-1 12.5e9 · 4 + 12.5e9 · 12 / 8 = 68.75 GB."""
    assert model_states(100e9, data=8, tensor=8).total == 200e9
    assert model_states(100e9, data=8, tensor=8, zero=1).total == 68.75e9
    assert model_states(100e9, data=8, tensor=4, pipeline=2, zero=1).total == 68.75e9


def test_data_parallel_ranks_alone_save_nothing():
    assert model_states(10e9, data=64) == model_states(10e9)


@pytest.mark.parametrize("parameters, capacity, more, devices", [
    (10e9, 40e9, {}, 4),                                # 160 GB in 40s, filled to the last byte
    (10e9, 39e9, {}, 5),
    (1e9, 80e9, {}, 1),
    (10e9, 80e9, {"zero": 1}, 3),                       # 40 GB copied, 120 GB dealt out into the 40 that are left
    (100e9, 80e9, {"zero": 1, "tensor": 8}, 40),        # 50 GB copied, 150 GB into 30: 5 copies of 8 ranks
    (1e9, 16e9, {"zero": 0}, 1),
    (12e9, 80e9, {"zero": 0, "pipeline": 3}, 3),        # 192 GB over 3 stages
])
def test_fewest_devices(parameters, capacity, more, devices):
    assert fewest_devices(parameters, capacity, **more) == devices


def test_one_device_less_does_not_fit():
    n = fewest_devices(70e9, 80e9, zero=3)
    assert model_states(70e9, data=n, zero=3).total <= 80e9 < model_states(70e9, data=n - 1, zero=3).total


@pytest.mark.parametrize("parameters, capacity, zero", [(10e9, 40e9, 1), (175e9, 80e9, 2), (10e9, 40e9, 0)])
def test_where_no_number_of_devices_is_enough(parameters, capacity, zero):
    with pytest.raises(ValueError, match="however many devices"):
        fewest_devices(parameters, capacity, zero=zero)


@pytest.mark.parametrize("given, words", [
    ({"parameters": 0}, "more than 0"), ({"parameters": float("inf")}, "more than 0"),
    ({"parameters": "7B"}, "number of parameters"), ({"parameters": True}, "number of parameters"),
    ({"zero": 4}, "stages 1, 2 and 3"), ({"zero": -1}, "stages 1, 2 and 3"),
    ({"data": 0}, "data"), ({"tensor": 1.5}, "tensor"), ({"pipeline": -2}, "pipeline"),
])
def test_what_cannot_be_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        model_states(**({"parameters": 1e9} | given))


@pytest.mark.parametrize("capacity", [0, -1, float("nan"), float("inf")])
def test_a_capacity_that_cannot_be_is_refused(capacity):
    with pytest.raises(ValueError, match="capacity"):
        fewest_devices(1e9, capacity)
