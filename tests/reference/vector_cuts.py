"""Naive twins of :mod:`hilboost.engine.ops.cpu.vector_cuts`: every cut tried, every sum afresh."""

from __future__ import annotations

import math

import numpy as np
from tests.reference.histogram import bins_of

NO_GAIN = -math.inf


def weights_of(weights, rows):
    return weights[rows] if len(weights) else np.ones(len(rows))


def score_of(rows, goes_left, gradients, weights, min_weight):
    """``|S_l|²/W_l + |S_r|²/W_r``, or no gain where a side is too light."""
    score = 0.0
    for side in (rows[goes_left], rows[~goes_left]):
        weight = weights_of(weights, side).sum()
        if weight < min_weight or weight <= 0:
            return NO_GAIN
        score += (gradients[side].sum(axis=0) ** 2).sum() / weight
    return score


def rows_and_bins(column):
    """The rows of a column of a node, their bins, and the bin of missing values."""
    table, number, here, _ = column
    rows = here.rows[here.begin : here.end]
    return rows, bins_of(table.words, number)[rows].astype(int), table.n_bins - 1


def scan_cuts(column, min_weight, tie, scratch):
    (rows, b, missing), gradients = rows_and_bins(column), column.gradients
    best = NO_GAIN, 0, 0
    for missing_left in (0, 1) if (b == missing).any() else (0,):
        for cut in np.unique(b[b < missing]):
            goes_left = (b <= cut) | (bool(missing_left) & (b == missing))
            score = score_of(rows, goes_left, gradients.values, gradients.weights, min_weight)
            if score > best[0] + tie:
                best = score, int(cut), missing_left
    return best


def score_cut(column, min_weight, cut, missing_left, sums):
    (rows, b, missing), gradients = rows_and_bins(column), column.gradients
    goes_left = (b <= cut) | (bool(missing_left) & (b == missing))
    return score_of(rows, goes_left, gradients.values, gradients.weights, min_weight)
