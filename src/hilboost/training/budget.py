"""Sizes of kernel machines for a given time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from hilboost.backends import array_api
from hilboost.kernels import Matern
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.training.kernel_candidates import (
    CENTERS_OF_OWN_METRICS,
    MOST_ROWS_OF_OWN_METRICS,
    ROWS_PER_CENTER,
)
from hilboost.training.run import FitRun

_FEW_CENTERS, _FEWEST_CENTERS, _FEW_SEARCHED = 1000, 500, 300  # if there is little time
_PREDICTIONS = 4  # of all rows
_SECONDS_PER_VALUE = 6e-9
_SECONDS_PER_COLUMN = 1.2e-9  # of a value of an additive kernel
_SECONDS_OF_ADDITIVE_METRIC = 0.5
_SEARCHED = 600  # rows, by which a metric is learned in these seconds
_SECONDS_OF_METRIC, _SECONDS_OF_OWN_METRIC = 1.2, 0.9
_PRODUCTS_PER_SECOND = 4.5e10  # of sums over rows
_CUBES_PER_SECOND = 1e11  # of factorizations and all that belongs to them
_FITS_OF_ONE_MEMBER = 2  # without and with the rows that are held out from it
_MORE_FACTORS = 3  # than members, for the choice of the ridge
_ROWS_OF_SAMPLE, _REPEATS_OF_SAMPLE = 400, 3
_SECONDS_OF_SAMPLE = 2.5e-3  # where the numbers above were measured


def hasty(learner: MetricKernelLearner) -> MetricKernelLearner:
    """Return a kernel machine that takes some tenths of a second."""
    return replace(learner, n_centers=_FEW_CENTERS, n_searched=_FEW_SEARCHED, most_additive=0)


def in_time(
    learner: MetricKernelLearner, run: FitRun, seconds: float
) -> MetricKernelLearner | None:
    """Return the kernel machine with as many centers as the time suffices for, if there are any.

    Its metric is learned from fewer rows if there is little time, and its kernel is additive only
    if there is time for that.
    """
    if math.isinf(seconds):
        return learner
    work = Work.of(run)
    seconds /= _slowness() * run.clock.contention
    width = min(run.recipe.data.X.shape[1], learner.most_additive)
    for n_searched, fewest in (
        (learner.n_searched, _FEW_CENTERS),
        (_FEW_SEARCHED, _FEWEST_CENTERS),
    ):
        n_centers = learner.n_centers
        while n_centers >= fewest:
            needed = work.seconds(n_centers, n_searched)
            if needed < seconds:
                is_long = needed + work.more_seconds(n_centers, width) >= seconds
                return replace(
                    learner,
                    n_centers=n_centers,
                    n_searched=n_searched,
                    most_additive=0 if is_long else learner.most_additive,
                )
            n_centers = int(n_centers / 1.4)
    return None


def seconds_of_machines(learner: MetricKernelLearner, run: FitRun) -> float:
    """Estimate the duration of all kernel machines of a fit on this machine."""
    return _slowness() * Work.of(run).seconds(learner.n_centers, learner.n_searched)


def _slowness() -> float:
    """Measure how much longer than estimated kernel machines take on this machine; at least 1."""
    n, kernel, durations = _ROWS_OF_SAMPLE, Matern(nu=2.5), []
    squares = np.random.default_rng(0).random((n, n))
    with array_api.one_blas_thread():
        for _ in range(_REPEATS_OF_SAMPLE):
            began = time.perf_counter()
            array_api.cholesky(array_api.add_to_diagonal(kernel.profile(squares.copy()), n))
            durations.append(time.perf_counter() - began)
    return max(1.0, min(durations) / _SECONDS_OF_SAMPLE)


@dataclass(frozen=True)
class Work:
    """The rows and fits of all kernel machines of a model, and the threads that share them."""

    n: int
    n_fits: int
    n_threads: int

    @classmethod
    def of(cls, run: FitRun) -> Work:
        """The work of a fit."""
        return cls(len(run.recipe.data.X), run.recipe.n_folds, run.team.n_threads)

    def seconds(self, n_centers: int, n_searched: int) -> float:
        """Estimate the duration of all machines with the comparisons that choose them."""
        n, n_fits = self.n, self.n_fits
        searched = (min(n, n_searched) / _SEARCHED) ** 2
        if n <= MOST_ROWS_OF_OWN_METRICS:
            cubes = _MORE_FACTORS * min(n, n_centers, CENTERS_OF_OWN_METRICS) ** 3
            own = _SECONDS_OF_OWN_METRIC * searched + cubes / _CUBES_PER_SECOND
            return n_fits * own / self.n_threads
        size, products = n_centers, n * n_centers**2
        if n <= ROWS_PER_CENTER * n_centers:  # all rows of a member are centers
            size, products = n - n // n_fits if n_fits > 1 else n, n**2
        small = min(MOST_ROWS_OF_OWN_METRICS, n_centers)
        n_fits = max(n_fits, _FITS_OF_ONE_MEMBER)
        cubes = n_fits * size**3 + _MORE_FACTORS * (size**3 if products > n**2 else small**3)
        return (
            _SECONDS_OF_METRIC * searched
            + self.seconds_of_predictions(n_centers)
            + products / _PRODUCTS_PER_SECOND / self.n_threads
            + cubes / _CUBES_PER_SECOND
        )

    def more_seconds(self, n_centers: int, width: int) -> float:
        """Estimate how much longer they take with an additive kernel of ``width`` columns."""
        are_own = self.n <= MOST_ROWS_OF_OWN_METRICS
        n_searches = self.n_fits / self.n_threads if are_own else 1
        values = (_PREDICTIONS + 1) * self.n * n_centers / self.n_threads
        return _SECONDS_OF_ADDITIVE_METRIC * n_searches + _SECONDS_PER_COLUMN * width * values

    def seconds_of_predictions(self, n_centers: int) -> float:
        """Estimate the duration of the predictions that all members make during a fit."""
        return _PREDICTIONS * _SECONDS_PER_VALUE * self.n * n_centers / self.n_threads
