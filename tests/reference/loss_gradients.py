"""Naive twins of :mod:`hilboost.backends.loss_gradients`."""

import numpy as np


def logistic(y, raw, value, negative, hessian):
    p = 1 / (1 + np.exp(-raw))
    value[:] = np.logaddexp(0, np.where(y == 1, -raw, raw))
    negative[:] = y - p
    hessian[:] = np.maximum(p * (1 - p), np.abs(y - p) / 10)


def softmax(n_classes, scores, apart, codes, value, totals, gradients):
    negative, hessian, apart_there = gradients
    starts, rows = np.arange(n_classes)[:, None], np.arange(len(value))
    places = starts * apart_there + rows
    scores = scores[starts * apart + rows]
    own = np.arange(n_classes)[:, None] == codes
    values = np.exp(scores - scores.max(axis=0))
    totals[:] = values.sum(axis=0)
    value[:] = np.log(totals) - (scores - scores.max(axis=0)).T[own.T]
    p = values / totals
    negative[places] = own - p
    curvature = np.maximum(p * (1 - p), np.abs(own - p) / 10)
    hessian[places] = n_classes / (n_classes - 1) * curvature


def add_squares(y, raw, is_first, value, negative):
    """One row after the other."""
    for i in range(len(raw)):
        negative[i] = y[i] - raw[i]
        half = negative[i] ** 2 / 2
        value[i] = half if is_first else value[i] + half
