"""Naive twins of the loops over groups of ranked rows: means over all orders of ties, by pairs."""

import itertools
import math

import numpy as np


def _orders(gains, scores):
    """Every order of the rows by descending score; ties in all permutations."""
    ties = [np.flatnonzero(scores == s) for s in np.unique(scores)[::-1]]
    for choice in itertools.product(*(itertools.permutations(tie) for tie in ties)):
        yield np.array([row for tie in choice for row in tie])


def groups(starts):
    return itertools.pairwise(starts.tolist())


def mean_over_orders(starts, scores, result, value):
    for group, (first, last) in enumerate(groups(starts)):
        found = [value(first + order) for order in _orders(None, scores[first:last])]
        result[group] = np.mean(found)


def group_ndcg(rows, positions, result):
    gains, k, discounts = rows.gains, positions.k, positions.discounts

    def value(rows):
        ideal = np.sort(gains[rows])[::-1][:k] @ discounts[: len(rows)][:k]
        return gains[rows][:k] @ discounts[: len(rows)][:k] / ideal if ideal > 0 else 1.0

    mean_over_orders(rows.starts, rows.scores, result, value)


def lambda_gradients(rows, positions, normalized, ranked, written, ndcg):
    group_ndcg(rows, positions, ndcg)
    (gains, scores, starts, _), (negative, hessian) = rows, written
    k, discounts = positions.k, positions.discounts
    negative[:], hessian[:] = 0.0, 0.0
    for first, last in groups(starts):
        rows = np.arange(first, last)
        ideal = np.sort(gains[rows])[::-1][:k] @ discounts[: len(rows)][:k]
        if ideal <= 0:
            continue
        orders = list(_orders(None, scores[rows]))
        positions = np.array([np.argsort(order) for order in orders])  # (orders, rows)
        apart = normalized and len(set(scores[rows])) > 1
        total = 0.0
        for i, j in itertools.combinations(range(len(rows)), 2):
            if gains[rows[i]] == gains[rows[j]]:
                continue
            i, j = (i, j) if gains[rows[i]] > gains[rows[j]] else (j, i)
            at_i, at_j = positions[:, i], positions[:, j]
            change = np.abs(discounts[at_i] - discounts[at_j]) * (np.minimum(at_i, at_j) < k)
            delta = change.mean() * (gains[rows[i]] - gains[rows[j]]) / ideal
            ahead = scores[rows[i]] - scores[rows[j]]
            if apart:
                delta /= 0.01 + abs(ahead)
            wrong = 1 / (1 + math.exp(ahead))
            total += 2 * delta * wrong
            negative[rows[i]] += delta * wrong
            negative[rows[j]] -= delta * wrong
            hessian[rows[[i, j]]] += delta * wrong * max(1 - wrong, 0.1)
        if normalized and total > 0:
            negative[rows] *= math.log2(1 + total) / total
            hessian[rows] *= math.log2(1 + total) / total
