"""Progress: what was answered, kept as events, and what follows from them."""

from disttutor.cards.progress.progress import Progress, here

__all__ = ["Progress", "here"]
