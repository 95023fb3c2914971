"""Facts about predicted distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.distributions import Distribution
from hilboost.report.table import Columns

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Levels of the quantiles whose calibration is shown."""
_BINS = 20


def distribution_facts(
    columns: Columns, y: Floats, predicted: Distribution, parameters: dict[str, Floats]
) -> dict[str, Any]:
    """Compute the levels of targets (n,) in their distributions, and scores and parameters."""
    counts, edges = np.histogram(
        predicted.pit(y), bins=_BINS, range=(0, 1), weights=columns.weights
    )
    return {
        "pit": {"edges": edges.tolist(), "counts": counts.tolist()},
        "scores": {
            "crps": columns.mean(predicted.crps(y)),
            "log score": columns.mean(predicted.log_score(y)),
            "interval score": columns.mean(predicted.interval_score(y)),
        },
        "parameters": {
            name: np.quantile(values, [0.1, 0.5, 0.9]).tolist()
            for name, values in parameters.items()
        },
    }
