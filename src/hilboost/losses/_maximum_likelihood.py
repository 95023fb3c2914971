"""Best constants of losses with several parameters."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.reductions.sums import mean

_STEPS, _HALVINGS = 100, 30
_DIFFERENCE = 1e-5
_LEAST_GAIN = 1e-8  # of the loss, that the last step promises
_LONGEST = 3.0
_NEAR = 0.1  # a bound, in units of the uncertainty of a row


def best_raw(
    loss: Loss, target: Target, start: Floats, bounds: tuple[Floats, Floats] | None
) -> Floats:
    """Minimize the mean loss over constants (r,) by Newton steps within bounds, from ``start``.

    The gradients of ``loss`` must not know the bounds.  As in Bertsekas (1982), parameters that are
    close to a bound beyond which the loss falls go there, and the step of the others ignores them.
    """
    low, high = bounds or (np.full(len(start), -np.inf), np.full(len(start), np.inf))
    raw = np.clip(start, low, high)
    value, slope = _value(loss, target, raw), _slope(loss, target, raw)
    for _ in range(_STEPS):
        units = 1 / np.sqrt(_information(loss, target, raw))
        descent = np.clip(raw - units**2 * slope, low, high) - raw
        close = np.minimum(_NEAR, np.linalg.norm(descent / units)) * units
        end = np.where(slope > 0, low, high)
        free = np.abs(end - raw) > close
        step = np.where(free, 0.0, end - raw)
        step[free] = _newton_step(loss, target, raw, slope, units, free)
        gain = -slope @ step
        for _ in range(_HALVINGS if gain > _LEAST_GAIN else 1):
            moved = np.clip(raw + step, low, high)
            lower = _value(loss, target, moved)
            if lower < value:
                break
            step = step / 2
        else:
            break
        raw, value, slope = moved, lower, _slope(loss, target, moved)
        if gain <= _LEAST_GAIN:
            break
    return raw


def unbounded(loss: Any) -> Any:
    """Return the same loss, whose steps may go anywhere."""
    found = copy(loss)
    found.bounds = None
    return found


def _newton_step(
    loss: Loss, target: Target, raw: Floats, slope: Floats, units: Floats, free: np.ndarray
) -> Floats:
    """The step of a hessian from differences, with positive eigenvalues, not too long."""
    columns = []
    for k in np.flatnonzero(free):
        step = np.zeros(len(raw))
        step[k] = _DIFFERENCE * units[k]
        rise = _slope(loss, target, raw + step) - slope
        columns.append(rise[free] / _DIFFERENCE)
    units = units[free]
    scaled = np.reshape(columns, (len(units), len(units))) * units
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    inverse = 1 / np.maximum(np.abs(values), 1e-6)
    step = -units * (vectors @ (inverse * (vectors.T @ (units * slope[free]))))
    longest = np.max(np.abs(step) / np.maximum(1.0, units), initial=0.0)
    return step if longest <= _LONGEST else step * (_LONGEST / longest)


def _information(loss: Loss, target: Target, raw: Floats) -> Floats:
    found = loss.gradients(target, target.starting_raw(raw)).hessian
    assert found is not None
    return np.maximum(mean(target.with_y(found)), 1e-12)


def _slope(loss: Loss, target: Target, raw: Floats) -> Floats:
    return -mean(target.with_y(loss.gradients(target, target.starting_raw(raw)).negative_gradient))


def _value(loss: Loss, target: Target, raw: Floats) -> float:
    return float(mean(target.with_y(loss.value(target, target.starting_raw(raw))[:, None]))[0])
