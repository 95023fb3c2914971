"""Naive twins of :mod:`hilboost.backends.row_hashes`, in Python's integers."""

import numpy as np

_ALL = 2**64 - 1


def _mixed(state, word):
    state = (state ^ word) * 0x9E3779B97F4A7C15 & _ALL
    state = (state ^ state >> 29) * 0xBF58476D1CE4E5B9 & _ALL
    return state ^ state >> 32


def _word(value):
    if value == 0:
        return 0
    if np.isnan(value):
        return 0x7FF8000000000000
    kind = np.uint64 if value.dtype == np.float64 else np.uint32
    return int(value.view(kind))


def hash_rows(values, words, first, last, hashes):
    for i, row in enumerate(values):
        state = int(hashes[i])
        for value in row[first:last]:
            state = _mixed(state, _word(value))
        hashes[i] = state


def hash_sparse_rows(values, words, columns, starts, hashes):
    for i in range(len(hashes)):
        state = int(hashes[i])
        for t in range(starts[i], starts[i + 1]):
            if _word(values[t]):
                state = _mixed(_mixed(state, int(columns[t]) + 1), _word(values[t]))
        hashes[i] = state
