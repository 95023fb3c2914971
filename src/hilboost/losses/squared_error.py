"""Half squared error of numbers, and on class indicators."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit

from hilboost.backends.loss_gradients import add_squares
from hilboost.core.dtypes import RAW, Floats
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.link import LogitLink, SoftmaxLink
from hilboost.core.loss import Loss
from hilboost.core.target import Target, TargetUnits
from hilboost.losses._columns import array_for, row_sums, softmax
from hilboost.losses._location import location_units
from hilboost.reductions.sums import mean, total


class SquaredError(Loss):
    """``(y - F)² / 2``, summed over the target columns.

    The factor ½ makes the negative gradient the residual (LZ2016; G2007 in feature space).
    """

    regressor_name = "squared_error"
    compiled_name = "squared_error"
    quadratic = True
    joins_kernel_machine = True
    divides_rows = True
    gaussian = True
    bounded_hessian = True
    additive_over_targets = True
    symmetric = True
    degree = 2.0
    evaluates_both = True
    checked_by_value = True

    def units(self, target: Target) -> TargetUnits | None:
        """Use a power of two for an extreme target, and the spreads of several targets."""
        return location_units(self, target, lambda _: self)

    def initial_raw(self, target: Target) -> Floats:
        """The mean."""
        return mean(target)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return _value_and_residual(target, raw, None)[0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """The residuals; the hessian is one."""
        return Gradients(target.y - raw, structure=Structure(residual=True))

    def value_and_gradients(
        self, target: Target, raw: Floats, memory: Gradients | None = None
    ) -> tuple[Floats, Gradients]:
        """Both from the same residuals."""
        value, residual = _value_and_residual(target, raw, memory)
        return value, Gradients(residual, structure=Structure(residual=True))


def _value_and_residual(
    target: Target, raw: Floats, memory: Gradients | None
) -> tuple[Floats, Floats]:
    """Loss of every row (n,), and residuals (n, r)."""
    value, residual = np.empty(len(raw)), array_for(raw, memory)
    for k in range(raw.shape[1]):
        y, scores = (np.ascontiguousarray(columns[:, k], RAW) for columns in (target.y, raw))
        add_squares(y, scores, k == 0, value, residual[:, k])
    return value, residual


_SHARPNESS = 8.0
_LOG_SHARPNESS = (-2.0, 5.0)
_SMALLEST_PROBABILITY = 1e-15


class OneHotSquaredError(Loss):
    """``sum_c (1[y = c] - F_c)² / 2``: least-squares classification.

    Parameters
    ----------
    n_classes : int
        Two classes have one column, ½ for class 1 and -½ for class 0; its sign is the decision.
    sharpness : float
        Factor of the scores in the softmax that gives the probabilities.

    Notes
    -----
    One linear system serves all classes and no iteration is needed.  This is the classifier of
    kernel ridge regression.
    """

    classifier_name = "squared_error"
    n_classes_range = (2, None)
    quadratic = True
    divides_rows = True
    bounded_hessian = True
    sharpness: float

    def __init__(self, n_classes: int, sharpness: float = _SHARPNESS) -> None:
        self.n_classes = n_classes
        self.sharpness = sharpness

    @property
    def link(self) -> LogitLink | SoftmaxLink:
        """Logit or softmax link of the scaled scores."""
        if self.n_classes == 2:
            return LogitLink(2 * self.sharpness)
        return SoftmaxLink(self.n_classes, self.sharpness)

    def with_sharpness(self, sharpness: float) -> OneHotSquaredError:
        """Return the loss with another ``sharpness``."""
        return OneHotSquaredError(self.n_classes, sharpness)

    def sharpened(self, target: Target, raw: Floats) -> OneHotSquaredError:
        """Choose the sharpness that minimizes the log loss on held-out rows.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64

        Returns
        -------
        OneHotSquaredError
        """
        codes = target.y[:, 0].astype(np.intp)

        def log_loss(log_sharpness: float) -> float:
            p = OneHotSquaredError(self.n_classes, np.exp(log_sharpness)).inverse_link(raw)
            own = np.maximum(p[np.arange(len(codes)), codes], _SMALLEST_PROBABILITY)
            return -total(np.log(own), target)

        found = minimize_scalar(log_loss, bounds=_LOG_SHARPNESS, method="bounded")
        return OneHotSquaredError(self.n_classes, float(np.exp(found.x)))

    def _indicators(self, target: Target) -> Floats:
        if self.n_classes == 2:
            return target.y - 0.5
        indicators = np.zeros((len(target.y), self.n_classes))
        indicators[np.arange(len(target.y)), target.y[:, 0].astype(np.intp)] = 1.0
        return indicators

    def initial_raw(self, target: Target) -> Floats:
        """Weighted class frequencies; for two classes, the frequency of class 1 minus ½."""
        return mean(target.with_y(self._indicators(target)))

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return 0.5 * row_sums((self._indicators(target) - raw) ** 2)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """The residuals; the hessian is one."""
        return Gradients(self._indicators(target) - raw)

    def inverse_link(self, raw: Floats) -> Floats:
        """Probabilities, (n, C)."""
        if self.n_classes == 2:
            score = self.sharpness * 2 * raw
            return np.hstack([expit(-score), expit(score)])
        return softmax(self.sharpness * (raw - raw.max(axis=1, keepdims=True)))
