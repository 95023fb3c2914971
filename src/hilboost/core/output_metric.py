"""Measures of how well predicted labels agree with the true ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class OutputMetric:
    """A measure of the agreement of labels, and the decoding method that serves it best."""

    # one of the decoding methods of the embedding: the decision with the largest expected
    # agreement, as far as the predicted points determine it
    way: str
    # ``agreement(labels, predicted)`` compares two sequences of n labels and returns (n,) float64;
    # larger is better.  Distances have a negative sign.
    agreement: Callable[[Any, Any], Floats]
