"""Naive twins of the loops over groups of ranked rows: means over all orders of ties, by pairs."""

import itertools
import math

import numpy as np

from hilboost.backends.random_bits import bits_of


def _orders(gains, scores):
    """Every order of the rows by descending score; ties in all permutations."""
    ties = [np.flatnonzero(scores == s) for s in np.unique(scores)[::-1]]
    for choice in itertools.product(*(itertools.permutations(tie) for tie in ties)):
        yield np.array([row for tie in choice for row in tie])


def _groups(starts):
    return itertools.pairwise(starts.tolist())


def mean_over_orders(starts, scores, result, value):
    for group, (first, last) in enumerate(_groups(starts)):
        found = [value(first + order) for order in _orders(None, scores[first:last])]
        result[group] = np.mean(found)


def group_ndcg(gains, scores, starts, k, discounts, scratch, result):
    def value(rows):
        ideal = np.sort(gains[rows])[::-1][:k] @ discounts[: len(rows)][:k]
        return gains[rows][:k] @ discounts[: len(rows)][:k] / ideal if ideal > 0 else 1.0

    mean_over_orders(starts, scores, result, value)


def lambda_gradients(gains, scores, starts, k, discounts, normalized, scratch, negative, hessian):
    negative[:], hessian[:] = 0.0, 0.0
    for first, last in _groups(starts):
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
            hessian[rows[[i, j]]] += delta * wrong * (1 - wrong)
        if normalized and total > 0:
            negative[rows] *= math.log2(1 + total) / total
            hessian[rows] *= math.log2(1 + total) / total


def pairwise_gradients(
    gains, scores, starts, most, with_values, scratch, values, negative, hessian
):
    values[:], negative[:], hessian[:] = 0.0, 0.0, 0.0
    for first, last in _groups(starts):
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
            values[[i, j]] += 0.5 * share * math.log1p(math.exp(scores[j] - scores[i]))
            negative[i] += share * wrong
            negative[j] -= share * wrong
            hessian[[i, j]] += share * wrong * (1 - wrong)


def listwise_gradients(gains, scores, starts, keys, order, values, negative, hessian):
    for (first, last), key in zip(_groups(starts), keys, strict=True):
        if len(set(gains[first:last])) == 1:
            for result in (values, negative, hessian):
                result[first:last] = 0.0
            continue
        rows = first + np.lexsort((-gains[first:last], -scores[first:last]))
        pairs = list(zip(scores[rows], gains[rows], strict=True))
        u = np.array([(int(bits_of(key, pairs.index(p))) >> 11) * 2.0**-53 for p in pairs])
        share = gains[rows] + 1 - (u if key else 0.5)
        share /= share.sum()
        p = np.exp(scores[rows] - scores[rows].max())
        p /= p.sum()
        values[rows] = -share * np.log(p)
        negative[rows] = share - p
        hessian[rows] = p * (1 - p)
