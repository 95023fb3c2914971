"""Basis vectors drawn at random: uniformly, or in proportion to the residual."""

from __future__ import annotations

import numpy as np

from hilboost.learners.kernel_machine.basis.problem import Problem, Rows, squares


def random_rows(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Uniformly, without replacement."""
    return rng.permutation(len(problem.X))[:n_basis]


def by_residual(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Without replacement, in proportion to the weighted squares of the residual.

    Such draws are the rows with the largest ``log p + Gumbel noise``.
    """
    mass = problem.weight * squares(problem.y)
    with np.errstate(divide="ignore"):
        keys = np.log(mass) + rng.gumbel(size=len(mass))
    fitted = np.flatnonzero(mass == 0)  # these come last, in random order
    ranked = np.argsort(-keys, kind="stable")[: len(mass) - len(fitted)]
    return np.append(ranked, rng.permutation(fitted))[:n_basis]
