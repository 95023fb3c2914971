"""Calibration of cross-validated ensembles by the rows that their members did not learn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hilboost.boosting import in_own_units, offset_in_own_units
from hilboost.boosting.effective_size import row_weight
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.model import AdditiveModel
from hilboost.model.codecs import ClassCodec, TargetCodec
from hilboost.model.conformal import Calibration
from hilboost.model.fitted import FittedModel
from hilboost.model.scores import class_scores, interval_ends, interval_scores
from hilboost.reductions.rows import of_all_rows
from hilboost.training.initial_state import InitialState
from hilboost.training.recipe import Recipe


def raw_out_of_fold(
    fitted: FittedModel, initial: InitialState, recipe: Recipe, n_threads: int
) -> Floats | None:  # (n, r) float64 or None: ``None`` without folds
    """Predict each training row by the member that did not learn from it.

    ``initial``: the folds, and the inputs of each member.

    Notes
    -----
    The cost is that of one prediction with one member.
    """
    folds, members = initial.state.folds, fitted.members
    if folds is None or members is None:
        return None
    raw = np.empty((len(folds), recipe.n_outputs))
    for k, (member, X) in enumerate(zip(members, initial.inputs, strict=True)):
        rows = np.flatnonzero(folds == k)
        raw[rows] = in_own_units(recipe.config.units, member).predict_raw(X[rows], n_threads)
    offset = offset_in_own_units(recipe.config.units, recipe.data.target)
    return raw if offset is None else raw + offset


def out_of_fold(
    fitted: FittedModel, initial: InitialState, recipe: Recipe, raw: Floats | None
) -> Calibration | None:
    """Score each training row by the member that did not learn from it.

    ``initial``: the folds. ``raw``: (n, r) float64 or None: result of :func:`raw_out_of_fold`.

    Returns Calibration or None: ``None`` without folds, or if the predictions cannot be compared
    with the targets.
    """
    folds, members, data = initial.state.folds, fitted.members, recipe.data
    compares = recipe.config.loss.couples_rows or data.codec.kind == "survival"
    if raw is None or folds is None or members is None or compares:
        return None
    if not _can_be_split(members):
        return None
    y = data.target.y if recipe.config.units is None else data.target.y * recipe.config.units.size
    scores = _scores(fitted.codec, fitted.loss, y, raw)
    if scores is None:
        return None
    target = replace(data.target, weight=data.sample_weight)
    counted = rows_counted(target)
    return Calibration(
        of_all_rows(scores, target),
        None if counted is None else of_all_rows(counted, target),
        of_all_rows(folds, target),
    )


def rows_counted(target: Target) -> Floats | None:
    """Convert weights to numbers of rows: see :mod:`hilboost.boosting.effective_size`."""
    return None if target.weight is None else target.weight / row_weight(target)


def _can_be_split(members: tuple[AdditiveModel, ...]) -> bool:
    """Whether the mean of the members can be taken apart again."""
    stages = zip(*(member.stages for member in members), strict=True)
    return all(len({len(stage.terms) for stage in together}) == 1 for together in stages)


def _scores(codec: TargetCodec, loss: Loss, y: Floats, raw: Floats) -> Floats | None:
    try:
        if isinstance(codec, ClassCodec):
            found = class_scores(loss, raw, len(codec.classes))
            return np.take_along_axis(found, y.astype(np.intp), axis=1)
        lower, upper = interval_ends(loss, raw, y.shape[1])
    except IncompatibleParts:  # the predictions of a custom loss are something else
        return None
    return interval_scores(y, lower, upper)
