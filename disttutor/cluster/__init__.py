"""Real ranks: `run` starts fresh ones for each call, a `Cluster` keeps them, torchrun's are attached to."""

from disttutor.cluster.errors import RankError
from disttutor.cluster.here import barrier, device, mean, progress, rank, save, world_size
from disttutor.cluster.lifetimes import Cluster, FreshRuns, run
from disttutor.cluster.ranks import Results
from disttutor.cluster.server import prewarm

__all__ = ["Cluster", "FreshRuns", "RankError", "Results", "barrier", "device", "mean", "prewarm", "progress", "rank",
           "run", "save", "world_size"]
