"""Facts about prediction intervals and sets: how many rows they contain, and how wide they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, HilboostError, counted
from hilboost.model.fitted import FittedModel
from hilboost.report.table import Columns, number_text

_COVERAGES = (0.5, 0.8, 0.9, 0.95)


def interval_facts(
    model: Any, columns: Columns, y: Floats, offset: Floats | None = None
) -> dict[str, Any] | None:
    """Compute the coverage and the width of prediction intervals, if there are any."""
    found = _standard_deviations(model, columns.source)
    predict = _with_offset(model.predict_interval, columns, offset)
    weights = np.where(np.isnan(y), 0.0, columns.weights[:, None])
    rows = []
    for coverage in _COVERAGES:
        row: dict[str, Any] = {"nominal": coverage, "gaussian": None}
        if found is not None:
            mean, std = found
            half = norm.ppf(0.5 + coverage / 2) * std
            error = np.abs(y - mean.reshape(y.shape))
            row["gaussian"] = float(np.average(error <= half[:, None], weights=weights))
        ends = _attempt(model.fitted_, predict, coverage)
        rows.append(row | _of_intervals(ends, y, weights))
    if found is None and all(row["calibrated"] is None for row in rows):
        return None
    if found is None:
        return {"coverage": rows, "mean_std": None, "text": _source(model.fitted_)}
    mean_std = columns.mean(found[1])
    text = f"mean standard deviation {number_text(mean_std)}"
    return {"coverage": rows, "mean_std": mean_std, "text": text}


def _standard_deviations(model: Any, X: object) -> tuple[Floats, Floats] | None:
    summary = model.fitted_.kernel_machine
    if summary is None or summary.noise is None:
        return None
    try:
        mean, std = model.predict(X, return_std=True)
    except (HilboostError, TypeError):
        return None
    return mean, std


def _of_intervals(ends: Floats | None, y: Floats, weights: Floats) -> dict[str, Any]:
    """Fraction of the targets inside of the calibrated intervals, and their mean width.

    With several targets, also for each target.  ``weights`` (n, c) are zero where one is missing.
    """
    if ends is None:
        return {"calibrated": None, "width": None}
    low, high = ends[..., 0].reshape(y.shape), ends[..., 1].reshape(y.shape)
    inside, width = (low <= y) & (y <= high), high - low
    found: dict[str, Any] = {"calibrated": float(np.average(inside, weights=weights))}
    shares, widths = (np.average(one, axis=0, weights=weights) for one in (inside, width))
    if len(shares) == 1:
        return {**found, "width": float(widths[0])}
    own = zip(shares.tolist(), widths.tolist(), strict=True)
    return {**found, "width": None, "of_targets": [{"inside": i, "width": w} for i, w in own]}


def class_set_facts(
    model: Any, columns: Columns, codes: NDArray[np.intp], offset: Floats | None = None
) -> dict[str, Any] | None:
    """Compute the coverage and the mean size of prediction sets, if there are any."""

    def describe(sets: NDArray[np.bool_]) -> dict[str, float]:
        inside = sets[np.arange(len(codes)), codes]
        return {"observed": columns.mean(inside), "size": columns.mean(sets.sum(axis=1))}

    predict = _with_offset(model.predict_set, columns, offset)
    return _by_coverage(model.fitted_, predict, describe)


def distance_facts(fitted: FittedModel, columns: Columns, squares: Floats) -> dict[str, Any] | None:
    """Compute how many labels lie within the calibrated distances of the predicted points."""
    calibration = fitted.calibration
    if calibration is None or calibration.group_names is not None:
        return None

    def describe(radius: float) -> dict[str, float]:
        return {"observed": columns.mean(squares <= radius**2), "distance": radius}

    return _by_coverage(fitted, calibration.threshold, describe)


def _by_coverage(
    fitted: FittedModel, predict: Callable[[float], Any], describe: Callable[[Any], dict[str, Any]]
) -> dict[str, Any] | None:
    """Describe what is predicted for each coverage, if anything is."""
    found = [(coverage, _attempt(fitted, predict, coverage)) for coverage in _COVERAGES]
    rows = [{"nominal": k, **describe(one)} for k, one in found if one is not None]
    return {"coverage": rows, "text": _source(fitted)} if rows else None


def _with_offset(
    predict: Callable[..., Any], columns: Columns, offset: Floats | None
) -> Callable[[float], Any]:
    """Return a function of the coverage that predicts intervals or sets."""
    more = {} if offset is None else {"offset": offset}
    return partial(predict, columns.source, **more)


def _attempt(fitted: FittedModel, predict: Callable[[float], Any], coverage: float) -> Any | None:
    """Return the result; ``None`` without a calibration, with groups or with too few rows."""
    if fitted.calibration is None:
        return None
    try:
        with warnings.catch_warnings():
            # Not all of these coverages are what the model is for: the page shows how far they are.
            warnings.simplefilter("ignore", DataWarning)
            return predict(coverage)
    except HilboostError:
        return None


def _source(fitted: FittedModel) -> str:
    """Say which rows the calibration is based on."""
    calibration = fitted.calibration
    if calibration is None:
        return ""
    kind = "held-out" if calibration.folds is None else "out-of-fold"
    return f"calibrated with {counted(len(calibration.scores), f'{kind} row')}"
