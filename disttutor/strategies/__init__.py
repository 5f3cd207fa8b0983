"""Strategies: one file each, torch code that reads like the paper. `Single` is the oracle for all."""

from disttutor.strategies.batch_norm import SynchronizedBatchNorm, synchronize_batch_norm
from disttutor.strategies.data_parallel import DataParallel
from disttutor.strategies.groups import Group, group_along
from disttutor.strategies.loop import fit
from disttutor.strategies.pipedream import PipeDream
from disttutor.strategies.pipeline import Pipeline
from disttutor.strategies.random_streams import random_stream, seed_workers, stream_seed
from disttutor.strategies.sampler import EpochSampler
from disttutor.strategies.shared_memory import SharedMemory
from disttutor.strategies.shares import groups, share_sizes, split
from disttutor.strategies.single import Single
from disttutor.strategies.strategy import Strategy

__all__ = ["DataParallel", "EpochSampler", "Group", "PipeDream", "Pipeline", "SharedMemory", "Single", "Strategy",
           "SynchronizedBatchNorm", "fit", "group_along", "groups", "random_stream", "seed_workers",
           "share_sizes", "split", "stream_seed", "synchronize_batch_norm"]
