"""Naive twins of :mod:`hilboost.engine.ops.cpu.category_splits`, in Python numbers."""

from tests.reference.histogram import bins_of


def level_goes_left(left_sets, number, value):
    code = int(value) if 0 <= value < 255 else 255
    return bool(int(left_sets[number][code // 64]) >> (code % 64) & 1)


def flag_level_rows(table, column, left_set, missing_left, rows, flags):
    bins, missing_bin = bins_of(table.words, column), table.n_bins - 1
    for i, row in enumerate(rows):
        b = int(bins[row])
        flags[i] = missing_left if b == missing_bin else level_goes_left([left_set], 0, b)
    return int(flags.sum())
