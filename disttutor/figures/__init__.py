"""Figures: drawings of what ranks did, each a pure function of data. No widgets.

Matplotlib and numpy are loaded when a figure that needs them is drawn.
"""

from disttutor.figures.bars import bars
from disttutor.figures.calibration import calibration_curve
from disttutor.figures.concept_map import concept_map
from disttutor.figures.curves import curves
from disttutor.figures.equality import equality
from disttutor.figures.gradient_sync import gradient_sync
from disttutor.figures.losses import losses
from disttutor.figures.message_grid import message_grid
from disttutor.figures.messages import message_step
from disttutor.figures.moments import Moment, moments_of
from disttutor.figures.picture import Picture
from disttutor.figures.scaling import scaling
from disttutor.figures.sizes import Crossover, crossovers, sizes
from disttutor.figures.study_days import study_days
from disttutor.figures.svg import Svg
from disttutor.figures.timeline import compare, timeline

__all__ = ["Crossover", "Moment", "Picture", "Svg", "bars", "calibration_curve", "compare", "concept_map", "crossovers",
           "curves", "equality", "gradient_sync", "losses", "message_grid", "message_step", "moments_of", "scaling",
           "sizes", "study_days", "timeline"]
