"""The loss of a classifier if all labels are of one class."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.link import SoftmaxLink
from hilboost.core.loss import Loss
from hilboost.core.target import Target


class OneClass(Loss):
    """Zero for every prediction: the only class has probability one."""

    quadratic = True
    divides_rows = True
    bounded_hessian = True

    def initial_raw(self, target: Target) -> Floats:
        """Zero."""
        return np.zeros(1)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Zero, (n,)."""
        return np.zeros(len(raw))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Zero; the hessian is one."""
        return Gradients(np.zeros_like(raw))

    @property
    def link(self) -> SoftmaxLink:
        """Softmax of one score, which is one."""
        return SoftmaxLink(1)

    def inverse_link(self, raw: Floats) -> Floats:
        """One, (n, 1)."""
        return np.ones_like(raw)
