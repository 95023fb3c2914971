"""Default parameters that depend on the size of the data, and tables of designed experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.boosting.effective_size import WeightScale
from hilboost.core.dtypes import Floats
from hilboost.core.plain_values import is_auto, is_name
from hilboost.model.fit_facts import ResolvedParameters
from hilboost.reductions.rows import of_all_rows
from hilboost.tables.files import column_of
from hilboost.training.data import TrainingData
from hilboost.training.initial_state import Start

SHARE_OF_TUNING = 0.35
"""Of a time budget, for the choice of kernel and λ."""

# numbers of rows from which on some are held out for early stopping
_SMALLEST_EARLY, _SMALLEST_DISTRIBUTED, _SMALLEST_RANKING = 40, 8, 200
_LARGE = 50_000
_SECONDS_PER_CELL, _SECONDS_PER_TREE = 5e-9, 3e-4  # roughly, of a stage
_ROWS_PER_LEAF_ROW = 25  # rows of the table for each row of a leaf, without early stopping
_ROWS_PER_STATISTIC = 10  # for each row of a leaf whose value is a median or another quantile
_SHARE_FOR_RANKINGS, _FEWEST_COLUMNS = 0.3, 3
_STAGES_OF_MEMBERS = 150  # with fewer, a single model is better than several
_MOST_CELLS_OF_MEMBERS = 2_000_000
# up to which members without an eighth of the rows predict numbers better than without a quarter
_ROWS_OF_MANY_FOLDS, _CELLS_OF_MANY_FOLDS = 200, 20_000
_WIDE = 10  # columns for each row
_LEAVES_OF_WIDE, _SHARE_OF_WIDE = 8, 0.5


@dataclass(frozen=True)
class FitTraits:
    """Properties of the rows, the target and the loss on which default parameters depend."""

    n: float  # effective number of rows: see :mod:`hilboost.boosting.effective_size`
    n_here: int  # number of rows as they are, which can be held out and take time
    d: int  # number of columns
    n_trees: int = 1  # number of trees per stage
    held_out: bool = False  # whether the caller passed validation data
    # whether the loss sets leaf values itself (medians, quantiles), so that L2 regularization
    # cannot stabilize small leaves
    leaf_loss: bool = False
    # whether the target is binary and the loss probabilistic, with a hessian of at most 1/4 per row
    two_classes: bool = False
    predicts_numbers: bool = False  # instead of classes, distributions or orders
    coupled: bool = False  # whether the loss compares rows
    # whether a scale is estimated from the residuals, which requires rows that a model has not
    # learned from
    scaled: bool = False
    distributed: bool = False  # whether the loss is that of a distribution, which few rows mislead
    # number of leaves of symmetric trees; ``None`` if trees grow best first
    symmetric_leaves: int | None = None
    small_hessians: bool = False  # whether hessians are much smaller than one
    # whether rows of groups are ranked.  Without early stopping, a strong L2 regularization then
    # keeps the model from learning single groups.  With it, and with squared errors, twice the
    # folds and few columns at each level rank held-out groups better.
    ranks: bool = False
    # whether the loss changes only where rows change their order, so that its mean over the held-
    # out groups falls and rises from stage to stage
    noisy: bool = False


def resolve(
    # parameters of the estimator.  The defaults are 20 stages with a learning rate of 1 for
    # ``learner="kernel"``, and 100 stages without early stopping for a learner object.
    parameters: Mapping[str, Any],
    fit: FitTraits,
) -> ResolvedParameters:
    """Replace ``"auto"`` by values that suit data of this size.

    There are three regimes.  Below 40 rows (rankings: 200), held-out losses are unreliable, so that
    100 stages are fitted without early stopping.  Up to 50,000 rows, an accurate model takes only
    seconds: a low learning rate, strong L2 regularization, random row sampling, and a
    cross-validated ensemble.  Beyond that, a single model with one held-out part is fitted with a
    higher learning rate.  Wide tables have small trees, which trial runs would choose most often,
    at many times the cost.
    """
    n, d, rows = fit.n, fit.d, min(fit.n, fit.n_here)
    learner = parameters["learner"]
    trees = isinstance(learner, list) or is_name(learner, "tree")
    kernel = is_name(learner, "kernel")
    early = parameters["early_stopping"]
    if early == "auto":
        asked = fit.held_out or parameters.get("eval_metric") is not None
        early = asked or (trees and rows >= _smallest_early(fit))
    large = rows > _LARGE
    careful = early and not large
    automatic = 20 if kernel else (1000 if large else 1500) if early else 100
    n_estimators = _or(parameters["n_estimators"], automatic)
    too_few = is_auto(parameters["early_stopping"])
    of_statistics = float(np.clip(n // _ROWS_PER_STATISTIC, 5, 20))
    of_fixed = float(np.clip(n // _ROWS_PER_LEAF_ROW, 5, 7 if too_few else 20))
    needs_rows = fit.coupled or fit.leaf_loss or fit.distributed
    smallest = of_statistics if needs_rows else 1 if careful else of_fixed
    best_first = 63 if large and early else 15 if careful and fit.two_classes else 31
    chosen = {
        "learning_rate": 1.0 if kernel else 0.08 if careful and n_estimators > 300 else 0.1,
        "n_estimators": n_estimators,
        "max_leaf_nodes": fit.symmetric_leaves or best_first,
        "min_samples_leaf": 20 if large else smallest,
        "l2_regularization": 1.0 if fit.small_hessians or not (careful or fit.coupled) else 10.0,
        "max_features": 1.0,
        "subsample": 0.8 if careful and not fit.two_classes else 1.0,
        "cv_folds": _n_folds(fit, rows, parameters.get("time_budget")),
        "n_iter_no_change": 100 if careful and fit.noisy else 30 if careful else 20,
    }
    if careful and not (fit.coupled or fit.scaled or fit.ranks) and is_wide(n, d):
        chosen["max_leaf_nodes"], chosen["max_features"] = _LEAVES_OF_WIDE, _SHARE_OF_WIDE
    if fit.ranks and not early:
        chosen["l2_regularization"] = 30.0
    if fit.ranks and careful and trees and not fit.small_hessians:
        chosen["max_features"] = min(1.0, max(_SHARE_FOR_RANKINGS, _FEWEST_COLUMNS / d))
        if chosen["cv_folds"] > 1 and parameters.get("time_budget") is None:
            chosen["cv_folds"] *= 2
    chosen = {name: _or(parameters[name], value) for name, value in chosen.items()}
    if chosen["max_leaf_nodes"] is None:
        chosen["max_leaf_nodes"] = int(max(2, np.ceil(n / chosen["min_samples_leaf"])))
    symmetric = fit.symmetric_leaves is not None
    return ResolvedParameters(**chosen, early_stopping=early, symmetric=symmetric)


def is_wide(n: float, d: int) -> bool:
    """Return whether trees of n rows and d columns take too long for trial runs."""
    return d >= _WIDE * n and n * d > _MOST_CELLS_OF_MEMBERS


def in_rows(parameters: dict[str, Any], scale: WeightScale) -> dict[str, Any]:
    """Convert parameters from sums of weights to numbers of rows, as :func:`resolve` expects."""
    return parameters | {
        "min_samples_leaf": scale.in_rows(parameters["min_samples_leaf"]),
        "l2_regularization": scale.in_rows(parameters["l2_regularization"]),
    }


def in_given_weights(
    chosen: ResolvedParameters, parameters: dict[str, Any], scale: WeightScale
) -> ResolvedParameters:
    """Convert automatic parameters from numbers of rows to sums of weights; keep given values."""
    smallest, l2 = parameters["min_samples_leaf"], parameters["l2_regularization"]
    return replace(
        chosen,
        min_samples_leaf=_or(smallest, scale.of_rows(chosen.min_samples_leaf)),
        l2_regularization=_or(l2, scale.of_rows(chosen.l2_regularization)),
    )


def in_fit_weights(chosen: ResolvedParameters, scale: WeightScale) -> ResolvedParameters:
    """Convert parameters from sums of original weights to sums of divided weights."""
    return replace(
        chosen,
        min_samples_leaf=scale.in_fit(chosen.min_samples_leaf),
        l2_regularization=scale.in_fit(chosen.l2_regularization),
    )


def seconds_of_stage(n_cells: float, n_trees: int) -> float:
    """Estimate the duration of a stage of one member from rows times columns times trees."""
    return n_cells * _SECONDS_PER_CELL + n_trees * _SECONDS_PER_TREE


def _or(value: object, automatic: object) -> Any:
    return automatic if is_auto(value) else value


def _smallest_early(fit: FitTraits) -> int:
    """Number of rows from which on held-out losses are reliable enough."""
    if fit.ranks:
        return _SMALLEST_RANKING
    return _SMALLEST_DISTRIBUTED if fit.distributed and not fit.scaled else _SMALLEST_EARLY


def _n_folds(fit: FitTraits, rows: float, time_budget: float | None) -> int:
    """Number of members of the ensemble; powers of two keep their mean exact."""
    n_cells = rows * fit.n_trees * fit.d
    found = 4 if n_cells <= 1_000_000 else 2 if n_cells <= _MOST_CELLS_OF_MEMBERS else 1
    if rows < _ROWS_OF_MANY_FOLDS and n_cells <= _CELLS_OF_MANY_FOLDS and fit.predicts_numbers:
        found = 8
    if time_budget is not None:
        stage = seconds_of_stage(n_cells, fit.n_trees)
        if found * stage * _STAGES_OF_MEMBERS > time_budget:
            return 1
    return found


_MOST_ROWS = 10_000
FEWEST_EQUAL = 5.0
"""Fewest observations of a distinct row of a designed table, and of a leaf then."""
_ROUNDING = 1e-9  # of the sum of all magnitudes


def is_designed(data: TrainingData, row: float) -> bool:
    """Whether each distinct row is observed at least five times, in units of ``row``.

    No split isolates fewer observations, so that leaves of many rows are not needed.
    """
    target = data.target
    if target.n_rows > _MOST_ROWS:
        return False
    weight = np.ones(len(data.X)) if target.weight is None else target.weight / row
    weight = of_all_rows(weight, target)
    cells = _distinct_rows(data, weight.sum() / FEWEST_EQUAL)
    return cells is not None and bool(np.bincount(cells, weight).min() >= FEWEST_EQUAL)


def is_hidden(begun: Start) -> bool:
    """Whether some output is constant given any single column, but not given all columns.

    In an exclusive or of balanced columns, no split of all rows gains anything: trees need samples
    of the rows, which are not balanced.
    """
    X, target = begun.data.X, begun.data.target
    if target.n_rows > _MOST_ROWS:
        return False
    raw = target.starting_raw(begun.initial_raw)
    gradient = begun.loss.adapted(target, raw).gradients(target, raw).negative_gradient
    if target.weight is not None:
        gradient = gradient * target.weight[:, None]
    gradient = of_all_rows(gradient, target)
    least = _ROUNDING * np.abs(gradient).sum(axis=0)
    hidden = least > 0
    for k in range(X.shape[1]):
        hidden &= _largest_sum(_levels(begun.data, k), gradient) <= least
        if not hidden.any():
            return False
    cells = _distinct_rows(begun.data, target.n_rows)
    return cells is not None and bool((hidden & (_largest_sum(cells, gradient) > least)).any())


def _distinct_rows(data: TrainingData, most: float) -> NDArray[np.intp] | None:
    """Number the distinct rows, (n,); ``None`` if there are more than ``most``."""
    cells = np.zeros(1, dtype=np.intp)
    for k in range(data.X.shape[1]):
        levels = _levels(data, k)
        cells = np.unique(cells * (levels.max() + 1) + levels, return_inverse=True)[1]
        if cells.max() >= most:
            return None
    return cells


def _levels(data: TrainingData, k: int) -> NDArray[np.intp]:
    """Number the distinct values of a column, (n,)."""
    return np.unique(of_all_rows(column_of(data.X, k), data.target), return_inverse=True)[1]


def _largest_sum(groups: NDArray[np.intp], gradient: Floats) -> Floats:
    """The largest magnitude of the sums of gradients (n, r) over groups of rows, (r,)."""
    return np.array([np.abs(np.bincount(groups, column)).max() for column in gradient.T])
