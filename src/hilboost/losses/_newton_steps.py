"""Hessians of losses whose Newton steps would overshoot exponentially."""

from __future__ import annotations

import numpy as np

from hilboost.backends.newton_steps import LONGEST_STEP
from hilboost.core.dtypes import Floats


def with_bounded_steps(hessian: Floats, gradient: Floats) -> Floats:
    """Raise hessians far from the optimum, where a Newton step is too long by orders of magnitude.

    A step changes a logarithm: of the mean, say.  It is of the order of the ratio of target and
    mean, or of its inverse, but should be of the order of the logarithm of this ratio.
    """
    least = np.abs(gradient)
    least /= LONGEST_STEP
    return np.maximum(hessian, least, out=least)
