"""Losses and gradients of the squared error and of the log loss.

Hessians are raised where a Newton step in a logarithm (of odds, a mean, or a hazard) would be
longer than ``LONGEST_STEP``.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, tiny
from hilboost.backends.elementary import exp_of, log1p_of

LONGEST_STEP = 10.0
_LEAST = 1.0 / LONGEST_STEP


@tiny
def bounded_curvature(size, factor):
    """Hessian ``size * factor`` of a gradient of this size, or more for a step within the bound."""
    return size * (factor if factor > _LEAST else _LEAST)


@tiny
def curvature(hessian, logistic):
    """The hessian of a row, or that of the log loss of two classes from its gradient.

    The gradient ``g`` is the difference of a probability and 0 or 1, and the hessian
    ``|g| (1 - |g|)``, or ``|g| / 10`` if that is more.
    """
    return bounded_curvature(abs(hessian), 1.0 - abs(hessian)) if logistic else hessian


@compiled
def logistic(y, raw, value, negative, hessian):
    """``log(1 + exp(raw)) - y raw``, its negative gradient ``y - p`` and hessian ``p (1 - p)``.

    ``y``: (n,) float64, 0 or 1. ``raw``: (n,) float64. ``value``: (n,) float64, written.
    ``negative``: (n,) float64, written. ``hessian``: (n,) float64 or None: written from the
    gradients, as :func:`curvature` does.
    """
    for i in range(raw.shape[0]):
        j = uint64(i)
        x = raw[j]
        e = exp_of(-abs(x))
        p = (1.0 if x >= 0.0 else e) / (1.0 + e)
        value[j] = log1p_of(e) + ((x if x > 0.0 else 0.0) - y[j] * x)
        negative[j] = y[j] - p
        if hessian is not None:
            hessian[j] = curvature(negative[j], True)


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


@compiled
def add_squares(y, raw, is_first, value, negative):
    """Residuals of one output, and half their squares, which are added to the other outputs' sums.

    ``y``: (n,) float64. ``raw``: (n,) float64. ``is_first``: whether the squares take the place of
    what is in ``value``. ``value``: (n,) float64, written. ``negative``: (n,) float64, written.
    """
    for i in range(raw.shape[0]):
        j = uint64(i)
        residual = y[j] - raw[j]
        half = 0.5 * (residual * residual)
        value[j] = half if is_first else value[j] + half
        negative[j] = residual
