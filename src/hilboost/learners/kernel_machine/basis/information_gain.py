"""Greedy forward selection by the information gained about the function (SWL2003)."""

from __future__ import annotations

import numpy as np

from hilboost.backends import array_api
from hilboost.core.dtypes import Floats
from hilboost.learners.kernel_machine.basis.problem import Problem, Rows, squares


class ProjectedPosterior:
    """A Gaussian process with the projected likelihood of SWL2003.

    An observation is of a row's projection on the basis instead of the row, with noise ``σ²/w_i``
    for ``σ² = λ``.  ``L L' = K_DD``, ``V = L⁻¹ K_D'``, ``Q Q' = σ² I + V W V'``, ``P = Q⁻¹ V``.
    """

    def __init__(self, problem: Problem, n_basis: int) -> None:
        m, r = problem.y.shape
        self._problem, self._size = problem, 0
        self._V, self._P = np.empty((n_basis, m)), np.empty((n_basis, m))
        self._Q = np.zeros((n_basis, n_basis))
        self._half = np.empty((n_basis, r))  # Q⁻¹ V W y
        self.mean = np.zeros((m, r))  # posterior mean ``μ``
        # ``q_i = w_i |p_i|²``: posterior variance of a projection, in units of the row's noise.
        self.leverage = np.zeros(m)
        # ``l_i² = k_ii - |v_i|²``: variance of a row given its projection, zero if rounding error.
        self.variance = np.maximum(problem.diagonal, 0.0)

    def scores(self) -> Floats:
        """``information_gain`` of every row, (m,)."""
        problem = self._problem
        precision = problem.weight / problem.regularization
        errors = problem.y - self.mean
        return information_gain(self.variance, self.leverage, errors, precision)

    def include(self, i: int) -> None:
        """Add a row of positive ``variance`` to the basis of D rows; cost O(m D + D²)."""
        problem, t, noise = self._problem, self._size, self._problem.regularization
        V, P = self._V[:t], self._P[:t]
        v = (problem.columns(np.array([i]))[0] - V[:, i] @ V) / np.sqrt(self.variance[i])
        weighted = problem.weight * v
        row = array_api.solve_lower(self._Q[:t, :t], V @ weighted) if t else np.empty(0)
        pivot = np.sqrt(max(noise + float(v @ weighted - row @ row), noise))
        p = (v - row @ P) / pivot
        self._V[t], self._P[t] = v, p
        self._Q[t, :t], self._Q[t, t] = row, pivot
        self._half[t] = (weighted @ problem.y - row @ self._half[:t]) / pivot
        self.mean += np.outer(p, self._half[t])
        self.leverage = np.minimum(self.leverage + problem.weight * p * p, 1.0)
        self.variance -= v * v
        self.variance[self.variance <= problem.rounding] = 0.0
        self.variance[i] = 0.0
        self._size += 1


def information_gain(
    variance: Floats, leverage: Floats, errors: Floats, precision: Floats
) -> Floats:
    """Information that the posterior gains if a row enters the basis, (m,), in nats.

    Let ``f = h + e`` with ``h`` the row's projection on the basis and ``e ~ N(0, l²)``.  The row's
    observation is of ``h`` now, and of ``f`` if the row is in the basis.  The gain is ``KL(new ||
    present)`` of the two posteriors; all other observations remain of their projections (SWL2003).
    With the row's noise ``σ²`` (``1/precision``), ``l²`` (``variance``), ``q`` (``leverage``), ``y
    - μ`` (``errors``), ``ξ = 1 / (σ²/l² + 1 - q)`` and ``κ = ξ (1 + 2 σ²/l²)``, it is ``-log(σ/l) -
    ½ (log ξ + ξ (1 - κ) (y - μ)²/σ² - κ + 2)``, summed over the outputs.  The code uses ``l²/σ²``,
    which may be zero.
    """
    ratio = variance * precision
    shrinkage = 1 / (1 + (1 - leverage) * ratio)
    spread = np.log1p((1 - leverage) * ratio) + (2 * leverage - 1) * ratio * shrinkage
    shift = ratio * (1 + leverage * ratio) * shrinkage**2 * precision * squares(errors)
    return 0.5 * (errors.shape[1] * spread + shift)


def by_information_gain(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """The row with the highest gain in each step."""
    posterior = ProjectedPosterior(problem, n_basis)
    chosen: list[int] = []
    for _ in range(n_basis):
        scores = np.where(posterior.variance > 0, posterior.scores(), 0.0)
        best = int(np.argmax(scores))
        if not scores[best] > 0:
            break
        chosen.append(best)
        posterior.include(best)
    return np.array(chosen, dtype=np.intp)
