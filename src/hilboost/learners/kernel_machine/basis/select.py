"""Selection of basis vectors by the name of a strategy, such as k-means or random draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.backends import array_api
from hilboost.core.dtypes import Floats
from hilboost.core.errors import unknown_name
from hilboost.kernels import gram
from hilboost.learners.kernel_machine.basis.greedy import by_information_gain, forward
from hilboost.learners.kernel_machine.basis.problem import Problem, Rows, squares

_PIVOTS_AT_ONCE = 128


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
