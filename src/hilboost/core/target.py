"""Targets: encoded labels with sample weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class Target:
    """Encoded labels with sample weights.

    Attributes
    ----------
    y : (n, c) float64
        Encoded labels: target values, or class codes (c = 1).
    weight : (n,) float64 or None
        Sample weights; ``None`` means one for each row.
    """

    y: Floats
    weight: Floats | None = None

    def rows(self, index: Any) -> Target:
        """Return the target of a subset of the rows.

        Parameters
        ----------
        index : slice or index array

        Returns
        -------
        Target
        """
        return Target(self.y[index], None if self.weight is None else self.weight[index])

    def followed_by(self, other: Target) -> Target:
        """Return the target of the rows of both.

        Parameters
        ----------
        other : Target
            With weights if and only if this one has weights.

        Returns
        -------
        Target
        """
        y = np.concatenate([self.y, other.y])
        if self.weight is None or other.weight is None:
            return Target(y)
        return Target(y, np.concatenate([self.weight, other.weight]))

    def total_weight(self) -> float:
        """Return the sum of the weights, rounded once, in whatever order they are.

        Returns
        -------
        float
        """
        return float(len(self.y)) if self.weight is None else math.fsum(self.weight.tolist())
