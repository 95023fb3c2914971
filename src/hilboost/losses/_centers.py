"""Centers of points by leaf: geometric medians, and M-estimates of location."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.medians import geometric_medians
from hilboost.core.dtypes import Floats
from hilboost.losses._columns import row_sums

Reweight = Callable[[Floats], Floats]
"""From distances (n,) to the weights ``ℓ'(d) / d`` of the parabolas that majorize the loss."""

_TOLERANCE = 1e-10  # of the mean distance: how far the last step went
_MOST_CYCLES = 200


def distances(residual: Floats, outside: Floats | None = None) -> Floats:
    """Compute the lengths of residuals (n, r) with parts ``outside`` (n,) their space, (n,)."""
    square = row_sums(residual * residual)
    return np.sqrt(square if outside is None else square + outside * outside)


def medians_of_leaves(
    residual: Floats,  # (n, r) float64
    # (n,) float64: length of the part of each residual at a right angle to these columns
    outside: Floats,
    weight: Floats | None,  # (n,) float64 or None
    leaves: NDArray[np.int32],  # (n,) int32: rows with -1 are ignored
    n_leaves: int,
) -> Floats:
    """Compute the geometric median of the residuals in every leaf, (n_leaves, r)."""
    points = np.ascontiguousarray(residual, dtype=np.float64)
    if weight is None:
        weight = np.ones(len(points))
    else:
        leaves = np.where(weight > 0, leaves, np.int32(-1))
    return geometric_medians(
        points, outside * outside, weight, leaves, n_leaves, _TOLERANCE, _MOST_CYCLES
    )


def center(points: Floats, outside: Floats, weight: Floats | None, reweight: Reweight) -> Floats:
    """Find the M-estimate of location of points (n, r), (r,), from their geometric median.

    Iteratively reweighted least squares: no step raises the loss.  Where the weights of all points
    vanish, the geometric median stays.
    """
    mass = np.ones(len(points)) if weight is None else weight
    leaves = np.zeros(len(points), dtype=np.int32)
    (found,) = medians_of_leaves(points, outside, weight, leaves, 1)
    for _ in range(_MOST_CYCLES):
        distance = distances(points - found, outside)
        pull = mass * reweight(distance)
        if not pull.sum() > 0:
            break
        step = np.average(points, axis=0, weights=pull) - found
        found = found + step
        if np.linalg.norm(step) <= _TOLERANCE * np.average(distance, weights=mass):
            break
    return found
