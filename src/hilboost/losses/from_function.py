"""Losses given as a function that returns the gradient and the hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidData
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.losses._columns import row_sums

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_MOST_STEPS = 100
_TOLERANCE = 1e-12
_STEP = 1e-6  # of finite differences


class FunctionLoss(Loss):
    """A loss of which a function computes the derivatives.

    It takes ``y`` and ``raw``, and returns the gradient and the hessian with respect to ``raw`` of
    each row: arrays (n,) with one target, (n, c) with several.  The derivatives of a row may depend
    only on this row.

    The value is that of the loss minus its value at ``raw = 0``, the integral of the gradient
    along the line between them, by Gauss-Legendre quadrature with eight nodes.  It is exact for
    polynomials up to degree 16.  The start value is where the weighted mean of the gradients is
    zero.
    """

    def __init__(self, function: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self.function = function

    def initial_raw(self, target: Target) -> Floats:
        """Find the zero of the weighted mean gradient by Newton steps, (c,)."""
        self._check_sign(target)
        raw = np.zeros(target.y.shape[1])
        slope, curvature = self._means(target, raw)
        for _ in range(_MOST_STEPS):
            self._check_start(raw, slope, curvature)
            if (np.abs(slope / curvature) <= _TOLERANCE * np.maximum(np.abs(raw), 1e-3)).all():
                break
            step = self._shortened(target, raw, -slope / curvature, slope)
            if not step.any():
                break
            raw = raw + step
            slope, curvature = self._means(target, raw)
        return raw

    def _shortened(self, target: Target, raw: Floats, step: Floats, slope: Floats) -> Floats:
        """Halve steps (c,) until the mean gradients fall; 0 for those that rounding stops."""
        for _ in range(_MOST_STEPS):
            with np.errstate(over="ignore", invalid="ignore"):
                falls = np.abs(self._means(target, raw + step)[0]) < np.abs(slope)
            if (falls | (step == 0)).all():
                return step
            step = np.where(falls, step, 0.5 * step)
        return np.where(falls, step, 0.0)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Integral of the gradient from zero to ``raw``, (n,)."""
        total = np.zeros(len(raw))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            gradient, _ = self._derivatives(target, raw * (0.5 * (node + 1)))
            total += 0.5 * weight * row_sums(gradient * raw)
        return total

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """The negative gradient and the hessian."""
        gradient, hessian = self._derivatives(target, raw)
        return Gradients(-gradient, hessian)

    def _means(self, target: Target, raw: Floats) -> tuple[Floats, Floats]:
        """Weighted means of the gradients and the hessians at a constant, (c,) each."""
        gradient, hessian = self._derivatives(target, np.broadcast_to(raw, target.y.shape))
        weight = target.weight
        return np.average(gradient, axis=0, weights=weight), np.average(
            hessian, axis=0, weights=weight
        )

    def _check_sign(self, target: Target) -> None:
        """Reject a gradient whose derivative is minus the hessian, even where ``raw`` equals y."""
        for raw in (np.zeros_like(target.y), target.y):
            step = _STEP * np.maximum(np.abs(raw), 1.0)
            with np.errstate(all="ignore"):
                hessian = self._derivatives(target, raw)[1]
                above, below = (self._derivatives(target, raw + s * step)[0] for s in (1, -1))
                slope = (above - below) / (2 * step)
                if not (hessian > 0).all() or not np.allclose(slope, -hessian, rtol=0.01, atol=0):
                    return
        raise IncompatibleParts(
            f"loss={self._name} returns the negative gradient, which falls as raw rises; return "
            "the gradient and the hessian with respect to raw."
        )

    def _check_start(self, raw: Floats, slope: Floats, curvature: Floats) -> None:
        if not (np.isfinite(slope).all() and np.isfinite(curvature).all() and curvature.min() > 0):
            raise InvalidData(
                f"loss={self._name} has no best constant: at raw={raw}, the mean gradient is "
                f"{slope} and the mean hessian {curvature}; return finite gradients and positive "
                "hessians, or pass a hilboost.Loss with its own initial_raw."
            )

    def _derivatives(self, target: Target, raw: Floats) -> tuple[Floats, Floats]:
        """Gradient and hessian, (n, c) each."""
        y, shape = target.y, raw.shape
        if shape[1] == 1:
            y, raw = y[:, 0], raw[:, 0]
        found = self.function(y, raw)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise IncompatibleParts(
                f"loss={self._name} must return a tuple of the gradient and the hessian; it "
                f"returned an object of type {type(found).__name__}."
            )
        gradient, hessian = (np.asarray(part, dtype=np.float64) for part in found)
        if gradient.shape != raw.shape or hessian.shape != raw.shape:
            raise IncompatibleParts(
                f"loss={self._name} must return a gradient and a hessian of the shape of raw, "
                f"{raw.shape}; it returned {gradient.shape} and {hessian.shape}."
            )
        return gradient.reshape(shape), hessian.reshape(shape)

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)
