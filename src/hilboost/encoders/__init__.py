"""Encoding of category codes as numbers that trees can order."""

from hilboost.encoders.encoding import (
    Averaged,
    Encoder,
    Encoding,
    class_indicators,
    kept_levels,
    known_numbers,
    level_weights,
    meet,
)
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
