"""Best constants of losses with several parameters."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.reductions.sums import mean

_STEPS, _HALVINGS = 100, 30
_DIFFERENCE, _TOLERANCE = 1e-5, 1e-11
_LONGEST = 3.0


def best_raw(
    loss: Loss, target: Target, start: Floats, bounds: tuple[Floats, Floats] | None
) -> Floats:
    """Minimize the mean loss over constants (r,) by Newton steps within bounds, from ``start``."""
    low, high = bounds or (np.full(len(start), -np.inf), np.full(len(start), np.inf))
    raw = np.clip(start, low, high)
    value, slope = _value(loss, target, raw), _slope(loss, target, raw)
    for _ in range(_STEPS):
        free = ~(((raw <= low) & (slope > 0)) | ((raw >= high) & (slope < 0)))
        step = np.where(free, _newton_step(loss, target, raw, slope, free), 0.0)
        for _ in range(_HALVINGS):
            moved = np.clip(raw + step, low, high)
            lower = _value(loss, target, moved)
            if lower <= value:
                break
            step = step / 2
        else:
            return raw
        size = np.max(np.abs(moved - raw) / (1 + np.abs(raw)))
        raw, value, slope = moved, lower, _slope(loss, target, moved)
        if size < _TOLERANCE:
            break
    return raw


def _newton_step(
    loss: Loss, target: Target, raw: Floats, slope: Floats, free: np.ndarray
) -> Floats:
    """The step of a hessian from differences, with positive eigenvalues, not too long."""
    curved = np.diag(_hessian(loss, target, raw))
    units = 1 / np.sqrt(curved)
    columns = []
    for k in range(len(raw)):
        step = np.zeros(len(raw))
        step[k] = _DIFFERENCE * units[k]
        rise = _slope(loss, target, raw + step) - _slope(loss, target, raw - step)
        columns.append(rise / (2 * _DIFFERENCE * units[k]))
    scaled = np.array(columns) * units * units[:, None]
    scaled = 0.5 * (scaled + scaled.T)
    scaled[~free], scaled[:, ~free] = 0.0, 0.0
    values, vectors = np.linalg.eigh(scaled + np.diag((~free).astype(float)))
    inverse = 1 / np.maximum(np.abs(values), 1e-6)
    step = -units * (vectors @ (inverse * (vectors.T @ (units * np.where(free, slope, 0.0)))))
    longest = np.max(np.abs(step) / np.maximum(1.0, units))
    return step if longest <= _LONGEST else step * (_LONGEST / longest)


def _hessian(loss: Loss, target: Target, raw: Floats) -> Floats:
    found = loss.gradients(target, target.starting_raw(raw)).hessian
    assert found is not None
    return np.diag(np.maximum(mean(target.with_y(found)), 1e-12))


def _slope(loss: Loss, target: Target, raw: Floats) -> Floats:
    return -mean(target.with_y(loss.gradients(target, target.starting_raw(raw)).negative_gradient))


def _value(loss: Loss, target: Target, raw: Floats) -> float:
    return float(mean(target.with_y(loss.value(target, target.starting_raw(raw))[:, None]))[0])
