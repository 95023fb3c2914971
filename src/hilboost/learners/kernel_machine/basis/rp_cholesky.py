"""Basis vectors by randomly pivoted Cholesky factorization."""

from __future__ import annotations

import numpy as np

from hilboost.backends import array_api
from hilboost.core.dtypes import Floats
from hilboost.kernels import gram
from hilboost.learners.kernel_machine.basis.problem import Problem, Rows

_PIVOTS_AT_ONCE = 128


def rp_cholesky(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Pivots drawn in proportion to the weighted diagonal of the Schur complement.

    Chen, Epperly, Tropp & Webber 2022 (arXiv 2207.06503), Algorithm 1, in the accelerated form of
    Epperly, Tropp & Webber 2024 (arXiv 2410.03969), which uses matrix products: pivots are proposed
    in blocks and accepted by rejection sampling.  They have the same distribution as in the
    sequential method.
    """
    X, kernel = problem.X, problem.kernel
    # (m,) diagonal of the Schur complement; zero for rows that are excluded
    left = np.maximum(problem.diagonal, 0.0)
    factor = np.empty((n_basis, len(X)))
    chosen: Rows = np.empty(0, dtype=np.intp)
    while (k := len(chosen)) < n_basis and (total := (mass := problem.weight * left).sum()) > 0:
        proposed = rng.choice(len(X), size=_PIVOTS_AT_ONCE, p=mass / total)
        above = factor[:k, proposed]
        schur = gram.evaluate(kernel, X[proposed], X[proposed]) - above.T @ above
        smallest = problem.rounding[proposed]
        kept, corner = _accept(schur, proposed, left[proposed], smallest, rng)
        if len(kept) == 0:  # the first is accepted, unless it is numerically dependent
            left[proposed[0]] = 0.0
            continue
        kept, corner = kept[: n_basis - k], corner[: n_basis - k, : n_basis - k]
        pivots, new = proposed[kept], factor[k : k + len(kept)]
        residual = problem.columns(pivots) - above[:, kept].T @ factor[:k]
        new[:] = array_api.solve_lower(corner, residual)
        left -= np.einsum("ij,ij->j", new, new)
        left[left <= problem.rounding] = 0.0
        left[pivots] = 0.0
        chosen = np.append(chosen, pivots)
    return chosen


def _accept(
    schur: Floats, proposed: Rows, before: Floats, smallest: Floats, rng: np.random.Generator
) -> tuple[Rows, Floats]:
    """Which proposals (b,) become pivots, and the Cholesky factor of their block of ``schur``.

    ``schur`` (b, b) is overwritten; ``before`` (b,) is the diagonal that they were drawn by, and
    ``smallest`` (b,) its rounding error.
    """
    bounds = np.maximum(rng.random(len(schur)) * before, smallest)
    bounds[0] = smallest[0]
    factor = np.zeros_like(schur)
    kept: list[int] = []
    taken: set[int] = set()
    for j in range(len(schur)):
        if schur[j, j] > bounds[j] and proposed[j] not in taken:
            column = schur[j:, j] / np.sqrt(schur[j, j])
            schur[j:, j:] -= np.outer(column, column)
            factor[j:, len(kept)] = column
            kept.append(j)
            taken.add(proposed[j])
    return np.array(kept, dtype=np.intp), factor[kept, : len(kept)]
