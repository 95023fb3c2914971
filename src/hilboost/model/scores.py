"""Scores of labels: how badly they agree with the predictions for their rows."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, IncompatibleParts, warn_caller
from hilboost.core.loss import Loss
from hilboost.core.target import Target

_TINY = np.finfo(np.float64).tiny
_FAR = 0.15  # from the coverage, for the difference of two quantile levels


def levels_of(loss: Loss) -> tuple[float, ...]:
    """Quantile levels that the loss predicts, if it predicts several; else none."""
    levels = () if loss.link is None else loss.link.levels
    return levels if len(levels) > 1 else ()


def n_columns(loss: Loss, n_targets: int) -> int:
    """Number of intervals that are calibrated: pairs of quantile levels, or targets."""
    levels = levels_of(loss)
    return len(levels) // 2 if levels else n_targets


def interval_ends(loss: Loss, raw: Floats, n_targets: int) -> tuple[Floats, Floats]:
    """Compute lower and upper ends of intervals (n, k) before calibration.

    With several quantile levels, these are the lowest and the highest, the second lowest and the
    second highest and so on.  Otherwise the prediction of each target, twice.
    """
    predicted = np.asarray(loss.inverse_link(raw), dtype=np.float64)
    levels = levels_of(loss)
    if levels:
        order = np.argsort(levels)
        half = len(levels) // 2
        return predicted[:, order[:half]], predicted[:, order[::-1][:half]]
    if predicted.shape != (len(raw), n_targets):
        raise IncompatibleParts(
            f"{type(loss).__name__}.inverse_link returned an array of shape {predicted.shape} for "
            f"{len(raw)} rows with {n_targets} targets, so that there is nothing to put an "
            "interval around; return one number per target, or declare the quantile levels of "
            "the link."
        )
    return predicted, predicted


def nearest_pair(loss: Loss, coverage: float) -> int:
    """Return the number of the pair of quantile levels whose difference is nearest to coverage.

    A pair far from it warns: moved by one number, its quantiles cover too much of some rows and too
    little of others.
    """
    levels = np.sort(levels_of(loss))
    half = len(levels) // 2
    differences = levels[::-1][:half] - levels[:half]
    pair = int(np.argmin(np.abs(differences - coverage)))
    if abs(differences[pair] - coverage) > _FAR:
        outer = (1 - coverage) / 2
        warn_caller(
            f"intervals that cover {coverage:.3g} start from the quantiles {levels[pair]:.3g} and "
            f"{levels[::-1][pair]:.3g}, which are meant to cover {differences[pair]:.3g}: they "
            "cover enough rows in total, but too few of some kinds. Fit with the levels "
            f"{outer:.3g} and {1 - outer:.3g} as well.",
            DataWarning,
        )
    return pair


def interval_scores(y: Floats, lower: Floats, upper: Floats, scale: Floats | None = None) -> Floats:
    """Compute how far targets (n, c) lie outside: ``max(lower - y, y - upper) / scale``.

    Negative inside of the interval (conformalized quantile regression of Romano, Patterson & Candès
    2019).  If both ends are the prediction ``f``, this is ``|y - f| / scale``.  The scale is the
    unit of each row, such as the standard deviation of its target.
    """
    outside = np.maximum(lower - y, y - upper)
    return outside if scale is None else outside / positive_scale(scale)[:, None]


def positive_scale(scale: Floats) -> Floats:
    """Replace zeros, which cannot be divided by, by the smallest positive number."""
    return np.maximum(scale, _TINY)


def class_scores(loss: Loss, raw: Floats, n_classes: int) -> Floats:
    """Compute the scores of all classes, (n, n_classes).

    The score is the sum of the probabilities of all classes that are more probable (adaptive
    prediction sets of Romano, Sesia & Candès 2020, with the random number ``u = 0``).  Without
    probabilities, it is the difference to the highest score.  The most probable class has score 0.
    """
    values = np.asarray(loss.inverse_link(raw), dtype=np.float64)
    if values.shape != (len(raw), n_classes):
        raise IncompatibleParts(
            f"{type(loss).__name__}.inverse_link returned an array of shape {values.shape} for "
            f"{len(raw)} rows and {n_classes} classes; return one probability per class."
        )
    if loss.link is not None and not loss.link.gives_probabilities:
        return values.max(axis=1, keepdims=True) - values
    order = np.argsort(-values, axis=1, kind="stable")
    descending = np.take_along_axis(values, order, axis=1)
    before = np.zeros_like(descending)
    np.cumsum(descending[:, :-1], axis=1, out=before[:, 1:])
    # Equally probable classes share the score of the first of them.
    first = np.ones(descending.shape, dtype=bool)
    first[:, 1:] = descending[:, 1:] < descending[:, :-1]
    before = np.maximum.accumulate(np.where(first, before, 0.0), axis=1)
    scores = np.empty_like(before)
    np.put_along_axis(scores, order, before, axis=1)
    return scores


def explained(loss: Loss, target: Target, raw: Floats) -> float:
    """Compute D²: the part of the loss of the best constant that predictions remove.

    If no constant has a loss, 1 for predictions without loss and 0 for others.
    """
    constant = np.broadcast_to(loss.initial_raw(target), raw.shape)
    of_model = float(np.average(loss.value(target, raw), weights=target.weight))
    of_constant = float(np.average(loss.value(target, constant), weights=target.weight))
    if of_constant == 0:
        return float(of_model == 0)
    return 1 - of_model / of_constant
