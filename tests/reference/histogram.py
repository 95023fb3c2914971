"""Naive twins of :mod:`hilboost.engine.ops.cpu.histogram`."""

import numpy as np
from tests.reference.compact_gradients import in_64_bits


def bins_of(words, column):
    """Bins (n,) of one column of a packed table."""
    return ((words[column // 8] >> np.uint64(8 * (column % 8))) & np.uint64(255)).astype(np.int64)


def table_of(words, n_columns):
    """Bins (n, n_columns) of a packed table."""
    return np.column_stack([bins_of(words, k) for k in range(n_columns)])


def accumulate(
    words, first_word, last_word, n_values, n_bins, rows, ordered, compact, begin, end, histogram
):
    for k in range(8 * first_word, min(8 * last_word, len(n_values))):
        bins = bins_of(words, k)
        for b in (*range(n_values[k]), n_bins - 1):
            histogram[256 * k + b] = sum(
                in_64_bits(ordered[i], compact) for i in range(begin, end) if bins[rows[i]] == b
            )


def accumulate_channels(
    words, first_word, last_word, n_columns, n_bins, rows, packed, begin, end, n_channels, histogram
):
    packed = np.hstack([packed, np.ones((len(packed), n_channels - packed.shape[1]), dtype=int)])
    for k in range(8 * first_word, min(8 * last_word, n_columns)):
        bins = bins_of(words, k)
        for b in range(n_bins):
            here = [row for row in rows[begin:end] if bins[row] == b]
            for c in range(n_channels):
                histogram[(k * n_bins + b) * n_channels + c] = sum(int(packed[i, c]) for i in here)


def merge(histogram, private, n_parts, begin, end):
    histogram[begin:end] += private[1:n_parts, begin:end].sum(axis=0)


def subtract(histogram, other, begin, end):
    histogram[begin:end] -= other[begin:end]
