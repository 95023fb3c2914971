"""The choice of kernel and λ in the first stage of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.tuning.likelihood import (
    SMALLEST_LAMBDA,
    by_likelihood,
    by_mean_distance,
)
from hilboost.learners.kernel_machine.tuning.scoring import (
    ROWS_OF_HOLD_OUT,
    Candidate,
    Sampled,
    lambda_on_grid,
)
from hilboost.learners.kernel_machine.tuning.search import Clock, Search
from hilboost.learners.kernel_machine.tuning.table_kernel import Columns
from hilboost.learners.kernel_machine.workspace import DIRECT_UP_TO, KernelMachineConfig, Workspace

_BYTES_OF_A_CANDIDATE = 32.0  # a squared row
_AT_ONCE = 2  # candidates that the memory budget must hold
_FEWEST_ROWS = 64
_UNLIKE = 30.0  # targets whose spreads differ by more are standardized one by one
_SMALLEST_ITERATIVE_LAMBDA = 1e-3  # below, conjugate gradients need hundreds of steps
_SMALLEST_HURRIED_LAMBDA = 1e-2  # for slow steps that a time limit may cut short
_ROWS_OF_SLOW_STEPS = 15_000


def choose(
    setting: KernelMachineConfig,
    data: Workspace,
    gradients: Gradients,
    weight: Floats | None,
    n_effective: float = np.inf,
    iterates: bool = False,
) -> tuple[Kernel, float]:
    """Kernel and λ of this fit; found in the first stage, kept for the others.

    Parameters
    ----------
    setting : KernelMachineConfig
    data : Workspace
    gradients : Gradients
        Only the negative gradients of the first stage are used.
    weight : (n,) float64 or None
        Zero for rows outside the sample.
    n_effective : float
        Number of basis vectors that the model can have, if fewer than rows.
    iterates : bool
        The fit takes conjugate gradient steps over all rows, which a small λ slows down.

    Returns
    -------
    kernel : Kernel
    regularization : float
    """
    if not data.is_tuned:
        sample = StandardizedSample.of(data, gradients, weight)
        # Each candidate runs on one thread: the choice is the same on any number of threads.
        with array_api.blas_threads(1), _side_by_side(data, len(sample.rows)) as team:
            best = _best(setting, sample, data.kernel, n_effective, iterates, team)
        data.kernel = best.kernel
        data.is_tuned = True
        if best.predicted is not None and best.rows is not None:
            data.trial = data.tried(best.rows, sample.in_units_of_gradients(best.predicted))
        if data.regularization is None:
            data.regularization = best.regularization * sample.mass
            if data.regularize is not None and setting.tuning == "auto":
                data.regularization = data.regularize(data, data.kernel, n_effective)
    assert data.kernel is not None
    assert data.regularization is not None
    if 0 < data.regularization < _smallest_lambda(data, weight):
        data.use_float64()
    return data.kernel, max(data.regularization, _smallest_lambda(data, weight))


def _smallest_lambda(data: Workspace, weight: Floats | None) -> float:
    """λ = 0 stands for the smallest one that rounding leaves meaningful."""
    eps = float(np.finfo(data.precision).eps)
    assert data.kernel is not None
    diagonal = array_api.to_numpy(data.kernel.diag(data.X[:256]))
    mass = 1.0 if weight is None else float(weight.mean())
    return 10 * eps * mass * max(float(np.abs(diagonal).mean()), 1e-300)


@dataclass(frozen=True, eq=False)
class StandardizedSample:
    """A random sample of the rows, its targets less their means and divided by their spreads.

    Attributes
    ----------
    rows : Sampled
    middle, spread : (r,) float64
        Mean and spread of the targets.
    n : int
        Number of rows it was drawn from.
    mass : float
        Mean sample weight.
    """

    rows: Sampled
    middle: Floats
    spread: Floats
    n: int
    mass: float

    @classmethod
    def of(cls, data: Workspace, gradients: Gradients, weight: Floats | None) -> StandardizedSample:
        """Draw as many rows as the memory budget allows, at most twice those of a hold-out fit."""
        rng = np.random.default_rng((data.seed, 1))
        inside = np.arange(data.X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
        affordable = int(np.sqrt(data.memory / (_BYTES_OF_A_CANDIDATE * _AT_ONCE)) / 0.75)
        n_drawn = max(_FEWEST_ROWS, min(2 * ROWS_OF_HOLD_OUT, affordable))
        rows = rng.permutation(inside)[:n_drawn]
        Y = gradients.negative_gradient[rows]
        middle = Y.mean(axis=0)
        Y = Y - middle
        spread = _spread(Y)
        w = np.ones(len(rows)) if weight is None else weight[rows] / weight[rows].mean()
        mass = 1.0 if weight is None else float(weight[rows].mean())
        sampled = Sampled(array_api.to_numpy(data.X[rows]), Y / spread, w, rows)
        return cls(sampled, middle, spread, len(inside), mass)

    def in_units_of_gradients(self, predicted: Floats) -> Floats:
        """Predictions (m, r) of the standardized targets as predictions of the gradients."""
        return self.middle + self.spread * predicted


def _spread(Y: Floats) -> Floats:
    """What centered targets (m, r) are divided by; one number if their spreads are similar."""
    spread = np.sqrt((Y**2).mean(axis=0))
    varies = spread > 0
    if varies.any() and spread.max() <= _UNLIKE * spread[varies].min():
        spread[:] = np.sqrt((spread[varies] ** 2).mean())  # classes, or targets of one kind
    spread[~varies] = 1.0
    return spread


@contextmanager
def _side_by_side(data: Workspace, n_rows: int) -> Iterator[ThreadTeam]:
    """As many threads as the memory budget has candidates for."""
    m = min(ROWS_OF_HOLD_OUT, n_rows)
    most = max(1, int(data.memory / (_BYTES_OF_A_CANDIDATE * m * m)))
    if most >= data.team.n_threads:
        yield data.team
        return
    with ThreadTeam(most) as team:
        yield team


def _best(
    setting: KernelMachineConfig,
    sample: StandardizedSample,
    kernel: Kernel | None,
    n_effective: float,
    iterates: bool,
    team: ThreadTeam,
) -> Candidate[Kernel]:
    """Kernel and λ for standardized targets, by the method of the setting."""
    columns = Columns.of(sample.rows.X.shape[1], setting.categorical)
    if setting.tuning == "marginal_likelihood":
        return by_likelihood(kernel, columns, sample.rows)
    if setting.tuning == "mean_distance":
        return lambda_on_grid(by_mean_distance(sample.rows), sample.rows, team)
    if kernel is not None:
        return lambda_on_grid(kernel, sample.rows, team)
    hurries = iterates and setting.tuning_seconds is not None
    n = min(sample.n, n_effective)
    clock = Clock(setting.tuning_seconds)
    best = Search(columns, sample.rows, n, _lambda_floor(n, hurries), team, clock).best()
    return Candidate(best.kernel.plain, best.regularization, best.error, best.predicted, best.rows)


def _lambda_floor(n: float, hurries: bool) -> float:
    """The smallest λ for which the rest of the fit converges in time."""
    if n <= DIRECT_UP_TO:
        return SMALLEST_LAMBDA
    if hurries and n > _ROWS_OF_SLOW_STEPS:
        return _SMALLEST_HURRIED_LAMBDA
    return _SMALLEST_ITERATIVE_LAMBDA
