"""Cost: what a plan takes on a machine that is not here."""

from disttutor.cost.collectives import Terms, closed_form, hierarchical_terms, terms
from disttutor.cost.simulate import simulate

__all__ = ["Terms", "closed_form", "hierarchical_terms", "simulate", "terms"]
