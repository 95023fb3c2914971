"""Basis vectors near the centers of clusters."""

from __future__ import annotations

import numpy as np

from hilboost.learners.kernel_machine.basis.problem import Problem, Rows


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
