"""The models and data of the course: small enough for a laptop, complete enough to show what large ones meet."""

from disttutor.models.cnn import SmallCNN
from disttutor.models.digits import Digits, digits
from disttutor.models.gpt import SmallGPT
from disttutor.models.mlp import MLP
from disttutor.models.modes import evaluating
from disttutor.models.objectives import accuracy, classification, next_token, regression
from disttutor.models.text import IGNORE, VOCABULARY, decode, encode, pad, text, text_batches, topics, windows

__all__ = [
    "IGNORE",
    "MLP",
    "VOCABULARY",
    "Digits",
    "SmallCNN",
    "SmallGPT",
    "accuracy",
    "classification",
    "decode",
    "digits",
    "encode",
    "evaluating",
    "next_token",
    "pad",
    "regression",
    "text",
    "text_batches",
    "topics",
    "windows",
]
