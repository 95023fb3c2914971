"""Naive twins of the gradients from orders that are drawn at random: exchanges are carried out."""

import itertools
import math

import numpy as np
from tests.reference.ranking import groups

from hilboost.backends.random_bits import bits_of


def _uniform(key, number):
    return ((int(bits_of(key, number)) >> 11) + 0.5) * 2.0**-53


def _places(gains, scores, first, last):
    """The rows of a group by place."""
    return first + np.lexsort((-gains[first:last], -scores[first:last]))


def _pair(better, worse, weight, scores, slopes, bends):
    low = 1 / (1 + math.exp(scores[better] - scores[worse]))
    slopes[better] += weight * low
    slopes[worse] -= weight * low
    bends[[better, worse]] += weight * low * max(1 - low, 0.1)
    return 2 * weight * low


def _finish(rows, gains, scores, factor, slopes, bends, negative, hessian):
    for row in rows:
        alike = rows[(scores[rows] == scores[row]) & (gains[rows] == gains[row])]
        negative[row] = factor * slopes[alike].mean()
        hessian[row] = factor * bends[alike].mean()


def neighbor_gradients(rows, positions, draws, n_orders, ranked, drawn, written):
    (gains, scores, starts, _), (negative, hessian) = rows, written
    k, discounts = positions.k, positions.discounts
    negative[:], hessian[:] = 0.0, 0.0
    for (first, last), number in zip(groups(starts), draws.numbers, strict=True):
        own = np.uint64(bits_of(draws.key, number))
        rows, n = _places(gains, scores, first, last), last - first
        ideal = np.sort(gains[rows])[::-1][:k] @ discounts[:n][:k]
        slopes, bends = np.zeros(len(gains)), np.zeros(len(gains))
        for drawn in range(n_orders):
            u = np.array([_uniform(own, drawn * n + place) for place in range(n)])
            order = rows[np.argsort(-(scores[rows] + np.log(u / (1 - u))), kind="stable")]
            for position, (a, b) in enumerate(itertools.pairwise(order[: k + 1])):
                if gains[a] != gains[b]:
                    a, b = (a, b) if gains[a] > gains[b] else (b, a)
                    weight = (gains[a] - gains[b]) * discounts[position] / ideal
                    _pair(a, b, weight, scores, slopes, bends)
        factor = math.sqrt(n) / n_orders
        _finish(rows, gains, scores, factor, slopes, bends, negative, hessian)


def exchange_gradients(rows, k, only_first, draws, ranked, drawn, written):
    (relevant, scores, starts, _), (negative, hessian) = rows, written

    def value(hits):
        if only_first:
            found = np.flatnonzero(hits)[0]
            return 1 / (1 + found) if found < k else 0.0
        precision = np.cumsum(hits) / (1 + np.arange(len(hits)))
        return (precision * hits)[:k].sum() / min(hits.sum(), k)

    negative[:], hessian[:] = 0.0, 0.0
    for (first, last), number in zip(groups(starts), draws.numbers, strict=True):
        own = np.uint64(bits_of(draws.key, number))
        rows = _places(relevant, scores, first, last)
        u = np.array([_uniform(own, place) for place in range(last - first)])
        order = rows[np.lexsort((-u, -scores[rows]))]
        apart = len(set(scores[rows])) > 1
        slopes, bends, total = np.zeros(len(scores)), np.zeros(len(scores)), 0.0
        for p, q in itertools.combinations(range(len(order)), 2):
            if relevant[order[p]] == relevant[order[q]]:
                continue
            hits = relevant[order].copy()
            before = value(hits)
            hits[[p, q]] = hits[[q, p]]
            weight = abs(before - value(hits))
            a, b = order[p], order[q]
            if apart:
                weight /= 0.01 + abs(scores[a] - scores[b])
            a, b = (a, b) if relevant[a] > relevant[b] else (b, a)
            total += _pair(a, b, weight, scores, slopes, bends)
        factor = math.log2(1 + total) / total if total else 0.0
        _finish(rows, relevant, scores, factor, slopes, bends, negative, hessian)


def listwise_gradients(rows, draws, drawn, values, written):
    (gains, scores, starts, _), (negative, hessian) = rows, written
    for (first, last), number in zip(groups(starts), draws.numbers, strict=True):
        if len(set(gains[first:last])) == 1:
            for result in (values, negative, hessian):
                result[first:last] = 0.0
            continue
        rows = first + np.lexsort((-gains[first:last], -scores[first:last]))
        pairs = list(zip(scores[rows], gains[rows], strict=True))
        own = np.uint64(bits_of(draws.key, number))
        u = np.array([(int(bits_of(own, pairs.index(p))) >> 11) * 2.0**-53 for p in pairs])
        share = gains[rows] + 1 - (u if drawn else 0.5)
        share /= share.sum()
        p = np.exp(scores[rows] - scores[rows].max())
        p /= p.sum()
        values[rows] = -share * np.log(p)
        negative[rows] = share - p
        hessian[rows] = np.maximum(p * (1 - p), np.abs(share - p) / 10)
