"""Naive twin of the logistic loss of pairs."""

import itertools
import math

import numpy as np
from tests.reference.ranking import groups


def pairwise_gradients(rows, most, with_values, ranked, values, written):
    (gains, scores, starts, _), (negative, hessian) = rows, written
    values[:], negative[:], hessian[:] = 0.0, 0.0, 0.0
    for first, last in groups(starts):
        size = last - first
        rows = first + np.lexsort((-gains[first:last], -scores[first:last]))
        pairs = list(itertools.combinations(range(size), 2))
        share = 1 / size
        if size > 2 * most + 1:
            distances = [1 + k * (size // 2 - 1) // most for k in range(most)]
            pairs = [(i, (i + d) % size) for i in range(size) for d in distances]
            share = (size - 1) / (2 * most * size)
        for pair in pairs:
            i, j = sorted(rows[list(pair)], key=lambda row: -gains[row])
            if gains[i] == gains[j]:
                continue
            wrong = 1 / (1 + math.exp(scores[i] - scores[j]))
            values[first:last] += share * math.log1p(math.exp(scores[j] - scores[i])) / size
            negative[i] += share * wrong
            negative[j] -= share * wrong
            hessian[[i, j]] += share * wrong * max(1 - wrong, 0.1)
        negative[rows], hessian[rows] = _means_of_equal(gains, scores, rows, negative, hessian)


def _means_of_equal(gains, scores, rows, *values):
    alike = (scores[rows] == scores[rows, None]) & (gains[rows] == gains[rows, None])
    return [alike @ value[rows] / alike.sum(axis=1) for value in values]
