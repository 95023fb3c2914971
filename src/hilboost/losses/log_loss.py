"""Log loss for two or more classes, and the loss of a classifier of a single class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from hilboost.backends.loss_gradients import FlatGradients, logistic
from hilboost.backends.loss_gradients import softmax as fused_softmax
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.link import LogitLink, SoftmaxLink
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.losses._columns import array_for, arrays_for, flat_columns, softmax
from hilboost.reductions.sums import masses_of_groups, mean

_SMALLEST_PROBABILITY = 1e-15
_TWO_CLASSES = Structure(bound=0.25, of_probabilities=True)
_CLASSES = Structure(bound=0.5, of_probabilities=True)  # Böhning's bound, (I - 11'/C) / 2


class BinomialLogLoss(Loss):
    """``log(1 + e^F) - y F`` for ``y`` in {0, 1}; ``F`` is the logit of class 1."""

    classifier_name = "log_loss"
    compiled_name = "logistic"
    n_classes_range = (2, 2)
    joins_kernel_machine = True
    divides_rows = True
    bounded_hessian = True
    evaluates_both = True
    checked_by_value = True
    takes_integer_codes = True

    def initial_raw(self, target: Target) -> Floats:
        """Logit of the weighted frequency of class 1."""
        p = np.clip(mean(target), _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
        return logit(p)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return self.value_and_gradients(target, raw)[0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient ``y - p`` and hessian ``p (1 - p)``, or more for short steps."""
        return self.value_and_gradients(target, raw)[1]

    def value_and_gradients(
        self, target: Target, raw: Floats, memory: Gradients | None = None
    ) -> tuple[Floats, Gradients]:
        """Both from the same exponentials."""
        value = np.empty(len(raw))
        scores, y = np.ascontiguousarray(raw[:, 0]), np.ascontiguousarray(target.y[:, 0])
        if memory is not None and memory.structure.logistic:
            negative = array_for(raw, memory)
            logistic(y, scores, value, negative[:, 0], None)
            return value, Gradients(negative, structure=replace(_TWO_CLASSES, logistic=True))
        negative, hessian = arrays_for(raw, memory)
        logistic(y, scores, value, negative[:, 0], hessian[:, 0])
        return value, Gradients(negative, hessian, _TWO_CLASSES)

    @property
    def link(self) -> LogitLink:
        """Logit."""
        return LogitLink()

    def inverse_link(self, raw: Floats) -> Floats:
        """Probabilities of both classes, (n, 2)."""
        return np.hstack([expit(-raw), expit(raw)])


class MultinomialLogLoss(Loss):
    """``log(sum_c e^F_c) - F_y``; ``y`` contains class codes 0 … n_classes - 1 (LZ2016).

    Parameters
    ----------
    n_classes : int

    Notes
    -----
    The hessian diagonal is ``C / (C - 1) p (1 - p)``.  The scores have one degree of freedom fewer
    than there are classes; with this factor, two classes give the same result as
    :class:`BinomialLogLoss` (Friedman 2001, Algorithm 6, has its inverse in the leaf value).
    """

    classifier_name = "log_loss"
    compiled_name = "softmax"
    n_classes_range = (3, None)
    joins_kernel_machine = True
    divides_rows = True
    bounded_hessian = True
    evaluates_both = True
    checked_by_value = True
    takes_integer_codes = True

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def initial_raw(self, target: Target) -> Floats:
        """Logarithms of the weighted class frequencies, centered."""
        codes = _codes(target)
        mass = masses_of_groups(codes, self.n_classes, target)
        start = np.log(np.maximum(mass / mass.sum(), _SMALLEST_PROBABILITY))
        return start - start.mean()

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return self.value_and_gradients(target, raw)[0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient ``1[c = y] - p_c`` and the scaled hessian, or more for short steps."""
        return self.value_and_gradients(target, raw)[1]

    def value_and_gradients(
        self, target: Target, raw: Floats, memory: Gradients | None = None
    ) -> tuple[Floats, Gradients]:
        """Both from the same exponentials."""
        negative, hessian = arrays_for(raw, memory)
        value, totals = np.empty((2, len(raw)))
        (written, apart), (curved, _) = flat_columns(negative), flat_columns(hessian)
        (scores, step), codes = flat_columns(raw), _codes(target)
        gradients = FlatGradients(written, curved, apart)
        fused_softmax(self.n_classes, scores, step, codes, value, totals, gradients)
        return value, Gradients(negative, hessian, _CLASSES)

    @property
    def link(self) -> SoftmaxLink:
        """Softmax."""
        return SoftmaxLink(self.n_classes)

    def inverse_link(self, raw: Floats) -> Floats:
        """Softmax, (n, C)."""
        return softmax(raw - raw.max(axis=1, keepdims=True))


def _codes(target: Target) -> NDArray[np.integer]:
    """Classes of the rows, (n,): unsigned integers as they are, or int64."""
    codes = target.y[:, 0]
    return np.ascontiguousarray(codes, dtype=None if codes.dtype.kind == "u" else np.int64)


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
