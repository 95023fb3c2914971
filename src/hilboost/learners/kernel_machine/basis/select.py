"""Selection of basis vectors by the name of a strategy, such as k-means or random draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.core.errors import unknown_name
from hilboost.learners.kernel_machine.basis.forward import forward
from hilboost.learners.kernel_machine.basis.information_gain import by_information_gain
from hilboost.learners.kernel_machine.basis.problem import Problem, Rows, squares
from hilboost.learners.kernel_machine.basis.rp_cholesky import rp_cholesky


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


def k_means(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """The rows nearest to the centers; equal rows are merged first, so that no cluster is empty."""
    from sklearn.cluster import MiniBatchKMeans  # slow to import, and used here only
    from sklearn.metrics import pairwise_distances_argmin

    distinct, first, copies = np.unique(problem.X, axis=0, return_index=True, return_inverse=True)
    if len(first) <= n_basis:
        return first
    clusters = MiniBatchKMeans(n_basis, n_init=1, random_state=int(rng.integers(2**31)))
    clusters.fit(distinct, sample_weight=np.bincount(copies.ravel(), problem.weight))
    centers, free = clusters.cluster_centers_, np.arange(len(first))
    chosen: list[Rows] = []
    while len(centers):  # if a row is the nearest to several centers, one of them gets it
        nearest, owner = np.unique(
            pairwise_distances_argmin(centers, distinct[free]), return_index=True
        )
        chosen.append(free[nearest])
        free, centers = np.delete(free, nearest), np.delete(centers, owner, axis=0)
    return first[np.concatenate(chosen)]


_STRATEGIES: dict[str, Callable[[Problem, int, np.random.Generator], Rows]] = {
    "forward": forward,
    "information_gain": by_information_gain,
    "k_means": k_means,
    "random": random_rows,
    "residual": by_residual,
    "rp_cholesky": rp_cholesky,
}

SELECTIONS: tuple[str, ...] = tuple(sorted(_STRATEGIES))
"""Names of the strategies."""

COLUMNS_HELD = {"forward": 1, "information_gain": 2, "rp_cholesky": 1}
"""Number of float64 arrays (m, D) that strategies hold; none by default."""


def select(
    name: str,  # one of ``SELECTIONS``
    problem: Problem,
    n_basis: int,
    rng: np.random.Generator,
) -> Rows:
    """Choose at most ``n_basis`` distinct basis vectors among the rows, in the order of choice.

    Fewer if fewer rows are useful: the others are equal, yield no gain, or the kernel has a low
    rank.  Memory in float64 numbers for m rows and D basis vectors: m D for ``rp_cholesky`` and
    ``forward``, 2 m D for ``information_gain``; in addition, ``forward`` keeps up to 256 MiB of
    kernel values.
    """
    if name not in _STRATEGIES:
        raise unknown_name("selection", name, SELECTIONS)
    n_basis = max(1, min(n_basis, len(problem.X)))
    chosen = _STRATEGIES[name](problem, n_basis, rng)
    return problem.rows[chosen if len(chosen) else random_rows(problem, 1, rng)]
