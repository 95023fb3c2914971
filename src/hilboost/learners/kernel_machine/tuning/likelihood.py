"""Kernels and λ with the highest marginal likelihood on some rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.kernels import Constant, Gaussian, Kernel
from hilboost.kernels.marginal_likelihood import (
    Effort,
    Evidence,
    LogScalePrior,
    maximize,
    mean_squared_distance,
)
from hilboost.learners.kernel_machine.tuning.scoring import Candidate, Rows
from hilboost.learners.kernel_machine.tuning.table_kernel import Columns, TableKernel

ROWS_FIRST, ROWS_PER_SCALE = 300, 10
ROWS_OF_LIKELIHOOD = 1000
SMALLEST_LAMBDA = 1e-7
ROUGH = 1e-4  # tolerance: families are compared by rough length scales
_STARTS = (0.5, 1.5)  # length scales
START_NOISE = 0.1
_STEPS_FROM_A_START = 30
_STEPS_OF_A_MAP = 16
_SPREAD_OF_SCALES = 0.5  # of their logarithms; about the best of .5, 1 and ∞ on small mixed tables


def by_likelihood(given: Kernel | None, columns: Columns, sampled: Rows) -> Candidate[Kernel]:
    """All hyperparameters of SY2006's kernel (23), or of the given one, and λ as the noise."""
    rows = sampled.first(ROWS_OF_LIKELIHOOD)
    starts = [given] if given is not None else [_sun_yao(columns, scale) for scale in _STARTS]
    found = [maximize(kernel, START_NOISE, rows.X, rows.Y) for kernel in starts]
    best = min(found, key=lambda evidence: evidence.value)
    return Candidate(best.kernel, best.noise)


def _sun_yao(columns: Columns, scale: float) -> Kernel:
    """SY2006, eq. (23): a Gaussian kernel times a factor, plus a constant."""
    return 1.0 * columns.kernel("gaussian", scale).plain + Constant(0.1)


def by_mean_distance(sampled: Rows) -> Kernel:
    """``exp(-|x - x'|²/θ)`` with θ the mean squared distance (SY2006, section 4)."""
    theta = max(mean_squared_distance(sampled.X), 1e-12)
    return Gaussian(np.sqrt(theta / 2))


def starts_of(columns: Columns, family: str) -> list[Candidate[TableKernel]]:
    """Kernels of a family from which the search starts."""
    return [Candidate(columns.kernel(family, scale), START_NOISE) for scale in _STARTS]


def most_likely(
    starts: Sequence[Candidate[TableKernel]],
    rows: Rows,
    team: ThreadTeam,
    goes_on: Callable[[], bool] | None = None,
) -> Candidate[TableKernel]:
    """The most likely of the rough maxima that are found from some starts, or that so far."""
    effort = Effort(_STEPS_FROM_A_START, ROUGH, goes_on)

    def maximized(start: Candidate[TableKernel]) -> Evidence[TableKernel]:
        kernel, noise = start.kernel, start.regularization
        return maximize(kernel, noise, rows.X, rows.Y, effort, any_amplitude=True)

    return _candidate(min(team.map(maximized, starts), key=lambda evidence: evidence.value))


def most_likely_alike(start: Candidate[TableKernel], rows: Rows) -> Candidate[TableKernel]:
    """Rough length scales with a prior that keeps them alike."""
    prior = LogScalePrior(start.kernel.scale_groups, _SPREAD_OF_SCALES)
    return more_likely(start, rows, Effort(_STEPS_FROM_A_START, ROUGH), prior)


def more_likely(
    start: Candidate[TableKernel],
    rows: Rows,
    effort: Effort | None = None,
    prior: LogScalePrior | None = None,
) -> Candidate[TableKernel]:
    """The maximum on some rows, or the best so far when it ends."""
    if effort is None:  # more length scales need more steps
        effort = Effort(int(min(60, 10 + 1.5 * rows.X.shape[1])))
    noise = max(start.regularization, SMALLEST_LAMBDA)
    return _candidate(
        maximize(start.kernel, noise, rows.X, rows.Y, effort, prior, any_amplitude=True)
    )


def most_likely_map(candidate: Candidate[TableKernel], rows: Rows) -> Candidate[TableKernel]:
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
        replace(candidate, kernel=start), replace(rows, X=rows.X / scales), Effort(_STEPS_OF_A_MAP)
    )
    assert found.kernel.matrix is not None
    matrix = found.kernel.matrix / scales[numeric][:, None]
    return replace(found, kernel=replace(found.kernel, matrix=matrix))


def _candidate(evidence: Evidence[TableKernel]) -> Candidate[TableKernel]:
    return Candidate(evidence.kernel, max(evidence.noise, SMALLEST_LAMBDA))
