"""Facts about regression and predicted distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.distributions import Distribution
from hilboost.report.figures import number_scores
from hilboost.report.influence import draw_rows
from hilboost.report.table import (
    Columns,
    bins_of,
    histogram,
    histogram_of_shares,
    means_by_bin,
    means_by_column,
    rows_shown,
)

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Levels of the quantiles whose calibration is shown."""


def distribution_facts(columns: Columns, y: Floats, predicted: Distribution) -> dict[str, Any]:
    """Compute the levels of targets (n,) in their distributions, and parameters."""
    return {
        "pit": histogram_of_shares(predicted.pit(y), columns.weights),
        "parameters": {
            name: np.quantile(values, [0.1, 0.5, 0.9]).tolist()
            for name, values in predicted.parameters.items()
        },
    }


def scores_of_rows(predicted: Distribution, y: Floats) -> dict[str, tuple[Floats, str]]:
    """Scores (n,) of distributions by name, and what each of them is."""
    says = "width of 90 % intervals, and 20 times the distance of targets outside"
    return {
        "CRPS": (predicted.crps(y), "continuous ranked probability score; 0 is best"),
        "log score": (predicted.log_score(y), "negative logarithm of the density of the target"),
        "interval score": (predicted.interval_score(y), says),
    }


_POINTS = 800
_OUTPUTS = 4
_WORST = 6


def regression_facts(
    columns: Columns,
    order: Sequence[int],
    y: Floats,
    mean: Floats,
    guess: Floats,
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """Collect the errors of the first few targets, ignoring missing ones, and scores of all."""
    found = []
    for k in range(y.shape[1]):
        rows = np.flatnonzero(~np.isnan(y[:, k]))
        known = columns if len(rows) == len(y) else columns.rows(rows)
        true, predicted = y[rows, k], mean[rows, k]
        scores = number_scores(true, predicted, guess[rows, k], known.weights)
        of_target = {"name": names[k], "scores": scores}
        if k < _OUTPUTS:
            of_target |= _output(known, order, true, predicted)
        found.append(of_target)
    return found


def _output(columns: Columns, order: Sequence[int], y: Floats, mean: Floats) -> dict[str, Any]:
    residual = y - mean
    size = np.abs(residual)
    shown = draw_rows(len(y), _POINTS)
    worst = np.argsort(-size, kind="stable")[:_WORST]
    worst = worst[size[worst] > 0]
    series = {"error": size, "bias": residual}
    table = rows_shown(columns, worst, order)
    table["true"], table["predicted"] = y[worst].tolist(), mean[worst].tolist()
    return {
        "points": {"true": y[shown].tolist(), "predicted": mean[shown].tolist()},
        "residuals": histogram(residual, 24),
        "by_prediction": means_by_bin(bins_of(mean, 10), series, columns.weights),
        "by_column": means_by_column(columns, order, series),
        "worst": table,
    }


def quantile_facts(
    columns: Columns, order: Sequence[int], y: Floats, predicted: Floats, levels: Sequence[float]
) -> dict[str, Any]:
    """Compute the fractions of rows below each quantile (n, q), and between the outermost two."""
    below = y[:, None] <= predicted
    shares = [{"level": at, "below": columns.mean(below[:, k])} for k, at in enumerate(levels)]
    facts: dict[str, Any] = {"levels": shares, "interval": None}
    if len(levels) > 1:
        low, high = int(np.argmin(levels)), int(np.argmax(levels))
        inside = ((predicted[:, low] <= y) & below[:, high]).astype(float)
        width = predicted[:, high] - predicted[:, low]
        series = {"inside": inside, "width": width}
        bins = bins_of(predicted.mean(axis=1), 8)
        facts["interval"] = {
            "low": levels[low],
            "high": levels[high],
            "nominal": levels[high] - levels[low],
            "inside": columns.mean(inside),
            "width": columns.mean(width),
            "by_prediction": means_by_bin(bins, series, columns.weights),
            "by_column": means_by_column(columns, order, series, 3),
        }
    return facts
