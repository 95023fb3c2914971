"""Naive twins of :mod:`hilboost.backends.row_hashes`, in Python's integers."""

import numpy as np

_ALL = 2**64 - 1


def _hash_of_cell(value, column):
    if value == 0:
        return 0
    bits = 0x7FF8000000000000 if np.isnan(value) else int(np.float64(value).view(np.uint64))
    mixed = (bits >> 32 ^ bits) * 0x9E3779B97F4A7C15 & _ALL
    mixed = mixed + (int(column) + 1) * 0xD1B54A32D192ED03 & _ALL
    return (mixed ^ mixed >> 29) * 0xD1B54A32D192ED03 & _ALL


def add_hashes(values, columns, hashes):
    for i, row in enumerate(values):
        of_cells = [_hash_of_cell(*cell) for cell in zip(row, columns, strict=True)]
        hashes[i] = int(hashes[i]) + sum(of_cells) & _ALL


def add_sparse_hashes(values, columns, starts, hashes):
    for i, (begin, end) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        add_hashes(values[None, begin:end], columns[begin:end], hashes[i : i + 1])
