"""Naive twin of the losses and gradients of the log loss of several classes."""

import numpy as np


def softmax(scores, codes, factor, value, totals, hessian):
    own = np.arange(len(scores))[:, None] == codes
    values = np.exp(scores - scores.max(axis=0))
    totals[:] = values.sum(axis=0)
    value[:] = np.log(totals) - (scores - scores.max(axis=0)).T[own.T]
    p = values / totals
    hessian[:] = factor * p * (1 - p)
    scores[:] = own - p
