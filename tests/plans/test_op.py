"""What tells one operation from another."""

import pickle
from dataclasses import replace

from disttutor.plans import Op


def test_what_it_is_about_and_its_key_follow_its_fields():
    op = Op(kind="all_reduce", rank=1, group=(0, 1), microbatch=2, bucket=0)
    assert op.subject == (("microbatch", 2), ("bucket", 0))
    assert op.key == (1, "all_reduce", None, (("microbatch", 2), ("bucket", 0)))
    moved = replace(op, rank=0, bucket=None)
    assert moved.key == (0, "all_reduce", None, (("microbatch", 2),))
    assert pickle.loads(pickle.dumps(op)).key == op.key
