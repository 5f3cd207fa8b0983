"""Labs: widgets that join the rooms below for one lesson, one file each."""

from disttutor.labs.guess import Guess
from disttutor.labs.lab import Lab
from disttutor.labs.page import Table
from disttutor.labs.session import Session, Stopped

__all__ = ["Guess", "Lab", "Session", "Stopped", "Table"]
