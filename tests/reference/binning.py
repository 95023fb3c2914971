"""Naive twins of :mod:`hilboost.engine.ops.cpu.binning`."""

import numpy as np


def pack_bins(values, edges, begin, words, column, position):
    end = begin + len(values)
    words[:, begin:end] = 0
    for k in range(values.shape[1]):
        column = values[:, k].astype(np.float64)
        used = edges.thresholds[k][: 2 ** int(edges.n_steps[k]) - 1]
        bins = np.array([int(np.sum(used < v)) for v in column], dtype=np.uint64)
        bins[np.isnan(column)] = edges.missing_bin
        words[k // 8, begin:end] |= bins << np.uint64(8 * (k % 8))
