"""Exponential loss for two or more classes, as in AdaBoost and SAMME."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.link import LogitLink, SoftmaxLink
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.losses._columns import row_sums, softmax
from hilboost.losses.log_link import safe_exp
from hilboost.reductions.sums import masses_of_groups, mean

_SMALLEST_PROBABILITY = 1e-15


class Exponential(Loss):
    """``exp(-(2y - 1) F)`` for ``y`` in {0, 1}; ``F`` is half the logit of class 1."""

    classifier_name = "exponential"
    n_classes_range = (2, 2)
    divides_rows = True

    def initial_raw(self, target: Target) -> Floats:
        """Half the logit of the weighted frequency of class 1."""
        p = np.clip(mean(target), _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
        return 0.5 * logit(p)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return safe_exp((1 - 2 * target.y) * raw)[:, 0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient ``±exp(∓F)`` and hessian ``exp(∓F)``."""
        sign = 2 * target.y - 1
        size = safe_exp(-sign * raw)
        return Gradients(sign * size, size)

    @property
    def link(self) -> LogitLink:
        """Logit link applied to twice ``raw``."""
        return LogitLink(2.0)

    def inverse_link(self, raw: Floats) -> Floats:
        """Probabilities of both classes, (n, 2)."""
        return np.hstack([expit(-2 * raw), expit(2 * raw)])


class MultinomialExponential(Loss):
    """``exp(-(F_y - mean(F)) / (C - 1))``, the loss of SAMME (Zhu et al. 2009, eq. 2).

    ``y`` holds class codes 0 … n_classes - 1.  With the coding ``Y_y = 1`` and
    ``Y_c = -1 / (C - 1)`` for the other classes, the loss is ``exp(-Y'F / C)`` for scores that sum
    to zero.  A constant that is added to all scores does not change it.

    Parameters
    ----------
    n_classes : int

    Notes
    -----
    The expected loss is minimal at ``F_c = (C - 1) (log p_c - mean(log p))``, so that the
    probabilities are ``softmax(F / (C - 1))``.  The hessian diagonal has the factor
    ``C / (C - 1)`` of :class:`MultinomialLogLoss`; two classes give the same result as
    :class:`Exponential`, with ``F = F_1 = -F_0``.

    References
    ----------
    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and Its Interface 2, 2009.
    """

    classifier_name = "exponential"
    n_classes_range = (3, None)
    divides_rows = True

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def initial_raw(self, target: Target) -> Floats:
        """``C - 1`` times the centered logarithms of the weighted class frequencies."""
        codes = target.y[:, 0].astype(np.intp)
        mass = masses_of_groups(codes, self.n_classes, target)
        start = np.log(np.maximum(mass / mass.sum(), _SMALLEST_PROBABILITY))
        return (self.n_classes - 1) * (start - start.mean())

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        own = raw[np.arange(len(raw)), target.y[:, 0].astype(np.intp)]
        return safe_exp((row_sums(raw) / self.n_classes - own) / (self.n_classes - 1))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Loss times ``1/C`` for the own class and ``-1 / (C (C - 1))`` for others; scaled hessian.

        The second derivatives are the loss times the squares of these factors.
        """
        C, rows = self.n_classes, np.arange(len(raw))
        codes = target.y[:, 0].astype(np.intp)
        size = self.value(target, raw)
        negative = np.repeat(-size[:, None] / (C * (C - 1)), C, axis=1)
        negative[rows, codes] = size / C
        # The scores have one degree of freedom fewer than there are classes.
        hessian = np.repeat(size[:, None] / (C * (C - 1) ** 3), C, axis=1)
        hessian[rows, codes] = size / (C * (C - 1))
        return Gradients(negative, hessian)

    @property
    def link(self) -> SoftmaxLink:
        """Softmax of the scores over ``C - 1``."""
        return SoftmaxLink(self.n_classes, 1 / (self.n_classes - 1))

    def inverse_link(self, raw: Floats) -> Floats:
        """Probabilities, (n, C)."""
        return softmax((raw - raw.max(axis=1, keepdims=True)) / (self.n_classes - 1))
