"""Naive twin of the gradients of the log loss of several classes."""

import numpy as np


def softmax_gradients(values, totals, codes, factor, hessian):
    p = values / totals
    hessian[:] = factor * p * (1 - p)
    values[:] = (np.arange(len(p))[:, None] == codes) - p
