"""Continuous pre-images for a Gaussian kernel."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.kernels import Gaussian
from hilboost.kernels.gram import evaluate

_STEPS = 60
_HALVINGS = 6
_CLOSE = 1e-7  # relative improvement below which a row has converged
_FAINT = 1e-300  # avoids division by zero if all centers are far away


def climb(kernel: Gaussian, start: Floats, centers: Floats, weights: Floats) -> Floats:
    """Maximize ``Σ_j w_j k(c_j, y)`` over ``y`` (n, c) from an initial value, for each row.

    The fixed-point update ``y ← Σ_j w_j k(c_j, y) c_j / Σ_j w_j k(c_j, y)`` (Mika et al. 1999) is a
    step along the gradient.  Boosted weights may be negative, so a step that does not improve the
    objective is halved.  If the denominator is not positive, a plain gradient step is tried
    instead.  Each of at most 60 steps costs O(n p c).  Rows that have converged are skipped.
    """
    found = start.copy()
    scale = kernel.length_scale
    C, Y = centers / scale, found / scale
    active = np.arange(len(Y))
    similar = evaluate(kernel, found, centers)
    value = np.einsum("ij,ij->i", weights, similar)
    for _ in range(_STEPS):
        W = weights[active] * similar
        total = W.sum(axis=1)
        # In scaled coordinates, the gradient is W C - total Y.  The update divides it by total.
        gradient = W @ C - total[:, None] * Y[active]
        usual = np.maximum(np.abs(W).sum(axis=1), _FAINT)
        length = 1 / np.where(total > 1e-3 * usual, total, usual)
        step = gradient * length[:, None]
        moved, new_value, similar = _search(
            kernel, Y[active], step, centers, weights[active], value[active], similar
        )
        improved = new_value - value[active] > _CLOSE * np.abs(new_value)
        Y[active], value[active] = moved, new_value
        active, similar = active[improved], similar[improved]
        if not len(active):
            break
    return np.asarray(Y * scale)


def _search(
    kernel: Gaussian,
    Y: Floats,
    step: Floats,
    centers: Floats,
    weights: Floats,
    value: Floats,
    similar: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Halve the steps of the rows until they increase the objective; other rows do not move.

    ``Y`` and ``step`` (n, c) are in scaled coordinates.  Return ``Y``, its objective (n,) and its
    kernel values (n, p) after the steps.
    """
    Y, value, similar = Y.copy(), value.copy(), similar.copy()
    rows = np.arange(len(Y))
    for halving in range(_HALVINGS):
        tried = Y[rows] + step[rows] / 2**halving
        similar_tried = evaluate(kernel, tried * kernel.length_scale, centers)
        value_tried = np.einsum("ij,ij->i", weights[rows], similar_tried)
        better = value_tried > value[rows]
        hit = rows[better]
        Y[hit], value[hit], similar[hit] = tried[better], value_tried[better], similar_tried[better]
        rows = rows[~better]
        if not len(rows):
            break
    return Y, value, similar
