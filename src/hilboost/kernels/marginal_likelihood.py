"""Hyperparameter fitting by the marginal likelihood of a Gaussian process on some rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels.base import Kernel
from hilboost.kernels.gram import row_blocks

_LOWEST, _HIGHEST = -6.0, 5.0  # bounds on logarithms of hyperparameters, relative to the start
_LOWEST_NOISE = -16.0
_ROWS_OF_BLOCK = 128
_FAILED = 1e10  # finite value for undefined likelihoods, so that the line search backtracks

AnyKernel = TypeVar("AnyKernel", bound=Kernel)


@dataclass(frozen=True)
class Evidence(Generic[AnyKernel]):
    """A kernel and a noise variance, and the objective value for them."""

    kernel: AnyKernel
    noise: float
    value: float  # negative log marginal likelihood per row and target, without the constant


def negative_log_likelihood(
    kernel: Kernel,
    noise: float,
    X: Floats,
    Y: Floats,
    weight: Floats | None = None,
    any_amplitude: bool = False,
    team: ThreadTeam | None = None,
) -> tuple[float, Floats]:
    """Compute ``½ y'C⁻¹y + ½ log|C|`` for ``C = K + noise I``, summed over targets, with gradient.

    The gradient is that for the logarithms of the kernel's hyperparameters and of the noise
    (Rasmussen & Williams 2006, eq. 5.9); the noise variance of a row is divided by its weight.
    With ``any_amplitude``, ``C`` is multiplied by the most likely factor, ``y'C⁻¹y`` per number.
    With a team, threads share the factorization; the result does not depend on their number.
    Cost O(n³); the gradient with respect to length scales takes one matrix product for each kernel,
    whatever the number of length scales.
    """
    c = Y.shape[1]
    variances = noise if weight is None else noise / weight
    own = kernel.diag(X) + variances
    C, gradient = kernel.gram_and_gradient(X)
    # On the diagonal of a block, s² = 0 has a rounding error, whose root is not small.
    array_api.set_diagonal(C, own)
    factor = array_api.cholesky(C, again=lambda: kernel.block(X, X), team=team)
    alpha = array_api.solve_cholesky(factor, Y.copy())
    fit, scale = float((Y * alpha).sum()), 1.0
    if any_amplitude:
        scale = Y.size / fit
        fit = Y.size * (1.0 - np.log(scale))
    value = 0.5 * fit + c * float(np.log(np.diagonal(factor)).sum())
    W, team = array_api.inverse_of_cholesky(factor, team), team or ThreadTeam()

    def subtract(rows: slice) -> None:
        W[rows] *= c
        W[rows] -= (scale * alpha[rows]) @ alpha.T

    team.map(subtract, row_blocks(len(W), _ROWS_OF_BLOCK))
    by_variance = np.diagonal(W) if weight is None else np.diagonal(W) / weight
    by_noise = 0.5 * noise * float(by_variance.sum())
    return value, np.append(0.5 * gradient(W), by_noise)


class Prior(Protocol):
    """A prior on the logarithms of hyperparameters and noise."""

    def penalty(self, theta: Floats) -> tuple[float, Floats]:
        """Compute the negative log density up to a constant, and its gradient (p,)."""
        ...


@dataclass(frozen=True)
class LogScalePrior:
    """A Gaussian prior on logarithms of length scales, centered at the mean of their group."""

    groups: tuple[slice, ...]  # positions among the logarithms of the kernel's hyperparameters
    spread: float  # standard deviation

    def penalty(self, theta: Floats) -> tuple[float, Floats]:
        """Return the negative log density of logarithms (p,), up to a constant; its gradient."""
        value, gradient = 0.0, np.zeros_like(theta)
        for group in self.groups:
            deviation = (theta[group] - theta[group].mean()) / self.spread
            value += 0.5 * float(deviation @ deviation)
            gradient[group] = deviation / self.spread
        return value, gradient


@dataclass(frozen=True, eq=False)
class SharePrior:
    """A Dirichlet prior on the shares of several kernels in their sum: the product of the shares.

    It keeps kernels that a few rows cannot tell apart, whose most likely shares are often 0.  Its
    influence falls with the number of rows.
    """

    # (k,) float64: logarithms of the amplitudes, the first hyperparameters, at which all shares are
    # equal
    equal: Floats
    strength: float = 1.0  # factor of the logarithm of the density

    def penalty(self, theta: Floats) -> tuple[float, Floats]:
        """Return the negative log density of logarithms (p,), up to a constant; its gradient."""
        k = len(self.equal)
        logs = log_softmax(theta[:k] - self.equal)
        gradient = np.zeros_like(theta)
        gradient[:k] = self.strength * (k * np.exp(logs) - 1.0)
        return -self.strength * float(logs.sum()), gradient


@dataclass(frozen=True)
class Effort:
    """How a maximization proceeds, when it ends, and the threads that share it."""

    most_steps: int = 50
    tolerance: float = 1e-5  # the last step decreases the objective per row and target by less
    # called after each step: whether there is time for another one
    goes_on: Callable[[], bool] | None = None
    team: ThreadTeam | None = None
    # whether the kernel and the noise may have any common factor, which the result does not contain
    any_amplitude: bool = False


def maximize(
    kernel: AnyKernel,  # initial kernel
    noise: float,  # initial noise variance
    X: Floats,  # (n, d) float64
    Y: Floats,  # (n, c) float64
    effort: Effort = Effort(),
    prior: Prior | None = None,  # the value of the evidence then includes its penalty
    # (n,) float64 or None: the noise variance of a row is divided by its weight
    weight: Floats | None = None,
) -> Evidence[AnyKernel]:
    """Maximize the likelihood, or the posterior density, by L-BFGS from one start.

    If the likelihood of the start is undefined, the result is the start, with value infinity.
    """
    start = np.append(kernel.log_parameters, np.log(noise))
    scale = Y.size

    def objective(theta: Floats) -> tuple[float, Floats]:
        try:
            value, gradient = negative_log_likelihood(
                kernel.with_log_parameters(theta[:-1]),
                float(np.exp(theta[-1])),
                *(X, Y, weight, effort.any_amplitude, effort.team),
            )
        except ArithmeticError:
            return _FAILED, np.zeros_like(theta)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return _FAILED, np.zeros_like(theta)
        if prior is not None:
            penalty, pull = prior.penalty(theta)
            value, gradient = value + penalty, gradient + pull
        return value / scale, gradient / scale

    def pause(_: Floats) -> None:
        if effort.goes_on is not None and not effort.goes_on():
            raise StopIteration

    bounds = [(t + _LOWEST, t + _HIGHEST) for t in start[:-1]] + [(_LOWEST_NOISE, 4.0)]
    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=pause,
        options={"maxiter": effort.most_steps, "ftol": effort.tolerance},
    )
    if not result.fun < _FAILED:
        return Evidence(kernel, noise, np.inf)
    best = result.x
    return Evidence(
        kernel.with_log_parameters(best[:-1]), float(np.exp(best[-1])), float(result.fun)
    )


def mean_squared_distance(X: Floats) -> float:
    """Compute ``1/N² sum_ij |x_i - x_j|²`` (SY2006, section 4): twice the sum of the variances."""
    return float(2 * X.var(axis=0).sum())
