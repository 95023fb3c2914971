"""Metrics that are not diagonal: linear maps of the features, learned from gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.learners.kernel_machine.tuning.metric import (
    KERNEL,
    PARTS,
    SMALLEST_RIDGE,
    Metric,
    Problem,
)

_ROUNDS = 3
_POWER = 0.75  # of the average gradient outer product; with one, few directions would be left
_STEP = 1.35  # between lengths
_SMALLER_RIDGE = 0.4
_FIRST_BETTER = 0.9  # the first round must decrease their error by this factor
_BETTER = 0.9  # and all of them that of the other rows by this one
_SMALL_STEP = 0.98  # a round that gains less is the last one
_DROPPED = 1e-5  # share of the largest eigenvalue


@dataclass(frozen=True, eq=False)
class Rotation:
    """A linear map of the features for a kernel of length scale one, and a fit with it."""

    axes: Floats  # (q, k) float64
    ridge: float  # λ in ``(K + λ / weight) α = y``
    error: float  # mean squared leave-one-out error
    alpha: Floats  # (m, r) float64
    squares: NDArray  # (m, m) float64: squared distances


def rotated_metric(
    Z: Floats, Y: Floats, weight: Floats | None, metric: Metric, team: ThreadTeam | None = None
) -> Rotation | None:
    """Learn a linear map of the features, if it is much better than a diagonal metric.

    Each round takes a power of the average gradient outer product of the last fit as the metric
    (Radhakrishnan, Beaglehole, Pandit & Belkin 2024), and searches for a length scale and a ridge
    with a smaller exact leave-one-out error.  A full matrix has many entries, which adapt to the
    noise of these rows, so that it must have fewer entries than rows to learn from, and the
    leave-one-out error of the other two fifths of the rows decides.  The cost is that of two
    inversions of m × m matrices, or of about 15 if the first round gains.
    """
    n_entries = Z.shape[1] * (Z.shape[1] + 1) // 2
    learned, judged = Problem.divided(Z, Y, weight, team)
    if min(len(learned.Z), len(judged.Z)) < PARTS or len(learned.Z) < n_entries:
        return None
    start = now = _fit(learned, np.diag(metric.scales), metric.ridge)
    if not 0 < start.error < np.inf:
        return None
    for k in range(_ROUNDS):
        found = _fit(learned, _next_axes(learned, now), now.ridge)
        if k == 0 and not found.error < _FIRST_BETTER * start.error:
            return None
        found = _tuned(learned, found)
        if found.error > now.error:
            break
        small, now = found.error > _SMALL_STEP * now.error, found
        if small:
            break
    before, after = (_tuned(judged, _fit(judged, one.axes, one.ridge)) for one in (start, now))
    return after if after.error < _BETTER * before.error else None


def _fit(problem: Problem, axes: Floats, ridge: float) -> Rotation:
    return _with(problem, axes, ridge, problem.squares(problem.Z @ axes))


def _with(problem: Problem, axes: Floats, ridge: float, squares: NDArray) -> Rotation:
    error, alpha = problem.leave_one_out(problem.kernel_values(squares), ridge)
    return Rotation(axes, ridge, error, alpha, squares)


def _next_axes(problem: Problem, now: Rotation) -> Floats:
    """Return the axes of the average gradient outer product, at the same mean distance."""
    points = problem.Z @ now.axes

    # ∂f/∂z at row i is 2 A Σ_j slope_ij α_j (A'z_i - A'z_j), with axes A.
    def outer_products(rows: slice) -> Floats:
        slopes, total = KERNEL.slope(now.squares[rows].copy()), np.zeros((len(now.axes),) * 2)
        for alpha in now.alpha.T:
            pull = points[rows] * (slopes @ alpha)[:, None] - slopes @ (alpha[:, None] * points)
            gradients = pull @ now.axes.T
            total += (gradients.T * problem.weight[rows]) @ gradients
        return total

    total = np.sum(problem.in_blocks(outer_products), axis=0)
    values, vectors = np.linalg.eigh(total)
    kept = values > _DROPPED * values[-1]
    if not kept.any():
        return now.axes
    axes = vectors[:, kept] * (values[kept] / values[-1]) ** (_POWER / 2)
    size = np.sqrt((points.var(axis=0)).sum() / (problem.Z @ axes).var(axis=0).sum())
    return axes * size


def _tuned(problem: Problem, found: Rotation) -> Rotation:
    """Compare neighboring length scales and ridges."""
    longer = _longer(problem, found, 1 / _STEP)
    found = _longer(problem, found, _STEP) if longer is found else longer
    less = _lowest([found, *_with_ridge(problem, found, found.ridge * _SMALLER_RIDGE)])
    if less is not found:
        return less
    return _lowest([found, *_with_ridge(problem, found, found.ridge / _SMALLER_RIDGE)])


def _longer(problem: Problem, found: Rotation, factor: float) -> Rotation:
    """Return the fit with multiplied axes if its error is smaller."""
    axes, squares = found.axes * factor, found.squares * factor**2
    return _lowest([found, _with(problem, axes, found.ridge, squares)])


def _with_ridge(problem: Problem, found: Rotation, ridge: float) -> Iterable[Rotation]:
    if ridge >= SMALLEST_RIDGE:
        yield _with(problem, found.axes, ridge, found.squares)


def _lowest(fits: list[Rotation]) -> Rotation:
    return min(fits, key=lambda fit: fit.error)
