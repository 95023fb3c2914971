"""Kernels and λ with the highest marginal likelihood on some rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hilboost.backends import array_api
from hilboost.kernels import Constant, Gaussian, Kernel
from hilboost.kernels.gram import evaluate
from hilboost.kernels.marginal_likelihood import (
    Evidence,
    LogScalePrior,
    maximize,
    mean_squared_distance,
)
from hilboost.learners.kernel_machine.tuning.scoring import Candidate, Sampled
from hilboost.learners.kernel_machine.tuning.table_kernel import Columns, TableKernel

ROWS_FIRST, ROWS_PER_SCALE = 300, 10
ROWS_OF_LIKELIHOOD = 1000
SMALLEST_LAMBDA = 1e-7
_STARTS = (0.5, 1.5)  # length scales
START_NOISE = 0.1
_STEPS_FROM_A_START = 30
_STEPS_OF_A_MAP = 16
_SPREAD_OF_SCALES = 0.5  # of their logarithms; about the best of .5, 1 and ∞ on small mixed tables


def by_likelihood(given: Kernel | None, columns: Columns, sampled: Sampled) -> Candidate[Kernel]:
    """All hyperparameters of SY2006's kernel (23), or of the given one, and λ as the noise."""
    rows = sampled.first(ROWS_OF_LIKELIHOOD)
    starts = [given] if given is not None else [_sun_yao(columns, scale) for scale in _STARTS]
    found = [maximize(kernel, START_NOISE, rows.X, rows.Y) for kernel in starts]
    best = min(found, key=lambda evidence: evidence.value)
    return Candidate(best.kernel, best.noise)


def _sun_yao(columns: Columns, scale: float) -> Kernel:
    """SY2006, eq. (23): a Gaussian kernel times a factor, plus a constant."""
    return 1.0 * columns.kernel("gaussian", scale).plain + Constant(0.1)


def by_mean_distance(sampled: Sampled) -> Kernel:
    """``exp(-|x - x'|²/θ)`` with θ the mean squared distance (SY2006, section 4)."""
    theta = max(mean_squared_distance(sampled.X), 1e-12)
    return Gaussian(np.sqrt(theta / 2))


def most_likely(
    columns: Columns, rows: Sampled, family: str, goes_on: Callable[[], bool] | None = None
) -> Candidate[TableKernel]:
    """Length scales and noise of a family, the better result of two starts, or that so far."""
    starts = [
        maximize(
            replace(columns.kernel(family, scale), amplitude=1.0),
            START_NOISE,
            rows.X,
            rows.Y,
            _STEPS_FROM_A_START,
            goes_on=goes_on,
        )
        for scale in _STARTS
    ]
    return _without_amplitude(min(starts, key=lambda evidence: evidence.value))


def most_likely_alike(kernel: TableKernel, rows: Sampled) -> Candidate[TableKernel]:
    """Length scales of the kernel's family with a prior that keeps them alike."""
    start = replace(kernel.columns.kernel(kernel.family, 1.0), amplitude=1.0)
    prior = LogScalePrior(start.scale_groups, _SPREAD_OF_SCALES)
    return _without_amplitude(
        maximize(start, START_NOISE, rows.X, rows.Y, _STEPS_FROM_A_START, prior)
    )


def more_likely(
    candidate: Candidate[TableKernel],
    rows: Sampled,
    max_iterations: int | None = None,
    goes_on: Callable[[], bool] | None = None,
) -> Candidate[TableKernel]:
    """The maximum on more rows, or the best so far when it ends, starting from the candidate."""
    K = evaluate(candidate.kernel, rows.X, rows.X)
    factor = array_api.cholesky(array_api.add_to_diagonal(K, candidate.regularization))
    # The amplitude that is most likely for this kernel and noise ratio has a closed form.
    amplitude = float((array_api.solve_lower(factor, rows.Y.copy()) ** 2).mean())
    noise = max(candidate.regularization * amplitude, SMALLEST_LAMBDA)
    # More length scales need more steps.
    steps = int(min(60, 10 + 1.5 * rows.X.shape[1])) if max_iterations is None else max_iterations
    start = replace(candidate.kernel, amplitude=amplitude)
    return _without_amplitude(maximize(start, noise, rows.X, rows.Y, steps, goes_on=goes_on))


def most_likely_map(candidate: Candidate[TableKernel], rows: Sampled) -> Candidate[TableKernel]:
    """The most likely linear map in place of the length scales, from which it starts.

    A map has d² numbers, and later steps fit them to the noise, so there are only a few.  The
    columns are divided by their length scales, so that those that mattered little change little.
    """
    kernel = candidate.kernel
    assert kernel.numeric is not None
    numeric = list(kernel.columns.numeric)
    scales = np.ones(rows.X.shape[1])
    scales[numeric] = kernel.numeric.length_scale
    isotropic = replace(kernel.numeric, length_scale=1.0)
    start = replace(kernel, numeric=isotropic, matrix=np.eye(len(numeric)))
    found = more_likely(
        replace(candidate, kernel=start), replace(rows, X=rows.X / scales), _STEPS_OF_A_MAP
    )
    assert found.kernel.matrix is not None
    matrix = found.kernel.matrix / scales[numeric][:, None]
    return replace(found, kernel=replace(found.kernel, matrix=matrix))


def _without_amplitude(evidence: Evidence[TableKernel]) -> Candidate[TableKernel]:
    """λ in units of the amplitude, for a kernel without it."""
    kernel = evidence.kernel
    assert kernel.amplitude is not None
    regularization = max(evidence.noise / kernel.amplitude, SMALLEST_LAMBDA)
    return Candidate(replace(kernel, amplitude=None), regularization)
