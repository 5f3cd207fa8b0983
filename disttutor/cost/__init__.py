"""Cost: what a plan takes on a machine that is not here."""

from disttutor.cost.collectives import Terms, closed_form, hierarchical_terms, terms
from disttutor.cost.memory import ADAM, MIXED_ADAM, MOMENTUM_SGD, SGD, ModelStates, Recipe, fewest_devices, model_states
from disttutor.cost.scaling import amdahl, communication_for, efficiency, exposed, gustafson, speedup, weak_speedup
from disttutor.cost.simulate import simulate

__all__ = ["ADAM", "MIXED_ADAM", "MOMENTUM_SGD", "ModelStates", "Recipe", "SGD", "Terms", "amdahl", "closed_form",
           "communication_for", "efficiency", "exposed", "fewest_devices", "gustafson", "hierarchical_terms",
           "model_states", "simulate", "speedup", "terms", "weak_speedup"]
