"""Cutting layers into stages, against cuts by hand and against all cuts that there are."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans.splitting import check_cut, spans, split_by_cost, split_evenly


@pytest.mark.parametrize(("layers", "stages", "sizes"), [
    (10, 3, (4, 3, 3)),                 # case A-29
    (7, 2, (4, 3)),
    (8, 4, (2, 2, 2, 2)),
    (3, 3, (1, 1, 1)),
    (5, 1, (5,)),
])
def test_even_cuts_by_hand(layers, stages, sizes):
    assert split_evenly(layers, stages) == sizes
    assert split_by_cost([0.1] * layers, stages) == sizes      # layers that cost the same are cut the same


def test_spans_hold_every_layer_once():
    assert spans((4, 3, 3)) == ((0, 4), (4, 7), (7, 10))
    assert spans((5,)) == ((0, 5),)


@pytest.mark.parametrize(("costs", "stages", "sizes"), [
    ([1, 2, 3, 4, 5], 2, (3, 2)),                       # 6 and 9; (4, 1) would be 10 and 5
    ([9, 1, 1, 1], 2, (1, 3)),
    ([1, 1, 1, 9], 3, (2, 1, 1)),                       # the 9 is alone whatever is done; 2, 1 is as even as can be
    ([2, 1, 1, 2, 6], 3, (2, 2, 1)),                    # 3, 3, 6; also (1, 3, 1): 2, 4, 6 and (3, 1, 1): 4, 2, 6
    ([0, 0, 0], 2, (2, 1)),
    ([10, 1, 1, 1, 1, 10], 3, (1, 4, 1)),               # as with an embedding and a head
])
def test_cuts_by_cost_by_hand(costs, stages, sizes):
    assert split_by_cost(costs, stages) == sizes


@given(st.data(), st.lists(st.integers(0, 9), min_size=1, max_size=9))
def test_no_cut_has_a_cheaper_dearest_stage_or_is_more_even(data, costs):
    stages = data.draw(st.integers(1, len(costs)))

    def rating(bounds):
        parts = [sum(costs[a:b]) for a, b in bounds]
        return max(parts), sum(part * part for part in parts)

    every = [spans([b - a for a, b in zip((0, *cut), (*cut, len(costs)), strict=True)])
             for cut in combinations(range(1, len(costs)), stages - 1)]
    sizes = split_by_cost(costs, stages)
    assert spans(check_cut(sizes, len(costs))) in every
    assert rating(spans(sizes)) == min(map(rating, every))
    halves = [cost / 8 for cost in costs]               # another unit, the same cut
    assert split_by_cost(halves, stages) == sizes


@given(st.integers(1, 200), st.integers(1, 50))
def test_even_cuts_are_whole_and_even(layers, stages):
    if stages > layers:
        with pytest.raises(ValueError, match=f"it works with 1 to {layers} stages"):
            split_evenly(layers, stages)
        return
    sizes = split_evenly(layers, stages)
    assert check_cut(list(sizes), layers) == sizes and len(sizes) == stages
    assert sizes == tuple(sorted(sizes, reverse=True)) and sizes[0] - sizes[-1] <= 1


@pytest.mark.parametrize(("call", "message"), [
    (lambda: split_evenly(3, 4), "3 layers cannot be cut into 4 stages, each with a layer; it works with 1 to 3"),
    (lambda: split_evenly(0, 1), "layers is 0; it must be a whole number, 1 or more"),
    (lambda: split_evenly(3, 0), "stages is 0; it must be a whole number, 1 or more"),
    (lambda: split_by_cost([1, 2], 3), "2 layers cannot be cut into 3 stages"),
    (lambda: split_by_cost([1, -2], 1), "layer 1 costs -2; a cost is 0 or more, and finite"),
    (lambda: split_by_cost([float("nan")], 1), "layer 0 costs nan"),
    (lambda: split_by_cost([], 1), "layers is 0"),
    (lambda: check_cut((4, 3), 10), "the cut (4, 3) has 7 layers, but 3 of 10 would be on no stage; what works is, for "
                                    "example, (5, 5)"),
    (lambda: check_cut((4, 4, 4), 10), "has 12 layers, but there are only 10; what works is, for example, (4, 3, 3)"),
    (lambda: check_cut((10, 0), 10), "stage 1 has 0 layers; each stage needs a whole number from 1 up; what works is"),
    (lambda: check_cut((5.0, 5), 10), "stage 0 has 5.0 layers"),
    (lambda: check_cut((1, 1, 1), 2), "has 3 layers, but there are only 2; 2 layers can make 2 stages at most"),
    (lambda: check_cut((), 2), "a cut of 2 layers has no stage; it needs one or more, such as (2,)"),
])
def test_cuts_that_cannot_be_say_what_would_work(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
