"""Figures: drawings of what ranks did, each a pure function of data. No widgets.

Matplotlib and numpy are loaded when a figure that needs them is drawn.
"""

from disttutor.figures.svg import Svg
from disttutor.figures.timeline import compare, timeline

__all__ = ["Svg", "compare", "timeline"]
