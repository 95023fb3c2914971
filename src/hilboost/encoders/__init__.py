"""Encoding of category codes as numbers that trees can order."""

from hilboost.encoders.encoding import Encoder, Encoding, meet
from hilboost.encoders.rare_levels import kept_levels, level_weights
from hilboost.encoders.target_encoding import LevelKeys, TargetEncoding

__all__ = [
    "Encoder",
    "Encoding",
    "LevelKeys",
    "TargetEncoding",
    "kept_levels",
    "level_weights",
    "meet",
]
