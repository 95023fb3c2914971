"""Functions of time that survival models return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilboost.core.brief_repr import brief_repr
from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class StepFunction:
    """A function that is constant between its steps, like scikit-survival's.

    Attributes
    ----------
    x : (u,) float64
        Times of the steps, ascending.
    y : (u,) float64
        Values from these times on.
    start : float
        Value before the first step.
    """

    x: Floats
    y: Floats
    start: float = 1.0

    __repr__ = brief_repr

    def __call__(self, x: Any) -> Any:  # float or (m,) float64
        """Evaluate the function.

        ``x``: float or array-like (m,): times.
        """
        place = np.searchsorted(self.x, x, side="right")
        return np.append(self.start, self.y)[place]

    @property
    def domain(self) -> tuple[float, float]:
        """Range of times in which the function is estimated."""
        return 0.0, float(self.x[-1])
