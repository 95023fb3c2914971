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


def distribution_facts(columns: Columns, y: Floats, predicted: Distribution) -> dict[str, Any]:
    """Compute the levels of targets (n,) in their distributions, and parameters."""
    counts, edges = np.histogram(
        predicted.pit(y), bins=_BINS, range=(0, 1), weights=columns.weights
    )
    return {
        "pit": {"edges": edges.tolist(), "counts": counts.tolist()},
        "parameters": {
            name: np.quantile(values, [0.1, 0.5, 0.9]).tolist()
            for name, values in predicted.parameters.items()
        },
    }


def scores_of_rows(predicted: Distribution, y: Floats) -> dict[str, tuple[Floats, str]]:
    """Scores (n,) of distributions by name, and what each of them is."""
    return {
        "CRPS": (predicted.crps(y), "continuous ranked probability score; 0 is best"),
        "log score": (predicted.log_score(y), "negative logarithm of the density of the target"),
        "interval score": (
            predicted.interval_score(y),
            "width of 90 % intervals, and 20 times the distance of targets outside",
        ),
    }
