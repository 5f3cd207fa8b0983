"""Buckets and the plan of one data-parallel step, against lists worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.plans import (
    FORMS,
    Gradient,
    Mesh,
    bucket_nbytes,
    data_parallel_step,
    header_bucket,
    make_buckets,
)  # fmt: skip


def g(numel, dtype="float32", sparse=False, flops=0.0):
    itemsize = {"float32": 4, "float64": 8, "bfloat16": 2}[dtype]
    return Gradient(f"p{numel}", numel, itemsize, dtype, flops, sparse)


# 40, 40, 40 bytes; in backward's order the last comes first
THREE = [g(10), g(10), g(10)]


@pytest.mark.parametrize(("gradients", "bucket_bytes", "expected"), [
    (THREE, None, [[2], [1], [0]]),
    (THREE, 1000, [[2, 1, 0]]),
    (THREE, 80, [[2, 1], [0]]),                                   # exactly full
    (THREE, 79, [[2], [1], [0]]),                                 # the next would lift it over
    (THREE, 1, [[2], [1], [0]]),                                  # each is larger than a bucket
    ([g(1), g(100), g(1)], 50, [[2], [1], [0]]),                  # a large one is alone
    ([g(1), g(1, "float64"), g(1)], 1000, [[2], [1], [0]]),       # types do not mix
    ([g(1, "bfloat16")], 1000, [[0], []]),                        # nobody to count samples exactly: one more
    ([], 1000, [[]]),
])
def test_buckets_by_hand(gradients, bucket_bytes, expected):
    assert make_buckets(gradients, bucket_bytes) == expected


def test_a_sparse_gradient_is_alone():
    buckets = make_buckets([g(1), g(1, sparse=True), g(1)], 1000)
    assert [1] in buckets and buckets[:3] == [[2], [1], [0]]


def test_bytes_by_hand():
    """Each gradient brings one element that says whether it was used; the header four, in the first wide bucket."""
    gradients = [g(10), g(20), g(30, "bfloat16")]
    buckets = make_buckets(gradients, 1000)
    assert buckets == [[2], [1, 0]]
    assert header_bucket(gradients, buckets) == 1
    assert bucket_nbytes(gradients, buckets) == [(30 + 1) * 2, (20 + 1 + 10 + 1 + 4) * 4]
    assert bucket_nbytes([g(3, "bfloat16")], [[0], []]) == [(3 + 1) * 2, 4 * 8]
    assert bucket_nbytes([], [[]]) == [4 * 8]


def test_sparse_gradients_bring_a_flag_each_and_no_size():
    gradients = [g(10), g(5, sparse=True), g(7, sparse=True)]
    buckets = make_buckets(gradients, 1000)
    sizes = dict(zip(map(tuple, buckets), bucket_nbytes(gradients, buckets), strict=True))
    assert sizes[(1,)] == sizes[(2,)] == 0
    header = buckets[header_bucket(gradients, buckets)]
    flags_and_header = 2 + 4
    assert sizes[tuple(header)] == (flags_and_header * 8 if not header else (10 + 1 + flags_and_header) * 4)


@pytest.mark.parametrize("size", [0, -1])
def test_a_bucket_needs_a_size(size):
    with pytest.raises(ValueError, match=f"bucket_bytes is {size}; it must be greater than 0"):
        make_buckets(THREE, size)


gradient = st.builds(g, st.integers(1, 50), st.sampled_from(["float32", "float64", "bfloat16"]), st.booleans())


@given(st.lists(gradient, max_size=12), st.one_of(st.none(), st.integers(1, 400)))
def test_every_gradient_is_in_one_bucket_in_backwards_order(gradients, bucket_bytes):
    buckets = make_buckets(gradients, bucket_bytes)
    assert [i for bucket in buckets for i in bucket] == list(reversed(range(len(gradients))))
    for bucket in buckets:
        members = [gradients[i] for i in bucket]
        assert len({m.dtype for m in members}) <= 1
        assert len(members) <= 1 or not any(m.sparse for m in members)
        assert len(members) <= 1 or sum(m.nbytes for m in members) <= (bucket_bytes or 0)
    header = buckets[header_bucket(gradients, buckets)]
    assert all(gradients[i].dtype != "bfloat16" and not gradients[i].sparse for i in header)
    assert all(n >= 0 for n in bucket_nbytes(gradients, buckets))


def ops(plan, rank=0):
    return [op.label for op in plan.ops[rank]]


def step(form, **keywords):
    return data_parallel_step([g(10, flops=1.0), g(10, flops=2.0), g(10, flops=4.0)], Mesh(data=2), bucket_bytes=80,
                              form=form, **keywords)


def test_each_gradient_at_the_end():
    plan = step("end")
    assert ops(plan) == ["forward microbatch 0", "backward microbatch 0", "all_reduce bucket 0", "all_reduce bucket 1",
                         "all_reduce bucket 2", "update"]
    assert [op.nbytes for op in plan.ops[0]] == [0, 0, (11 + 4) * 4, 44, 44, 0]
    assert plan.check().nbytes == (148, 148) and plan.check().messages == (3, 3)


def test_buckets_at_the_end():
    plan = step("bucketed")
    assert ops(plan) == ["forward microbatch 0", "backward microbatch 0", "all_reduce bucket 0", "all_reduce bucket 1",
                         "update"]
    assert [op.nbytes for op in plan.ops[0]] == [0, 0, (22 + 4) * 4, 44, 0]
    backward, *reduces, update = plan.ops[1][1:]
    assert all(op.after == (backward.key,) and op.group == (0, 1) for op in reduces)
    assert update.after == tuple(op.key for op in reduces)


def test_buckets_overlapped_with_backward():
    plan = step("overlapped", forward_flops=3.0)
    assert ops(plan) == ["forward microbatch 0", "backward microbatch 0 bucket 0", "all_reduce bucket 0",
                         "backward microbatch 0 bucket 1", "all_reduce bucket 1", "update"]
    assert [op.flops for op in plan.ops[0]] == [3.0, 6.0, 0.0, 1.0, 0.0, 0.0]
    assert plan.ops[0][2].after == (plan.ops[0][1].key,)
    assert plan.ops[0][4].after == (plan.ops[0][3].key,)


@pytest.mark.parametrize("form", FORMS)
def test_only_the_last_microbatch_is_followed_by_an_exchange(form):
    plan = step(form, accumulate=3)
    labels = ops(plan)
    assert labels[:4] == ["forward microbatch 0", "backward microbatch 0", "forward microbatch 1",
                          "backward microbatch 1"]
    first = next(i for i, label in enumerate(labels) if label.startswith("all_reduce"))
    assert labels.index("forward microbatch 2") < first
    report = plan.check()
    assert report.peak_in_flight == (1, 1)
    assert report.nbytes == step(form).check().nbytes            # accumulating sends no more


@pytest.mark.parametrize("form", FORMS)
def test_one_rank_exchanges_nothing(form):
    plan = data_parallel_step(THREE, Mesh(), form=form)
    assert ops(plan) == ["forward microbatch 0", "backward microbatch 0", "update"]
    assert plan.check().nbytes == (0,)


@given(st.lists(gradient, max_size=8), st.integers(1, 5), st.sampled_from(FORMS), st.integers(1, 4),
       st.one_of(st.none(), st.integers(1, 400)))
def test_every_plan_can_run(gradients, ranks, form, accumulate, bucket_bytes):
    report = data_parallel_step(gradients, Mesh(data=ranks), form=form, accumulate=accumulate,
                                bucket_bytes=bucket_bytes).check()
    assert len(set(report.nbytes)) == len(set(report.messages)) == 1
    assert report.peak_in_flight == (1,) * ranks


@pytest.mark.parametrize(("keywords", "message"), [
    ({"form": "late"}, "unknown form 'late'; forms that work: end, bucketed, overlapped"),
    ({"accumulate": 0}, "accumulate is 0; it must be 1 or more"),
    ({"mesh": Mesh(data=2, tensor=2)}, "needs a mesh with only a data axis"),
])
def test_wrong_steps_are_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        data_parallel_step(THREE, **{"mesh": Mesh(data=2), **keywords})
