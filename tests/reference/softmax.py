"""Naive twins of the scores and gradients of the log loss of several classes."""

import numpy as np


def shift_scores(scores, codes, highest, own):
    highest[:] = scores.max(axis=0)
    scores -= highest
    own[:] = scores[codes, np.arange(scores.shape[1])]


def softmax_gradients(values, totals, codes, factor, hessian):
    p = values / totals
    hessian[:] = factor * p * (1 - p)
    values[:] = (np.arange(len(p))[:, None] == codes) - p
