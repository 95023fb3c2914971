"""Scores of survival models by scikit-survival."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.packages import required

CONCORDANCE, IPCW, BRIER = "concordance", "concordance_ipcw", "neg_integrated_brier"
METRICS = (CONCORDANCE, IPCW, BRIER)
_N_TIMES, _BEFORE = 50, 1e-9


def score_of_times(
    metric: str, train: Floats, y: Floats, risk: Floats, survival: Callable[[Floats], Floats]
) -> float:  # A larger one is better
    """Compute a metric that weighs rows by the probability of not being censored.

    ``train``: (m, c) float64: bounds of the times of the rows from which the censoring is
    estimated. ``y``: (n, c) float64: bounds of the times of the scored rows. ``risk``: (n,)
    float64. ``survival``: survival functions at some times (k,), (n, k).
    """
    metrics: Any = required("sksurv.metrics", f"metric={metric!r}")
    (event, time), (event_train, time_train) = _exact(metric, y), _exact(metric, train)
    end = time_train.max()
    # A row is at risk as long as the training rows tell about the censoring.
    event, time = event & (time <= end), np.minimum(time, end)
    seen, seen_train = _structured(event, time), _structured(event_train, time_train)
    if metric == IPCW:
        return float(metrics.concordance_index_ipcw(seen_train, seen, risk, tau=end)[0])
    levels = np.linspace(0.1, 0.9, _N_TIMES)
    if len(np.unique(time[event])) < 2:
        raise InvalidData(
            f"metric={metric!r} requires events at two different times; pass more rows."
        )
    latest = min(time.max(), end) * (1 - _BEFORE)
    times = np.unique(np.minimum(np.quantile(time[event], levels), latest))
    return -float(metrics.integrated_brier_score(seen_train, seen, survival(times), times))


def _exact(metric: str, y: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Whether there was an event, and its time or that of the censoring, (n,) each."""
    lower, upper = y[:, 0], y[:, 1]
    interval = (lower != upper) & np.isfinite(upper)
    if interval.any():
        raise InvalidData(
            f"metric={metric!r} requires exact or right-censored times, but row "
            f"{int(np.argmax(interval))} of y has bounds of an interval; use metric='concordance'."
        )
    return lower == upper, lower


def _structured(event: NDArray[np.bool_], time: Floats) -> NDArray[Any]:
    """Events and times as scikit-survival expects them, (n,)."""
    found = np.empty(len(time), dtype=[("event", bool), ("time", np.float64)])
    found["event"], found["time"] = event, time
    return found
