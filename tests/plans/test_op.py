"""What tells one operation from another."""

import pickle
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from disttutor.plans import Op


def test_what_it_is_about_and_its_key_follow_its_fields():
    op = Op(kind="all_reduce", rank=1, group=(0, 1), microbatch=2, bucket=0)
    assert op.subject == (("microbatch", 2), ("bucket", 0))
    assert op.key == (1, "all_reduce", None, (("microbatch", 2), ("bucket", 0)))
    moved = replace(op, rank=0, bucket=None)
    assert moved.key == (0, "all_reduce", None, (("microbatch", 2),))
    assert pickle.loads(pickle.dumps(op)).key == op.key


@pytest.mark.parametrize(("fields", "error", "message"), [
    ({"rank": -1}, ValueError, "forward on rank -1 names a negative rank; ranks are counted from 0"),
    ({"rank": "0"}, TypeError, "the rank of forward is '0', of type str; it must be a whole number"),
    ({"rank": 0.5}, TypeError, "the rank of forward is 0.5, of type float"),
    ({"rank": True}, TypeError, "the rank of forward is True, of type bool"),
    ({"rank": None}, TypeError, "the rank of forward is None"),
    ({"kind": "send", "rank": 0, "peer": -1}, ValueError, "send to rank -1 on rank 0 names a negative rank"),
    ({"kind": "send", "rank": 0, "peer": 1.0}, TypeError, "the peer of send is 1.0, of type float"),
    ({"rank": 0, "flops": nan}, ValueError, r"forward on rank 0 has an undefined size \(0 bytes, nan flops\)"),
    ({"rank": 0, "flops": inf}, ValueError, "an undefined size"),
    ({"rank": 0, "flops": -1.0}, ValueError, "a negative size"),
    ({"rank": 0, "nbytes": nan}, ValueError, "an undefined size"),
    ({"rank": 0, "nbytes": "8"}, TypeError, r"a size that is no number \('8' bytes, 0.0 flops\)"),
])
def test_impossible_operations_are_refused(fields, error, message):
    with pytest.raises(error, match=message):
        Op(**{"kind": "forward", **fields})


def test_numpys_whole_numbers_become_plain_ones():
    op = Op(kind="send", rank=np.int64(1), peer=np.int32(0))
    assert op == Op(kind="send", rank=1, peer=0)
    assert (type(op.rank), type(op.peer), type(op.key[0])) == (int, int, int)
