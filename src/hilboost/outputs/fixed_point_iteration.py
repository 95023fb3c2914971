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
    """Maximize ``Σ_j w_j k(c_j, y)`` over ``y`` from an initial value, for each row.

    The fixed-point update ``y ← Σ_j w_j k(c_j, y) c_j / Σ_j w_j k(c_j, y)`` (Mika et al. 1999) is
    a step along the gradient.  Boosted weights may be negative, so a step that does not improve
    the objective is halved.  If the denominator is not positive, a plain gradient step is tried
    instead.

    Parameters
    ----------
    kernel : Gaussian
    start : (n, c) float64
    centers : (p, c) float64
    weights : (n, p) float64

    Returns
    -------
    (n, c) float64
        Never worse than the initial values.

    Notes
    -----
    Each of at most 60 steps costs O(n p c).  Rows that have converged are skipped.
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
        improved = np.zeros(len(active), dtype=bool)
        new_value, new_similar = value[active], similar
        open_rows = np.arange(len(active))
        factor = 1.0
        for _ in range(_HALVINGS):
            rows = active[open_rows]
            tried = Y[rows] + factor * step[open_rows]
            similar_tried = evaluate(kernel, tried * scale, centers)
            value_tried = np.einsum("ij,ij->i", weights[rows], similar_tried)
            better = value_tried > new_value[open_rows]
            hit = open_rows[better]
            Y[active[hit]] = tried[better]
            improved[hit] = value_tried[better] - new_value[hit] > _CLOSE * np.abs(
                value_tried[better]
            )
            new_value[hit] = value_tried[better]
            new_similar[hit] = similar_tried[better]
            open_rows = open_rows[~better]
            factor /= 2
            if not len(open_rows):
                break
        value[active] = new_value
        active, similar = active[improved], new_similar[improved]
        if not len(active):
            break
    return np.asarray(Y * scale)
