"""Cards for Anki."""

from disttutor.cards.anki.package import export, tsv

__all__ = ["export", "tsv"]
