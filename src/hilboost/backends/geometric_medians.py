"""Geometric medians of the rows of every leaf.

The geometric median ``v`` of points ``p`` with weights ``w`` minimizes ``Σ w d`` of the distances
``d``, ``d² = |p - v|² + outside``: a point may have a part at a right angle to the space of the
median.  Weiszfeld's step goes to the mean with weights ``w / d``.  It never ascends.  At one of the
points it is not defined, and the step of Vardi and Zhang (2000) takes its place.  Squared
extrapolation (Varadhan and Roland 2008) saves steps; it is kept where the sum of distances does not
grow.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import allocating, inner
from hilboost.backends.sums_in_eights import squares

# Rows of the scratch array: points on the way.
_FIRST = 0
_SECOND = 1
_THIRD = 2
_FAR = 3
_LANDED = 4
_POINT = 5
N_SCRATCH = 6

_AT_A_POINT = 1e-10  # of the mean distance from the start


class _Leaf(NamedTuple):
    """A leaf and the points of all rows."""

    points: NDArray[np.float64]  # (n, r) float64
    outside: NDArray[np.float64]  # (n,) float64: squared lengths
    weights: NDArray[np.float64]  # (n,) float64, positive
    rows: NDArray[np.int64]  # (m,) int64: of the leaf


@inner
def _square(points, i, others, j):
    """``|points[i] - others[j]|²``."""
    return squares(points[i], others[j])[1]


@inner
def _mean(leaf, scratch):
    """Write the weighted mean into the first row of the scratch array; return its mean distance."""
    points, weights, rows = leaf.points, leaf.weights, leaf.rows
    r = points.shape[1]
    mass = 0.0
    for k in range(r):
        scratch[_FIRST, k] = 0.0
    for at in range(rows.shape[0]):
        i = rows[at]
        mass += weights[i]
        for k in range(r):
            scratch[_FIRST, k] += weights[i] * points[i, k]
    for k in range(r):
        scratch[_FIRST, k] /= mass
    total = 0.0
    for at in range(rows.shape[0]):
        total += weights[rows[at]] * np.sqrt(_square(points, rows[at], scratch, _FIRST))
    return total / mass


@inner
def _step(leaf, scratch, here, there, near):
    """One step from ``scratch[here]`` to ``scratch[there]``.

    Return the sum of distances before it, how far it goes, and the nearest point.
    """
    points, outside, weights, rows = leaf
    r = points.shape[1]
    value, attraction, held = 0.0, 0.0, 0.0
    nearest, least = rows[0], np.inf
    for k in range(r):
        scratch[there, k] = 0.0
    for at in range(rows.shape[0]):
        i = rows[at]
        distance = np.sqrt(_square(points, i, scratch, here) + outside[i])
        value += weights[i] * distance
        if distance < least:
            nearest, least = i, distance
        if distance <= near:
            held += weights[i]
            continue
        pull = weights[i] / distance
        attraction += pull
        for k in range(r):
            scratch[there, k] += pull * points[i, k]
    if attraction == 0.0:
        for k in range(r):
            scratch[there, k] = scratch[here, k]
        return value, 0.0, nearest
    for k in range(r):
        scratch[there, k] /= attraction
    gap = np.sqrt(_square(scratch, there, scratch, here))
    if held >= attraction * gap:
        kept = 1.0
    else:
        kept = held / (attraction * gap)
    for k in range(r):
        scratch[there, k] += kept * (scratch[here, k] - scratch[there, k])
    return value, (1.0 - kept) * gap, nearest


@inner
def _extrapolate(scratch):
    """Write the squared extrapolation of the first three points into the fourth."""
    first, second = 0.0, 0.0
    for k in range(scratch.shape[1]):
        change = scratch[_SECOND, k] - scratch[_FIRST, k]
        bend = scratch[_THIRD, k] - scratch[_SECOND, k] - change
        first += change * change
        second += bend * bend
    length = 1.0
    if second > 0.0:
        length = max(1.0, np.sqrt(first / second))
    for k in range(scratch.shape[1]):
        change = scratch[_SECOND, k] - scratch[_FIRST, k]
        bend = scratch[_THIRD, k] - scratch[_SECOND, k] - change
        scratch[_FAR, k] = scratch[_FIRST, k] + length * (2.0 * change + length * bend)


@inner
def _copy(source, i, target, j):
    for k in range(source.shape[1]):
        target[j, k] = source[i, k]


@inner
def _median(leaf, tolerance, most, scratch):
    """Leave the geometric median in the first row of the scratch array."""
    spread = _mean(leaf, scratch)
    near = _AT_A_POINT * spread
    if spread == 0.0:
        return
    tried = -1
    for _ in range(most):
        value, gap, nearest = _step(leaf, scratch, _FIRST, _SECOND, near)
        if gap <= tolerance * spread:
            return
        if nearest != tried:
            tried = nearest
            _copy(leaf.points, nearest, scratch, _POINT)
            at_point, away, _ = _step(leaf, scratch, _POINT, _LANDED, near)
            if away == 0.0 and at_point <= value:
                _copy(scratch, _POINT, scratch, _FIRST)
                return
        value, gap, _ = _step(leaf, scratch, _SECOND, _THIRD, near)
        _extrapolate(scratch)
        far, _, _ = _step(leaf, scratch, _FAR, _LANDED, near)
        _copy(scratch, _LANDED if far <= value else _THIRD, scratch, _FIRST)


@allocating
def geometric_medians(points, outside, weights, leaf_of_row, n_leaves, tolerance, most):
    """Geometric median of the points in every leaf, (n_leaves, r); 0 for a leaf without rows.

    points : (n, r) float64; outside : (n,) float64, squared lengths; weights : (n,) float64,
    positive; leaf_of_row : (n,) int32, rows of leaf -1 are left out
    tolerance : float, of the mean distance; most : int, cycles of three steps
    Cost O(n r) a step.
    """
    starts = np.zeros(n_leaves + 1, np.int64)
    for i in range(leaf_of_row.shape[0]):
        if leaf_of_row[i] >= 0:
            starts[leaf_of_row[i] + 1] += 1
    for c in range(n_leaves):
        starts[c + 1] += starts[c]
    order = np.empty(starts[n_leaves], np.int64)
    fill = starts[:n_leaves].copy()
    for i in range(leaf_of_row.shape[0]):
        c = leaf_of_row[i]
        if c >= 0:
            order[fill[c]] = i
            fill[c] += 1
    result = np.zeros((n_leaves, points.shape[1]))
    scratch = np.zeros((N_SCRATCH, points.shape[1]))
    for c in range(n_leaves):
        if starts[c] < starts[c + 1]:
            leaf = _Leaf(points, outside, weights, order[starts[c] : starts[c + 1]])
            _median(leaf, tolerance, most, scratch)
            for k in range(points.shape[1]):
                result[c, k] = scratch[0, k]
    return result
