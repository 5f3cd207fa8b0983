"""Wrong use of shared memory: said plainly, before anything starts."""

import os

import pytest
import torch

from disttutor.strategies import SharedMemory, group_along


def everybody():
    return group_along(None, "data")


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda s: s.all_reduce([1.0]), TypeError, "must be a tensor, not list"),
    (lambda s: s.all_reduce(torch.zeros(3, device="meta")), ValueError, "lies on meta, and shared memory is the CPU's"),
    (lambda s: s.all_reduce(torch.zeros(3, 2).t()), ValueError, r"strides \(1, 2\): its elements do not lie in one"),
    (lambda s: s.all_reduce(torch.eye(3).to_sparse()), ValueError, "the tensor is sparse"),
    (lambda s: s.all_reduce(torch.zeros(3, dtype=torch.complex64)), TypeError, "complex64 cannot .* work: float32, fl"),
    (lambda s: s.all_reduce(torch.zeros(3), "product"), ValueError, "'product'; operations that work: sum, mean, max"),
    (lambda s: s.all_reduce(torch.zeros(3).long(), "mean"), TypeError, "the mean of int64 .* op='sum' and divide"),
    (lambda s: s.all_reduce(torch.zeros(3), shots=3), ValueError, "shots is 3; it can be 1, 2, or None"),
    (lambda s: s.empty(1025), ValueError, "1025 elements of float32 need 4160 bytes, and of the 4096 .* 4096 are left"),
    (lambda s: s.empty(-1), ValueError, "numel is -1"),
    (lambda s: s.empty(2, torch.bool), TypeError, "bool cannot be reduced"),
    (lambda s: (s.close(), s.all_reduce(torch.zeros(3))), RuntimeError, "this shared memory was closed"),
])
@pytest.mark.parametrize("ranks", [1, 2])
def test_wrong_use(ranks, call, error, words, clusters):
    def work(rank):
        with SharedMemory(everybody(), 4096) as shared, pytest.raises(error, match=words):
            call(shared)

    clusters(ranks).run(work)


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"nbytes": -1}, ValueError, "nbytes is -1; it must be 0 or more"),
    ({"nbytes": 1.5}, TypeError, "nbytes is 1.5 of type float"),
    ({"timeout": 0}, ValueError, "timeout is 0; it must be more than 0"),
    ({"nbytes": 1 << 50}, RuntimeError, "rank 0 could not make .* bytes of shared memory: of this machine's memory"),
])
def test_wrong_settings(options, error, words, clusters):
    def work(rank):
        with pytest.raises(error, match=words):
            SharedMemory(everybody(), **options)

    clusters(2).run(work)


def test_a_fork_of_a_rank_cannot_take_its_place(clusters):
    def work(rank):
        with SharedMemory(everybody()) as shared:
            child = os.fork()
            if child == 0:
                try:
                    shared.all_reduce(torch.zeros(1))
                except RuntimeError as problem:
                    os._exit(7 if "belongs to the process that this one was forked from" in str(problem) else 8)
                os._exit(9)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert clusters(2).run(work) == [7, 7]
