"""Boosted output kernel trees under a loss of the distance, from the Gram matrix alone.

Points are rows of weights over the training outputs: ``|Σ_j a_j φ(y_j)|² = a'Ka``.
"""

from __future__ import annotations

import numpy as np
from tests.reference.output_kernel import grow_ok3

_STEPS = 500
_ROUNDING = 1e-6  # of the largest distance, which is the root of a difference of kernel values


def distances(gram: np.ndarray, c: np.ndarray) -> np.ndarray:
    """From points (m,) with this Gram matrix to their combination with weights ``c`` (m,)."""
    return np.sqrt(np.maximum(np.diag(gram) - 2 * gram @ c + c @ gram @ c, 0.0))


def geometric_median(gram: np.ndarray) -> np.ndarray:
    """Weights (m,) of the combination of points with the smallest sum of distances."""
    m = len(gram)
    c = np.full(m, 1 / m)
    for _ in range(_STEPS):
        d = distances(gram, c)
        if d.min() <= 1e-9 * d.max():
            break
        c = (1 / d) / (1 / d).sum()
    # Of two points, all between them are medians; their middle is the one meant.
    best = min(np.eye(m), key=lambda c: distances(gram, c).sum())
    better = distances(gram, best).sum() < (1 - 1e-9) * distances(gram, c).sum()
    return best if better else c


def huber(d: np.ndarray, delta: float) -> np.ndarray:
    """Loss of distances; ``delta = 0`` is absolute error."""
    clipped = np.minimum(d, delta)
    return clipped * (d - 0.5 * clipped) if delta else d


def m_estimate(gram: np.ndarray, delta: float) -> np.ndarray:
    """Weights of the point with the smallest sum of losses."""
    c = geometric_median(gram)
    for _ in range(_STEPS if delta else 0):
        pull = np.minimum(1.0, delta / np.maximum(distances(gram, c), 1e-300))
        c = pull / pull.sum()
    return c


def value_of_leaf(A: np.ndarray, K: np.ndarray, delta: float) -> np.ndarray:
    """Weights (n,) of one step from the geometric median of points (m, n), or of zero."""
    gram = A @ K @ A.T
    c = geometric_median(gram)
    pull = np.minimum(1.0, delta / np.maximum(distances(gram, c), 1e-300)) / len(A)
    c = c + pull - pull.sum() * c
    better = huber(distances(gram, c), delta).sum() <= huber(np.sqrt(np.diag(gram)), delta).sum()
    return c @ A if better else np.zeros(len(K))


def boost(
    X: np.ndarray,
    K: np.ndarray,
    delta: float,
    n_stages: int,
    max_splits: int,
    learning_rate: float,
    X_new: np.ndarray,
) -> tuple[np.ndarray, list[float]]:
    """Weights (q, n) of the points predicted for new rows, and the mean loss after every stage."""
    n, everything = len(X), np.vstack([X, X_new])
    W = np.tile(m_estimate(K, delta), (len(everything), 1))
    history = []
    for stage in range(n_stages + 1):
        R = np.eye(n) - W[:n]
        d = np.sqrt(np.maximum(np.diag(R @ K @ R.T), 0.0))
        d[d <= _ROUNDING * d.max()] = 0.0
        R[d == 0] = 0.0
        history.append(float(huber(d, delta).mean()))
        if stage == n_stages:
            break
        slope = np.minimum(d, delta) if delta else np.ones(n)
        G = (slope / np.maximum(d, 1e-300))[:, None] * R
        tree = grow_ok3(X, G @ K @ G.T, max_splits)
        values = {leaf: value_of_leaf(R[rows], K, delta) for leaf, rows in tree.members.items()}
        W = W + learning_rate * np.array([values[leaf] for leaf in tree.apply(everything)])
    return W[n:], history
