"""Tensors and arguments that a collective may meet: it sums them, or says why it cannot before it sends anything."""

import threading

import pytest
import torch
import torch.distributed as dist

from disttutor.strategies import interpreter
from disttutor.strategies.collectives import all_gather, all_reduce, all_to_all, broadcast, reduce, reduce_scatter
from disttutor.strategies.groups import Group
from disttutor.strategies.shared_memory import SharedMemory

EVERY = (all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all)


@pytest.mark.parametrize("collective", EVERY)
def test_views_that_stand_for_other_numbers_than_lie_in_memory(collective):
    """As they lie they would be sent without the sign."""
    for view in (torch._neg_view(torch.ones(4)), torch.ones(4, dtype=torch.complex64).conj()):
        with pytest.raises(ValueError, match=r"stands for other numbers than lie in memory .*resolve_conj\(\)"):
            collective(view)
        collective(view.resolve_conj().resolve_neg())


@pytest.mark.parametrize("collective", EVERY)
def test_what_is_no_tensor_with_numbers_and_no_group(collective):
    with pytest.raises(ValueError, match=r"of shape \(3,\) is on torch's meta device and holds no numbers"):
        collective(torch.ones(3, device="meta"))
    with pytest.raises(TypeError, match=r"group is \[0, 1\] of type list; give a Group"):
        collective(torch.ones(3), group=[0, 1])


def test_an_op_that_is_no_name():
    with pytest.raises(TypeError, match=r"op is \['sum'\] of type list; those that work: sum, mean, max"):
        all_reduce(torch.ones(3), op=["sum"])


def test_two_threads_in_two_groups_keep_their_messages_apart(clusters):
    def both(rank):
        groups = [Group((0, 1, 2), rank, dist.new_group([0, 1, 2])) for _ in range(2)]
        found = [[], []]

        def work(number):
            for turn in range(40):
                tensor = torch.full((3000,), float(rank + 10 * number + turn))
                all_reduce(tensor, groups[number])
                found[number].append(tensor.unique().tolist())

        threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    expected = [[[3.0 * (10 * number + turn) + 3] for turn in range(40)] for number in (0, 1)]
    assert clusters(3).run(both, timeout=60) == [expected] * 3


def test_room_for_messages_is_not_used_again_after_a_failure(clusters):
    """A message that is late could still come into it."""
    def interrupted(rank):
        all_reduce(torch.ones(3000))
        (room,) = interpreter._kept.values()

        def stop(moment):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            all_reduce(torch.ones(3000), observe=stop)
        kept = [other for other in interpreter._kept.values() if other is room]
        all_reduce(torch.ones(3000))
        return len(kept)

    assert clusters(2).run(interrupted) == [1, 1]           # nothing had come yet: it was not in use


@pytest.mark.parametrize("timeout", ["5", None, True, float("nan"), 0])
def test_a_timeout_that_is_none(timeout):
    with pytest.raises(ValueError, match="timeout is .*; it must be more than 0 seconds"):
        SharedMemory(Group((0,), 0), timeout=timeout)
