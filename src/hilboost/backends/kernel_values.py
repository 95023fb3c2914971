"""Values of kernels from squared distances, and of additive kernels, sums over columns or pairs."""

import math
from typing import NamedTuple

from numba import uint64

from hilboost.backends.compiled import compiled
from hilboost.backends.elementary import exp_of

_LOWEST = -708.0  # the exponential of less is not a normal number, and becomes zero


@compiled
def exponentials(x):
    """Replace numbers up to 0 by their exponentials.

    ``x``: (n,) float64, overwritten.
    """
    for i in range(x.shape[0]):
        k = uint64(i)
        value = x[k]
        x[k] = 0.0 if value < _LOWEST else exp_of(value)


@compiled
def matern52(squares, is_slope):
    """Replace ``s²`` by ``(1 + t + t²/3) exp(-t)`` with ``t = sqrt(5) s``, or by its derivative.

    ``squares``: (n,) float64, overwritten. ``is_slope``: whether to compute the derivative with
    respect to ``s²``, ``-5/6 (1 + t) exp(-t)``.
    """
    factor, linear, quadratic = (-5.0 / 6.0, 1.0, 0.0) if is_slope else (1.0, 1.0, 1.0 / 3.0)
    for i in range(squares.shape[0]):
        k = uint64(i)
        t = math.sqrt(5.0 * squares[k])
        decay = 0.0 if -t < _LOWEST else exp_of(-t)
        squares[k] = factor * (1.0 + t * (linear + t * quadratic)) * decay


class Factors(NamedTuple):
    """Factors of the sums over columns and over pairs of columns."""

    main: float
    pairs: float


@compiled
def additive_block(A, B, factors, sums, squares, out):
    """Sums over columns ``k_l`` and pairs of columns ``k_l k_m`` of ``k_l = (1 + (a - b)²)⁻⁴``.

    ``A``: (d, a) float64, scaled columns. ``B``: (d, b) float64, scaled columns. ``sums``: (b,)
    float64, working memory. ``squares``: (b,) float64, working memory. ``out``: (a, b) float32 or
    float64, written.

    Notes
    -----
    The sum over pairs is half the difference of ``(Σ k_l)²`` and ``Σ k_l²``.
    """
    d, n = B.shape
    main, half = factors.main, 0.5 * factors.pairs
    for i in range(A.shape[1]):
        for j in range(n):
            sums[uint64(j)], squares[uint64(j)] = 0.0, 0.0
        for column in range(d):
            here, others = A[column, i], B[column]
            for j in range(n):
                k = uint64(j)
                step = here - others[k]
                value = 1.0 / (1.0 + step * step)
                value *= value
                value *= value
                sums[k] += value
                squares[k] += value * value
        row = out[i]
        for j in range(n):
            k = uint64(j)
            total = sums[k]
            row[k] = main * total + half * (total * total - squares[k])


@compiled
def additive_pulls(A, W, factors, inverses, sums, squares, out):
    """Weighted sums of the derivatives of the values along scales, and of both sums.

    ``A``: (d, a) float64, scaled columns. ``W``: (a, a) float64, weights of pairs of rows; only
    the triangle below the diagonal is read. ``inverses``: (d, a) float64, working memory. ``sums``:
    (a,) float64, working memory. ``squares``: (a,) float64, working memory. ``out``: (d + 2, a)
    float64, written; its sums over rows are the result: ``Σ_ij W_ij ∂k_ij/∂k_l (1 - u_l) k_l`` with
    ``u_l = (1 + (a_i - a_j)²)⁻¹`` for each column l, and the weighted sums of the two sums, without
    their factors.
    """
    (d, n), (main, pairs) = A.shape, factors
    for column in range(d + 2):
        for j in range(n):
            out[column, uint64(j)] = 0.0
    for i in range(n):
        for j in range(i):
            sums[uint64(j)], squares[uint64(j)] = 0.0, 0.0
        for column in range(d):
            here, others, inverse = A[column, i], A[column], inverses[column]
            for j in range(i):
                k = uint64(j)
                step = here - others[k]
                value = 1.0 / (1.0 + step * step)
                inverse[k] = value
                value *= value
                value *= value
                sums[k] += value
                squares[k] += value * value
        weights, of_columns, of_pairs = W[i], out[d], out[d + 1]
        for j in range(i):
            k = uint64(j)
            total = sums[k]
            of_columns[k] += weights[k] * total
            of_pairs[k] += weights[k] * (0.5 * (total * total - squares[k]))
        for column in range(d):
            inverse, pull = inverses[column], out[column]
            for j in range(i):
                k = uint64(j)
                u = inverse[k]
                value = u * u
                value *= value
                others_of_pairs = sums[k] - value
                pull[k] += weights[k] * (main + pairs * others_of_pairs) * ((1.0 - u) * value)
