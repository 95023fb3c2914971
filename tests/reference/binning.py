"""Naive twins of :mod:`hilboost.engine.ops.cpu.binning`."""

import numpy as np


def pack_bins(values, edges, n_steps, missing_bin, begin, words, column, position):
    end = begin + len(values)
    words[:, begin:end] = 0
    for k in range(values.shape[1]):
        column = values[:, k].astype(np.float64)
        used = edges[k][: 2 ** int(n_steps[k]) - 1]
        bins = np.array([int(np.sum(used < v)) for v in column], dtype=np.uint64)
        bins[np.isnan(column)] = missing_bin
        words[k // 8, begin:end] |= bins << np.uint64(8 * (k % 8))
