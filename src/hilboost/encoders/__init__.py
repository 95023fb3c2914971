"""Encoding of category codes as numbers that trees can order."""

from hilboost.encoders.averages import Averaged, class_indicators, known_numbers
from hilboost.encoders.encoding import Encoder, Encoding, meet
from hilboost.encoders.rare_levels import kept_levels, level_weights
from hilboost.encoders.target_encoding import LevelKeys, TargetEncoding

__all__ = [
    "Averaged",
    "Encoder",
    "Encoding",
    "LevelKeys",
    "TargetEncoding",
    "class_indicators",
    "kept_levels",
    "known_numbers",
    "level_weights",
    "meet",
]
