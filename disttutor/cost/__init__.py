"""Cost: what a plan takes on a machine that is not here."""

from disttutor.cost.simulate import simulate

__all__ = ["simulate"]
