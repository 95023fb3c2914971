"""Calibration of cross-validated ensembles by the rows that their members did not learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from hilboost.boosting.effective_size import row_weight
from hilboost.boosting.units import in_own_units, offset_in_own_units
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.model import AdditiveModel
from hilboost.model.codecs import TargetCodec
from hilboost.model.conformal import Calibration
from hilboost.model.fitted import FittedModel
from hilboost.model.scores import class_scores, interval_ends, interval_scores
from hilboost.reductions.rows import of_all_rows
from hilboost.reductions.sums import count_rows, total
from hilboost.training.initial_state import InitialState
from hilboost.training.recipe import Recipe

_ENOUGH = 10_000  # rows by which members are compared with their mean
_LEAST_LEVEL = 1e-9


def calibrated(
    fitted: FittedModel, initial: InitialState, recipe: Recipe, n_threads: int
) -> tuple[FittedModel, Floats | None]:
    """Predict and score each training row by the member that did not learn from it.

    Returns the model with these scores, and the predictions (n, r); neither without folds, and only
    the predictions if they cannot be compared with the targets.  Rows that are never held out have
    the predictions of all members and no scores.
    """
    folds, members, data = initial.state.folds, fitted.members, recipe.data
    if folds is None or members is None:
        return fitted, None
    raw = _raw_out_of_fold(members, folds, initial, recipe, n_threads)
    held = folds >= 0
    if not held.all():
        rest = np.flatnonzero(~held)
        raw[rest] = fitted.predict_raw(data.X[rest], n_threads)
    compares = recipe.config.loss.couples_rows or data.codec.kind == "survival"
    if compares or not (recipe.last_is_model or _can_be_split(members)):
        return fitted, raw
    y = data.target.y if recipe.config.units is None else data.target.y * recipe.config.units.size
    scores = _scores(fitted.codec, fitted.loss, y, raw)
    if scores is None:
        return fitted, raw
    target = replace(data.target, weight=data.sample_weight)
    rows, dependence = np.flatnonzero(held), target.dependence
    if len(rows) < len(held) or dependence is not None:
        target, scores, folds = target.rows(rows), scores[rows], folds[rows]
    order: Any = slice(None)
    if dependence is not None and dependence.times is not None:
        order = np.argsort(of_all_rows(dependence.times[rows], target), kind="stable")

    def of_all_in_order(values: NDArray[Any]) -> NDArray[Any]:
        return of_all_rows(values, target)[order]

    scores, levels = of_all_in_order(scores), None
    if fitted.loss.has_distribution and recipe.n_outputs > 1:
        # Of the rows of all workers, because levels of counts are drawn row by row.
        distributions = fitted.loss.distribution_of(of_all_in_order(raw[rows]))
        levels = distributions.pit(of_all_in_order(y[rows, 0]))
        if recipe.last_is_model:  # which intervals between its quantiles belong to
            scores = np.abs(levels - 0.5)[:, None]
    counted = rows_counted(target)
    calibration = Calibration(
        scores,
        None if counted is None else of_all_in_order(counted),
        None if recipe.last_is_model else of_all_in_order(folds),
        levels=levels,
    )
    return replace(fitted, calibration=calibration), raw


def with_levels_of_mean(
    fitted: FittedModel, folds: NDArray[np.int64] | None, recipe: Recipe, n_threads: int
) -> FittedModel:
    """Move the levels of the calibration toward 1/2: single members are further from it.

    The normal scores of all levels shrink by one factor, as the errors of the mean of the members
    are smaller than theirs.  Their ratio is seen on rows that the members learned from, where it is
    the same: memory of a row shrinks the error of a member and that of the mean alike.  The
    errors of counts are nearly all noise, which members share.
    """
    calibration, units = fitted.calibration, recipe.config.units
    if folds is None or calibration is None or calibration.levels is None:
        return fitted
    start = fitted.loss.distribution_of(fitted.model.initial_raw[None])
    if calibration.folds is None or start.has_counts:
        return fitted
    target = replace(recipe.data.target, weight=recipe.data.sample_weight)
    offset, squares, n_seen = offset_in_own_units(units, target), np.zeros((2, len(folds))), 0
    for k in range(calibration.n_members):
        rows = np.flatnonzero(folds == k)
        raws = np.array(fitted.raw_of_members(recipe.data.X[rows], n_threads))
        learned = np.delete(raws, k, axis=0) + (0.0 if offset is None else offset[rows])
        y = target.y[rows, 0] * (1.0 if units is None else units.size)
        each = [_squared_scores(fitted.loss, raw, y) for raw in learned]
        squares[:, rows] = _squared_scores(fitted.loss, learned.mean(axis=0), y), np.mean(each, 0)
        n_seen += count_rows(folds == k, target)
        if n_seen >= _ENOUGH:
            break
    of_mean, of_members = (total(one, target) for one in squares)
    factor = of_mean / of_members if 0 < of_mean < of_members else 1.0
    levels = ndtr(np.sqrt(factor) * ndtri(calibration.levels))
    return replace(fitted, calibration=replace(calibration, levels=levels))


def _squared_scores(loss: Loss, raw: Floats, y: Floats) -> Floats:
    """Squared normal scores of the levels of targets, (n,)."""
    levels = loss.distribution_of(raw).cdf(y)
    return np.asarray(ndtri(np.clip(levels, _LEAST_LEVEL, 1 - _LEAST_LEVEL)) ** 2)


def _raw_out_of_fold(
    members: Sequence[AdditiveModel],
    folds: NDArray[np.int64],
    initial: InitialState,
    recipe: Recipe,
    n_threads: int,
) -> Floats:
    units, raw = recipe.config.units, np.empty((len(folds), recipe.n_outputs))
    for k, (member, X) in enumerate(zip(members, initial.inputs, strict=True)):
        rows = np.flatnonzero(folds == k)
        if not len(rows):  # the member of all rows
            continue
        raw[rows] = in_own_units(units, member).predict_raw(X[rows], n_threads)
    offset = offset_in_own_units(units, recipe.data.target)
    return raw if offset is None else raw + offset


def rows_counted(target: Target) -> Floats | None:
    """Convert weights to numbers of rows: see :mod:`hilboost.boosting.effective_size`."""
    return None if target.weight is None else target.weight / row_weight(target)


def _can_be_split(members: Sequence[AdditiveModel]) -> bool:
    """Whether the mean of the members can be taken apart again."""
    stages = zip(*(member.stages for member in members), strict=True)
    return all(len({len(stage.terms) for stage in together}) == 1 for together in stages)


def _scores(codec: TargetCodec, loss: Loss, y: Floats, raw: Floats) -> Floats | None:
    try:
        if codec.n_classes is not None:
            found = class_scores(loss, raw, codec.n_classes)
            return np.take_along_axis(found, y.astype(np.intp), axis=1)
        lower, upper = interval_ends(loss, raw, y.shape[1])
    except IncompatibleParts:  # the predictions of a custom loss are something else
        return None
    return interval_scores(y, lower, upper)
