"""Sizes of kernel machines for a given time."""

from __future__ import annotations

from dataclasses import replace

from hilboost.learners.metric_kernel import MetricKernelLearner
from hilboost.training.machines import (
    CENTERS_OF_OWN_METRICS,
    MOST_ROWS_AT_ONCE,
    MOST_ROWS_OF_OWN_METRICS,
)
from hilboost.training.recipe import Recipe

_FEW_CENTERS, _FEWEST_CENTERS, _FEW_SEARCHED = 1000, 500, 300  # if there is little time
_PREDICTIONS = 6  # of all rows
_SECONDS_PER_VALUE = 6e-9
_SECONDS_OF_METRIC, _SEARCHED, _OPERATIONS_PER_SECOND = 1.2, 600, 3.5e10  # roughly


def hasty(learner: MetricKernelLearner) -> MetricKernelLearner:
    """Return a kernel machine that takes some tenths of a second."""
    return replace(learner, n_centers=_FEW_CENTERS, n_searched=_FEW_SEARCHED)


def in_time(recipe: Recipe, n_threads: int, seconds: float) -> MetricKernelLearner | None:
    """Return the kernel machine with as many centers as the time suffices for, if there are any.

    Its metric is learned from fewer rows if there is little time.

    Parameters
    ----------
    recipe : Recipe
    n_threads : int
    seconds : float

    Returns
    -------
    MetricKernelLearner or None
    """
    learner, n, n_fits = recipe.kernel_part, len(recipe.data.X), recipe.n_folds
    if learner is None:
        return None
    for n_searched, fewest in (
        (learner.n_searched, _FEW_CENTERS),
        (_FEW_SEARCHED, _FEWEST_CENTERS),
    ):
        n_centers = learner.n_centers
        while n_centers >= fewest:
            if _seconds(n, n_centers, n_searched, n_fits, n_threads) < seconds:
                return replace(learner, n_centers=n_centers, n_searched=n_searched)
            n_centers = int(n_centers / 1.4)
    return None


def _seconds(n: int, n_centers: int, n_searched: int, n_fits: int, n_threads: int) -> float:
    """Estimate the duration of an attempt."""
    of_metric = _SECONDS_OF_METRIC * (min(n, n_searched) / _SEARCHED) ** 2.5
    if n <= MOST_ROWS_OF_OWN_METRICS:
        m = min(n, n_centers, CENTERS_OF_OWN_METRICS)
        return n_fits * (of_metric + 2.0 * m**3 / _OPERATIONS_PER_SECOND) / n_threads
    trial = 2.0 * min(MOST_ROWS_OF_OWN_METRICS, n_centers) ** 3 if n > MOST_ROWS_AT_ONCE else 0.0
    operations = n * n_centers**2 / n_threads + (4 + n_fits) * n_centers**3 / 2
    values = seconds_of_predictions(n, n_centers, n_threads)
    return of_metric + values + (trial + operations) / _OPERATIONS_PER_SECOND


def seconds_of_predictions(n: int, n_centers: int, n_threads: int) -> float:
    """Estimate the duration of the predictions that all members make during a fit.

    Parameters
    ----------
    n : int
    n_centers : int
    n_threads : int
    """
    return _PREDICTIONS * _SECONDS_PER_VALUE * n * n_centers / n_threads
