"""Boosting with several kernels by dense algebra: each stage solves every kernel's system."""

from __future__ import annotations

import numpy as np


def boosted(grams, y, regularization, n_stages, loss="squared_error", weight=None):
    """Full stages, each of the kernel with the largest ``½ g'H⁻¹g`` for ``H = K'WK + λ K``.

    Returns the function on the rows (n,), the chosen kernels (n_stages,), the gains (n_stages, k)
    and the functions of the kernels (k, n).
    """
    w = np.ones(len(y)) if weight is None else weight
    mean = np.average(y, weights=w)
    start = mean if loss == "squared_error" else np.log(mean / (1 - mean))
    curvature = 1.0 if loss == "squared_error" else 0.25
    alpha = np.zeros((len(grams), len(y)))
    chosen, gains = [], []
    for _ in range(n_stages):
        functions = np.array([K @ a for K, a in zip(grams, alpha, strict=True)])
        F = start + functions.sum(axis=0)
        negative = y - (F if loss == "squared_error" else 1 / (1 + np.exp(-F)))
        found, steps = [], []
        for K, f in zip(grams, functions, strict=True):
            g = K @ (w * negative) - regularization * f
            H = K @ np.diag(w * curvature) @ K + regularization * K
            step = np.linalg.lstsq(H, g, rcond=1e-13)[0]
            found.append(0.5 * g @ step)
            steps.append(step)
        best = int(np.argmax(found))
        alpha[best] += steps[best]
        chosen.append(best)
        gains.append(found)
    functions = np.array([K @ a for K, a in zip(grams, alpha, strict=True)])
    return start + functions.sum(axis=0), np.array(chosen), np.array(gains), functions
