"""Losses and gradients of the log loss of several classes."""

import math

from numba import uint64

from hilboost.backends.compiled import compiled
from hilboost.backends.elementary import exp_of

_TILE = 512
"""Rows of which all scores lie in the second-level cache."""


@compiled
def softmax(scores, codes, factor, value, totals, hessian):
    """Losses, negative gradients ``1[c = y] - p_c`` and hessians ``factor p_c (1 - p_c)``.

    Parameters
    ----------
    scores : (C, n) float64
        Negative gradients are written in their place.
    codes : (n,) int64, classes of the rows
    factor : float
    value : (n,) float64, losses, written
    totals : (n,) float64, working memory
    hessian : (C, n) float64, written
    """
    n_classes, n = scores.shape
    for begin in range(0, n, _TILE):
        end = min(begin + _TILE, n)
        highest = value
        for i in range(begin, end):
            j = uint64(i)
            highest[j], totals[j] = scores[0, j], 0.0
        for c in range(1, n_classes):
            of_class = scores[c]
            for i in range(begin, end):
                j = uint64(i)
                highest[j] = of_class[j] if of_class[j] > highest[j] else highest[j]
        for c in range(n_classes):
            of_class, exponentials = scores[c], hessian[c]
            for i in range(begin, end):
                j = uint64(i)
                e = exp_of(of_class[j] - highest[j])
                exponentials[j] = e
                totals[j] += e
        for i in range(begin, end):
            j = uint64(i)
            value[j] = math.log(totals[j]) - (scores[uint64(codes[j]), j] - highest[j])
            totals[j] = 1.0 / totals[j]
        for c in range(n_classes):
            of_class, curvature = scores[c], hessian[c]
            for i in range(begin, end):
                j = uint64(i)
                p = curvature[j] * totals[j]
                curvature[j] = (1.0 - p) * p * factor
                of_class[j] = -p
        for i in range(begin, end):
            j = uint64(i)
            scores[uint64(codes[j]), j] += 1.0
