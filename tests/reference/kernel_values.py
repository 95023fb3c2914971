"""Naive twins of :mod:`hilboost.backends.kernel_values`, by formulas of whole arrays."""

from itertools import combinations

import numpy as np


def exponentials(x):
    with np.errstate(under="ignore"):
        x[:] = np.where(x < -708, 0, np.exp(x))


def matern52(squares, is_slope):
    t = np.sqrt(5 * squares)
    decay = np.where(t > 708, 0, np.exp(-t))
    squares[:] = (-5 / 6 * (1 + t) if is_slope else 1 + t + t**2 / 3) * decay


def additive_block(A, B, factors, sums, squares, out):
    main, pairs = factors
    for i, a in enumerate(A.T):
        for j, b in enumerate(B.T):
            values = [(1 + (x - y) ** 2) ** -4 for x, y in zip(a, b, strict=True)]
            products = [k * m for k, m in combinations(values, 2)]
            out[i, j] = main * sum(values) + pairs * sum(products)


def additive_pulls(A, W, factors, inverses, sums, squares, out):
    (d, n), (main, pairs) = A.shape, factors
    out[:] = 0
    for i in range(n):
        for j in range(i):
            inverse = 1 / (1 + (A[:, i] - A[:, j]) ** 2)
            values = inverse**4
            for c in range(d):
                by_value = main + pairs * sum(values[m] for m in range(d) if m != c)
                out[c, j] += W[i, j] * by_value * (1 - inverse[c]) * values[c]
            out[d, j] += W[i, j] * sum(values)
            out[d + 1, j] += W[i, j] * sum(k * m for k, m in combinations(values, 2))
