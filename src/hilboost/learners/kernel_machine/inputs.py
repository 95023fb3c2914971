"""Completion and scaling of the columns for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidColumn
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import TreeSettings, fit_stages, prepare_trees
from hilboost.learners.kernel_machine.feature_map import UNBOUNDED, FeatureMap, Warps, looked_up
from hilboost.learners.kernel_machine.tuning.scoring import Rows

_LARGEST = 2.0**1022
_USUAL_EXPONENT = 400
_FEW_COLUMNS = 64
_TAIL = 0.01  # a column's range is that of its values without these shares on both sides
_OUTLYING = 100.0  # ranges beyond
_KEPT = 1.0  # ranges beyond, to which outlying values are moved
_LIKE = 10.0  # times the median spread
_FEWEST_MISSING = 0.01  # share of the rows with, and without, a value
_MISSING_LEVEL = -2.0  # code; -1 stands for unknown levels
_PRIOR = 10.0  # rows of the mean that are added to each level
_LARGEST_NUMBER = 1e300
_STAGES, _LEAVES, _RATE, _FEWEST_IN_A_LEAF = 100, 8, 0.1, 5.0  # of trees that warp
_POWER = 0.75  # of the gain of a split: how far values on both sides are moved apart
_EVENNESS = 0.2  # effective share of the rows; with less, a few of them decide the splits
_LINEAR = 0.3  # part of the range of a warp that its splits do not determine


def extreme_exponents(X: Floats) -> Ints:
    """Return binary exponents (d,) of columns whose squares may overflow float64; 0 for others."""
    largest = np.abs(X).max(axis=0, initial=0.0)
    if (largest > _LARGEST).any():
        column = int(np.flatnonzero(largest > _LARGEST)[0])
        raise InvalidColumn(
            f"X contains {largest[column]:.3g} in {{}}, and differences of such numbers overflow; "
            "divide the column by a constant.",
            column,
        )
    exponent = np.frexp(largest)[1].astype(np.int64)
    exponent[np.abs(exponent) <= _USUAL_EXPONENT] = 0
    return exponent


def have_like_spreads(X: Floats) -> bool:
    """Whether there are many columns, and the spread of none is much larger than the median."""
    if X.shape[1] <= _FEW_COLUMNS:
        return False
    exponent = extreme_exponents(X)
    if exponent.any():
        X = np.ldexp(X, -exponent[np.abs(X).max(axis=0).argmax()])
    spread = X.std(axis=0)
    return bool(spread.max() <= _LIKE * np.median(spread))


def bounds_of(
    X: Floats, weight: Floats | None, untouched: tuple[int, ...] = ()
) -> tuple[Floats, Floats]:
    """Bounds (d,) of columns with outlying values, one range outside; none for other columns.

    A value is outlying if it is more than a hundred ranges outside the middle 98 % of its column.
    A few wrong cells, such as 10⁶ for a missing number, would otherwise determine the scale.
    """
    low, high = np.full(X.shape[1], -UNBOUNDED), np.full(X.shape[1], UNBOUNDED)
    with np.errstate(over="ignore"):
        for column in set(range(X.shape[1])) - set(untouched):
            bottom, top = quantiles(X[:, column], weight, (_TAIL, 1 - _TAIL))
            width = top - bottom
            beyond = max(bottom - X[:, column].min(), X[:, column].max() - top)
            if width > 0 and np.isfinite(width) and beyond > _OUTLYING * width:
                low[column], high[column] = bottom - _KEPT * width, top + _KEPT * width
    return low, high


def quantiles(
    values: Floats, weight: Floats | None, shares: tuple[float, float]
) -> tuple[float, float]:
    """Smallest values that at least these shares of the weight do not exceed."""
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(np.ones(len(values)) if weight is None else weight[order])
    # Shares refer to whole rows, whatever the rounding errors of the sum.
    places = np.searchsorted(mass, np.array(shares) * mass[-1] * (1 - 1e-12))
    low, high = values[order][places]
    return float(low), float(high)


def completing(X: Floats, weight: Floats | None, categorical: tuple[int, ...] = ()) -> FeatureMap:
    """Learn what replaces missing values, and which columns often have some.

    These are medians, with an indicator for the latter, and a code of their own for categories.
    """
    often = _are_often_missing(_shares_of_missing(X, weight))
    often[list(categorical)] = False  # a level of their own
    numbers = np.array([_median(column, weight) for column in X.T])
    numbers[list(categorical)] = _MISSING_LEVEL
    indicated = np.flatnonzero(often).astype(np.int64)
    return FeatureMap.unscaled(X.shape[1], numbers, indicated)


def _median(values: Floats, weight: Floats | None) -> float:
    """Weighted median of the values that are not missing; 0 without any."""
    known = ~np.isnan(values)
    if not known.any():
        return 0.0
    return quantiles(values[known], None if weight is None else weight[known], (0.5, 0.5))[0]


def with_scales(
    features: FeatureMap,
    X: Floats,  # completed
    weight: Floats | None,
    untouched: tuple[int, ...] = (),
    common: bool = False,
    bounded: bool = False,
) -> FeatureMap:
    """Standardize all columns except ``untouched`` by weighted mean and standard deviation.

    With ``common`` all columns are divided by one number, the root of their mean variance:
    suitable for the pixels of an image, whose edges hardly vary and carry little information.
    If ``bounded``, outlying values are moved to bounds first.
    """
    low, high = bounds_of(X, weight, untouched) if bounded else (features.low, features.high)
    X = np.clip(X, low, high)
    exponent = extreme_exponents(X)
    columns = list(untouched)
    exponent[columns] = 0
    if common and exponent.any():
        exponent[:] = exponent[np.abs(X).max(axis=0).argmax()]
    if exponent.any():
        X = np.ldexp(X, -exponent)
    center = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weight))
    # A constant column has a tiny spread of rounding errors, which must not be amplified.
    varies = scale > 1e-10 * np.abs(center)
    varies[columns] = False
    scale[~varies] = 1.0
    if common and varies.any():
        scale[:] = np.sqrt((scale[varies] ** 2).mean())
    center[columns], scale[columns] = 0.0, 1.0
    if exponent.any():
        center, scale = np.ldexp(center, exponent), np.ldexp(scale, exponent)
    return replace(features, low=low, high=high, center=center, scale=scale)


def encoded_features(
    X: Floats,  # (n, d) float64
    target: Floats,  # (n, r) float64: determines the numbers of category levels
    weight: Floats | None,  # (n,) float64 or None
    categorical: Sequence[tuple[int, int]] = (),  # sequence of (column, n_levels)
) -> FeatureMap:
    """Learn the conversion from rows; constant columns are left out, missing cells are means."""
    tables = {
        column: level_numbers(X[:, column], n_levels, target, weight)
        for column, n_levels in categorical
    }
    scaling: dict[int, tuple[float, float, float, float]] = {}
    for column, values in enumerate(X.T):
        own = looked_up(values, tables[column]) if column in tables else values
        found = _scaling(own, weight)
        if found is not None:
            scaling[column] = found
    columns = list(scaling)
    levels = tuple((place, tables[k]) for place, k in enumerate(columns) if k in tables)
    share, coded = _shares_of_missing(X, weight), list(tables)
    is_feature = _are_often_missing(share) & np.isin(np.arange(X.shape[1]), columns)
    is_feature[coded] = (share[coded] > 0) & (share[coded] < 1)  # a level
    missing = np.flatnonzero(is_feature)
    spreads = np.sqrt(share[missing] * (1 - share[missing]))
    rows = [*scaling.values(), *((-UNBOUNDED, UNBOUNDED, 0.0, spread) for spread in spreads)]
    low, high, center, scale = np.array(rows).reshape(-1, 4).T.copy()
    numbers = center[: len(columns)]
    places = np.array(columns, dtype=np.int64)
    return FeatureMap(places, levels, numbers, missing, low, high, center, scale)


def _shares_of_missing(X: Floats, weight: Floats | None) -> Floats:
    """Shares (d,) of the rows whose cell is missing."""
    shares: Floats = np.average(np.isnan(X), axis=0, weights=weight)
    return shares


def _are_often_missing(shares: Floats) -> NDArray[np.bool_]:
    """Whether enough rows have a value and enough have none, for shares (d,) of missing cells."""
    return (shares >= _FEWEST_MISSING) & (shares <= 1 - _FEWEST_MISSING)


def level_numbers(codes: Floats, n_levels: int, target: Floats, weight: Floats | None) -> Floats:
    """Return one number for each level, (n_levels,): its position along the target.

    It is the mean target of the level, shrunk towards the mean of the rows with any level, which
    gets the number 0.  With several target columns, it is the coordinate of these means along their
    first principal axis.  Codes (n,) that are NaN or -1 are not levels.
    """
    mass = np.ones(len(codes)) if weight is None else weight
    known = (codes >= 0) & (mass > 0)
    level = codes[known].astype(np.intp)
    if not len(level):
        return np.zeros(n_levels)
    centered = target - np.average(
        target[known], axis=0, weights=None if weight is None else weight[known]
    )
    count = np.bincount(level, mass[known], n_levels)
    sums = np.zeros((n_levels, target.shape[1]))
    np.add.at(sums, level, mass[known, None] * centered[known])
    means = sums / (count + _PRIOR)[:, None]
    if means.shape[1] == 1:
        return means[:, 0].copy()
    _, axes = np.linalg.eigh((means * count[:, None]).T @ means)
    axis = axes[:, -1]
    return means @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))


def _scaling(values: Floats, weight: Floats | None) -> tuple[float, float, float, float] | None:
    """Return bounds, center and scale of a column (n,); ``None`` if it is constant."""
    known = ~np.isnan(values)
    if not known.any():
        return None
    values = np.clip(values[known], -_LARGEST_NUMBER, _LARGEST_NUMBER)
    weight = None if weight is None else weight[known]
    bottom, top = quantiles(values, weight, (_TAIL, 1 - _TAIL))
    if bottom == top:
        bottom, top = float(values.min()), float(values.max())
    width = min(top - bottom, _LARGEST_NUMBER)
    low, high = max(bottom - width, -_LARGEST_NUMBER), min(top + width, _LARGEST_NUMBER)
    inside = np.clip(values, low, high)
    size = max(abs(low), abs(high))
    if size == 0:
        return None
    inside = inside / size  # squares must not overflow
    center = float(np.average(inside, weights=weight))
    spread = float(np.sqrt(np.average((inside - center) ** 2, weights=weight)))
    # The rounding errors of a constant column must not be amplified.
    if not spread > 1e-10 * abs(center) or not np.isfinite(1 / (spread * size)):
        return None
    return low, high, center * size, spread * size


def learned_warps(rows: Rows, columns: Sequence[int]) -> Warps:
    """Learn warps of some features to mean 0 and variance 1 from the splits of boosted trees.

    A kernel with one length scale for a column takes functions for equally smooth everywhere.  A
    warp makes functions with steps smooth, and limits tails: it moves the values on both sides of a
    split apart, the farther the more the split gains.
    """
    if rows.weight.mean() ** 2 < _EVENNESS * (rows.weight**2).mean():
        return ()
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
    distinct = np.unique(values[weight > 0])
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


def warped(rows: Rows, warps: Warps) -> Rows:
    """Warp the features of rows."""
    X = rows.X.copy()
    for k, points in warps:
        X[:, k] = np.interp(X[:, k], *points.T)
    return replace(rows, X=X)
