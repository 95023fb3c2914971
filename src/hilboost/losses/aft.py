"""Accelerated failure times: the logarithm of the time is a prediction plus scaled noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq, minimize

from hilboost.backends.exact_sums import rounded, sum_of
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown, unknown_name
from hilboost.core.gradients import Gradients
from hilboost.core.loss_kinds import AdaptiveLoss
from hilboost.core.plain_values import is_number, is_one_of
from hilboost.core.target import Target
from hilboost.losses._survival import (
    DISTRIBUTIONS,
    UPPER,
    Residuals,
    check_columns,
    check_no_entry,
    likelihood,
)
from hilboost.losses.log_link import with_bounded_steps

_SMALLEST_LOG, _LARGEST_LOG = np.log(1e-2), np.log(1e2)
_FIRST_STEP, _TOLERANCE = 0.3, 1e-2
_LARGEST = 15.0
_SMALLEST_HESSIAN = 1e-6


class AFT(AdaptiveLoss):
    """Negative log likelihood of the time ``T`` with ``log T = -F + scale * Z``.

    ``F`` is a risk: the larger it is, the earlier is the event.

    Parameters
    ----------
    distribution : {"normal", "logistic", "extreme"}, default="normal"
        Distribution of ``Z``.  "extreme" is that of the smallest of many values, so that ``T`` has
        a Weibull distribution.
    scale : float or None, default=None
        ``None`` estimates it before each stage, by maximum likelihood.

    Raises
    ------
    InvalidParameter
        If the distribution has another name, or ``scale`` is not positive.

    Notes
    -----
    Times may be exact, right-censored, left-censored, or known to lie in an interval.  The
    densities are log-concave, so that the loss is convex.  As in XGBoost, gradients and hessians
    are bounded.  Entry times and strata are not supported.
    """

    survival_name = "aft"

    def __init__(self, distribution: str = "normal", scale: float | None = None) -> None:
        if not is_one_of(distribution, DISTRIBUTIONS):
            raise unknown_name("distribution", distribution, DISTRIBUTIONS)
        if scale is not None and not (is_number(scale) and 0 < scale < np.inf):
            raise InvalidParameter(f"aft: scale must be a positive number; got {shown(scale)}.")
        self.distribution, self.scale = distribution, scale

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the parameter ``distribution``."""
        return cls(parameters.get("distribution", "normal"))

    def check(self, target: Target) -> None:
        """Check that there are times of events, all positive, without entry times and strata."""
        check_columns(target)
        upper = target.y[:, UPPER]
        if not np.isfinite(upper).any():
            raise InvalidData(
                "y contains no event (True or 1), so that times cannot be estimated; pass rows "
                "with events."
            )
        self.check_rows(target.y)
        check_no_entry(target, "aft")

    def check_rows(self, y: Floats) -> None:
        """Reject events at time 0."""
        at_once = y[:, UPPER] <= 0
        if at_once.any():
            raise InvalidData(
                f"row {int(np.argmax(at_once))} of y has an event at time 0, whose logarithm is "
                "infinite; add a small number, or use loss='cox'."
            )

    def initial_raw(self, target: Target) -> Floats:
        """Maximum likelihood, together with the scale."""
        return np.array([self.located(target, np.zeros((len(target.y), 1)))[0]])

    def located(self, target: Target, raw: Floats) -> tuple[float, float]:
        """Find the shift of raw predictions, and the scale, that maximize the likelihood.

        Parameters
        ----------
        target : Target
        raw : (n, 1) float64

        Returns
        -------
        shift, scale : float
        """
        with np.errstate(divide="ignore"):
            places = np.log(target.y[:, :2]) + raw
        known = places[np.isfinite(places)]
        middle = -0.5 * float(known.max() + known.min())
        unit = self.scale or best_scale(self.distribution, target, raw + middle)
        events = np.isfinite(target.y[:, UPPER]).astype(np.float64)
        n_events = float(rounded(sum_of(events, target.weight))) or 1.0

        def objective(theta: Floats) -> tuple[float, Floats]:
            precision, place = float(theta[0]), float(theta[1])
            scale, scores = unit / precision, raw + (middle + unit * place / precision)
            value, pull, _ = likelihood(self.distribution, scale, target.y, scores[:, 0])
            stretch = Residuals(self.distribution, target.y, scores[:, 0], target.weight)
            sums = sum_of(value, target.weight), sum_of(pull, target.weight)
            total, by_shift = (float(rounded(one)) for one in sums)
            by_log_scale = float(rounded(sum_of(stretch.slopes(scale), stretch.weight)))
            by_precision = (by_shift * unit * place / precision - by_log_scale) / precision
            gradient = np.array([by_precision, -by_shift * unit / precision])
            return total / n_events, gradient / n_events

        # The likelihood is log-concave in 1 / scale and shift / scale (Olsen 1978).
        logs = (_SMALLEST_LOG, _LARGEST_LOG) if self.scale is None else (np.log(unit), np.log(unit))
        bounds = [(unit / np.exp(logs[1]), unit / np.exp(logs[0])), (None, None)]
        found = minimize(objective, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=bounds).x
        return middle + unit * float(found[1] / found[0]), unit / float(found[0])

    def adapted(self, target: Target, raw: Floats) -> AFT:
        """Return the loss with the scale that maximizes the likelihood."""
        if self.scale is not None:
            return self
        return AFT(self.distribution, best_scale(self.distribution, target, raw))

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return likelihood(self.distribution, self.scale or 1.0, target.y, raw[:, 0])[0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Derivatives of the log likelihood, bounded."""
        scale = self.scale or 1.0
        _, negative, hessian = likelihood(self.distribution, scale, target.y, raw[:, 0])
        negative = np.clip(negative, -_LARGEST / scale, _LARGEST / scale)
        hessian = np.clip(hessian, _SMALLEST_HESSIAN, _LARGEST / scale**2)
        hessian = with_bounded_steps(hessian, negative / scale)
        return Gradients(negative[:, None], hessian[:, None])


def best_scale(distribution: str, target: Target, raw: Floats) -> float:
    """Return the scale that maximizes the likelihood, between 0.01 and 100, to about 1 %."""
    found = Residuals(distribution, target.y, raw[:, 0], target.weight)

    def slope(logarithm: float) -> float:
        slopes = found.slopes(float(np.exp(logarithm)))
        return float(rounded(sum_of(slopes, found.weight)))

    ends, step = [_start(found)] * 2, _FIRST_STEP
    slopes = [slope(ends[0])] * 2
    # The likelihood has one maximum: walk to the other side of it.
    ahead = int(slopes[0] < 0)
    while 0.0 not in slopes and (slopes[0] > 0) == (slopes[1] > 0):
        if ends[ahead] == (_LARGEST_LOG if ahead else _SMALLEST_LOG):
            return float(np.exp(ends[ahead]))
        ends[1 - ahead], slopes[1 - ahead] = ends[ahead], slopes[ahead]
        next_end = ends[ahead] + (2 * ahead - 1) * step
        ends[ahead] = float(np.clip(next_end, _SMALLEST_LOG, _LARGEST_LOG))
        slopes[ahead], step = slope(ends[ahead]), 2 * step
    if 0.0 in slopes:
        return float(np.exp(ends[slopes.index(0.0)]))
    return float(np.exp(brentq(slope, ends[0], ends[1], xtol=_TOLERANCE, rtol=_TOLERANCE)))


def _start(found: Residuals) -> float:
    """Logarithm of the root mean square of the residuals of exact times."""
    weight = None if found.weight is None else found.weight[: len(found.exact)]
    mass = len(found.exact) if weight is None else float(rounded(sum_of(weight)))
    mean = float(rounded(sum_of(found.exact**2, weight))) / (mass or 1.0)
    return float(np.clip(0.5 * np.log(mean), _SMALLEST_LOG, _LARGEST_LOG)) if mean > 0 else 0.0
