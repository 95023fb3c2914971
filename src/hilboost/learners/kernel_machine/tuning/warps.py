"""Warps of features by the splits of boosted trees.

A kernel with one length scale for a column takes functions for equally smooth everywhere.  Where
they have steps, or where values have a heavy tail, a warp makes them smooth: it moves the values on
both sides of a split apart, the farther the more the split gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import TreeSettings, fit_stages, prepare_trees
from hilboost.learners.kernel_machine.feature_map import Warps
from hilboost.learners.kernel_machine.tuning.scoring import (
    ROWS_OF_LEAVE_ONE_OUT,
    Candidate,
    Rows,
    best_scale,
    mean_and_standard_error,
    predictions,
)
from hilboost.learners.kernel_machine.tuning.search import Search
from hilboost.learners.kernel_machine.tuning.table_kernel import USUAL_FAMILY, TableKernel

_STAGES, _LEAVES, _RATE = 100, 8, 0.1
_FEWEST_IN_A_LEAF = 5.0
_POWER = 0.75  # of the gain of a split: how far values on both sides are moved apart
_LINEAR = 0.3  # part of the range of a warp that its splits do not determine
_ROWS = 1500  # to which the kernels that are compared are fitted
_LAMBDAS = np.array([0.1, 0.3, 1.0, 3.0])  # factors
_FAMILIES = USUAL_FAMILY, "manhattan_laplace"  # the latter suits steps without a warp
WORTH_WARPS = 0.95


def learned_warps(rows: Rows, columns: Sequence[int]) -> Warps:
    """Learn warps of some features to mean 0 and variance 1 from the splits of boosted trees."""
    some = rows.of_columns(np.array(columns, dtype=np.int64))
    trees = _boosted_trees(some)
    column, threshold, gain = (
        np.concatenate([getattr(tree, name)[tree.leaf_number < 0] for tree in trees])
        for name in ("column", "threshold", "gain")
    )
    found = []
    for place, values in enumerate(some.X.T):
        own = column == place
        points = _warp(values, rows.weight, threshold[own], gain[own])
        if len(points):
            found.append((int(columns[place]), points))
    return tuple(found)


def _boosted_trees(rows: Rows) -> list[Any]:
    """Small boosted trees for all targets."""
    shared = rows.Y.shape[1] > 1
    settings = TreeSettings(_LEAVES, min_samples_leaf=_FEWEST_IN_A_LEAF, shared=shared)
    data, rng = prepare_trees(settings, rows.X, rows.weight, 0, 1), np.random.default_rng(0)
    sample, found = RowSample(None, rows.weight), []
    residual = np.asfortranarray(rows.Y - np.average(rows.Y, axis=0, weights=rows.weight))
    for _ in range(_STAGES):
        (tree,), (leaves,) = fit_stages(settings, data, Gradients(residual), sample, [lambda: rng])
        residual = residual - _RATE * tree.leaf_values[leaves]
        found.append(tree)
    data.close()
    return found


def _warp(values: Floats, weight: Floats, thresholds: Floats, gains: Floats) -> Floats:
    """Points (k, 2) of the warp of a feature; none without splits."""
    distinct = np.unique(values)
    after = np.searchsorted(distinct, thresholds, side="right")
    inside = (after > 0) & (after < len(distinct))
    # Up to each value from the one before.
    steps = np.bincount(after[inside], gains[inside], minlength=len(distinct))
    if not steps.any():
        return np.empty((0, 2))
    steps = steps**_POWER / (steps**_POWER).sum()
    warped = np.cumsum(steps) + _LINEAR * (distinct - distinct[0]) / np.ptp(distinct)
    after = np.flatnonzero(steps)
    places = np.unique(np.concatenate([[0], after - 1, after, [len(distinct) - 1]]))
    points = np.column_stack([distinct, warped])[places]
    moved = np.interp(values, *points.T)
    mean = np.average(moved, weights=weight)
    points[:, 1] = (points[:, 1] - mean) / np.sqrt(np.average((moved - mean) ** 2, weights=weight))
    return points


def with_warps(search: Search) -> tuple[Search, Warps]:
    """The search with warps of its features, if they predict held-out rows clearly better.

    Kernels of two families are fitted with and without warps that are learned from the same rows.
    """
    rows, columns = search.sampled, search.columns.numeric
    learned, judged = (rows.part(places) for places in rows.divided)
    trial = learned_warps(learned, columns)
    if not trial:
        return search, ()
    rival = replace(search, sampled=warped(rows, trial))
    likely = [search.usual, rival.usual]
    lowest = [np.full(len(judged), np.inf)] * 2
    for family in _FAMILIES:
        for k, one in enumerate((search, rival)):
            if family != USUAL_FAMILY:
                likely[k] = one.likely(family, likely[k])
            errors = _errors(one, likely[k])
            lowest[k] = min(lowest[k], errors, key=lambda own: float(own @ judged.weight))
        gain, error = mean_and_standard_error(lowest[0] - lowest[1], judged.weight)
        before = float(np.average(lowest[0], weights=judged.weight))
        if not gain > max((1 - WORTH_WARPS) * before, error):
            return search, ()
    warps = learned_warps(rows, columns)
    return replace(search, sampled=warped(rows, warps)), warps


def _errors(search: Search, likely: Candidate[TableKernel]) -> Floats:
    """Squared errors of held-out rows (m,) with a kernel of the best scale and λ."""
    learned, held = (search.sampled.part(places) for places in search.sampled.divided)
    likely = best_scale(likely, learned.first(ROWS_OF_LEAVE_ONE_OUT))
    some, grid = learned.first(_ROWS), np.maximum(likely.regularization * _LAMBDAS, search.floor)
    errors = ((predictions(likely.kernel, some, held.X, grid) - held.Y) ** 2).sum(axis=2)
    errors[np.isnan(errors)] = np.inf
    best: Floats = errors[np.argmin(errors @ held.weight)]
    return best


def warped(rows: Rows, warps: Warps) -> Rows:
    """Warp the features of rows."""
    X = rows.X.copy()
    for k, points in warps:
        X[:, k] = np.interp(X[:, k], *points.T)
    return replace(rows, X=X)
