"""Naive twins of :mod:`hilboost.backends.trees.partition`."""

from tests.reference.histogram import bins_of


def flag_rows(table, column, split_bin, missing_left, rows, begin, end, flags):
    bins = bins_of(table.words, column)
    for i in range(begin, end):
        b = bins[rows[i]]
        flags[i] = missing_left if b == table.n_bins - 1 else b <= split_bin
    return int(flags[begin:end].sum())


def move_rows(buffers, source, begin, end, left, right):
    goes_left = [i for i in range(begin, end) if buffers.flags[i]]
    goes_right = [i for i in range(begin, end) if not buffers.flags[i]]
    for start, chosen in ((left, goes_left), (right, goes_right)):
        for moved in (buffers.rows, buffers.ordered):
            if moved.shape[1]:
                moved[1 - source, start : start + len(chosen)] = moved[source, chosen]
