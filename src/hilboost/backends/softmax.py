"""Losses and gradients of the log loss of several classes."""

import math
from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled
from hilboost.backends.elementary import exp_of
from hilboost.backends.logistic import bounded_curvature

_TILE = 512
"""Rows of which all scores lie in the second-level cache."""


class FlatGradients(NamedTuple):
    """Gradients of C columns, written."""

    negative: NDArray[np.float64]  # ((C - 1) apart + n,) float64
    hessian: NDArray[np.float64]  # ((C - 1) apart + n,) float64
    apart: int  # distance between the columns


@compiled
def softmax(n_classes, scores, apart, codes, value, totals, gradients):
    """Losses, negative gradients ``1[c = y] - p_c`` and hessians ``C / (C - 1) p_c (1 - p_c)``.

    The n rows may be some of a larger table, whose columns follow each other in memory::

        scores    c = 0: ■■■■····  c = 1: ■■■■····  c = 2: ■■■■
                         `-apart--´

    ``scores``: ((C - 1) apart + n,) float64. ``apart``: distance between the columns of ``scores``.
    ``codes``: (n,) unsigned int or int64, classes of the rows. ``value``: (n,) float64, losses,
    written. ``totals``: (n,) float64, working memory. ``gradients``: FlatGradients.
    """
    negative, hessian, apart_there = gradients
    n = value.shape[0]
    factor = n_classes / (n_classes - 1)
    for begin in range(0, n, _TILE):
        end = min(begin + _TILE, n)
        highest = value
        for i in range(begin, end):
            j = uint64(i)
            highest[j], totals[j] = scores[j], 0.0
        for c in range(1, n_classes):
            of_class = scores[c * apart : c * apart + n]
            for i in range(begin, end):
                j = uint64(i)
                highest[j] = of_class[j] if of_class[j] > highest[j] else highest[j]
        for c in range(n_classes):
            of_class = scores[c * apart : c * apart + n]
            exponentials = hessian[c * apart_there : c * apart_there + n]
            for i in range(begin, end):
                j = uint64(i)
                e = exp_of(of_class[j] - highest[j])
                exponentials[j] = e
                totals[j] += e
        for i in range(begin, end):
            j = uint64(i)
            own = scores[uint64(codes[j]) * uint64(apart) + j]
            value[j] = math.log(totals[j]) - (own - highest[j])
            totals[j] = 1.0 / totals[j]
        for c in range(n_classes):
            descent = negative[c * apart_there : c * apart_there + n]
            curvature = hessian[c * apart_there : c * apart_there + n]
            for i in range(begin, end):
                j = uint64(i)
                p = curvature[j] * totals[j]
                curvature[j] = bounded_curvature(p, 1.0 - p) * factor
                descent[j] = -p
        for i in range(begin, end):
            j = uint64(i)
            own = uint64(codes[j]) * uint64(apart_there) + j
            p = -negative[own]
            negative[own] = 1.0 - p
            hessian[own] = bounded_curvature(1.0 - p, p) * factor
