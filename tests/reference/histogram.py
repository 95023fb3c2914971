"""Naive twins of :mod:`hilboost.engine.ops.cpu.histogram`."""

import numpy as np
from tests.reference.fixed_point import in_64_bits


def bins_of(words, column):
    """Bins (n,) of one column of a packed table."""
    return ((words[column // 8] >> np.uint64(8 * (column % 8))) & np.uint64(255)).astype(np.int64)


def table_of(words, n_columns):
    """Bins (n, n_columns) of a packed table."""
    return np.column_stack([bins_of(words, k) for k in range(n_columns)])


def accumulate(table, ordered, compact, part, is_first, histogram):
    rows, gradients = ordered
    for k in range(8 * part.first_word, min(8 * part.last_word, len(table.n_values))):
        bins = bins_of(table.words, k)
        for b in (*range(table.n_values[k]), table.n_bins - 1):
            here = [i for i in range(part.begin, part.end) if bins[rows[i]] == b]
            before = 0 if is_first else histogram[256 * k + b]
            histogram[256 * k + b] = before + sum(in_64_bits(gradients[i], compact) for i in here)


def accumulate_channels(table, rows, packed, part, n_channels, is_first, histogram):
    packed = np.hstack([packed, np.ones((len(packed), n_channels - packed.shape[1]), dtype=int)])
    n_bins = table.n_bins
    for k in range(8 * part.first_word, min(8 * part.last_word, len(table.n_values))):
        bins = bins_of(table.words, k)
        for b in range(n_bins):
            here = [row for row in rows[part.begin : part.end] if bins[row] == b]
            for c in range(n_channels):
                cell = (k * n_bins + b) * n_channels + c
                before = 0 if is_first else histogram[cell]
                histogram[cell] = before + sum(int(packed[i, c]) for i in here)
