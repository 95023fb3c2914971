"""Naive twins of the metrics of relevant rows: means over all orders of ties."""

import numpy as np
from tests.reference.ranking import mean_over_orders


def group_average_precision(relevant, scores, starts, k, order, result):
    def value(rows):
        hits = relevant[rows]
        if not hits.any():
            return 1.0
        precision = np.cumsum(hits) / (1 + np.arange(len(rows)))
        return (precision * hits)[:k].sum() / min(hits.sum(), k)

    mean_over_orders(starts, scores, result, value)


def group_reciprocal_rank(relevant, scores, starts, k, order, result):
    def value(rows):
        hits = np.flatnonzero(relevant[rows])
        if not len(hits):
            return 1.0
        return 1 / (1 + hits[0]) if hits[0] < k else 0.0

    mean_over_orders(starts, scores, result, value)
