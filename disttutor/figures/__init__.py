"""Figures: drawings of what ranks did, each a pure function of data. No widgets.

Matplotlib and numpy are loaded when a figure that needs them is drawn.
"""

from disttutor.figures.bars import bars
from disttutor.figures.curves import curves
from disttutor.figures.equality import equality
from disttutor.figures.gradient_sync import gradient_sync
from disttutor.figures.losses import losses
from disttutor.figures.picture import Picture
from disttutor.figures.scaling import scaling
from disttutor.figures.svg import Svg
from disttutor.figures.timeline import compare, timeline

__all__ = ["Picture", "Svg", "bars", "compare", "curves", "equality", "gradient_sync", "losses", "scaling", "timeline"]
