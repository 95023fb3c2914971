"""Naive twins of the metrics of relevant rows: means over all orders of ties."""

import numpy as np
from tests.reference.ranking import mean_over_orders


def group_average_precision(rows, k, result):
    def value(ranked):
        hits = rows.gains[ranked]
        if not hits.any():
            return 1.0
        precision = np.cumsum(hits) / (1 + np.arange(len(ranked)))
        return (precision * hits)[:k].sum() / min(hits.sum(), k)

    mean_over_orders(rows.starts, rows.scores, result, value)


def group_reciprocal_rank(rows, k, result):
    def value(ranked):
        hits = np.flatnonzero(rows.gains[ranked])
        if not len(hits):
            return 1.0
        return 1 / (1 + hits[0]) if hits[0] < k else 0.0

    mean_over_orders(rows.starts, rows.scores, result, value)
