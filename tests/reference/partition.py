"""Naive twins of :mod:`hilboost.engine.ops.cpu.partition`."""

from tests.reference.histogram import bins_of


def flag_rows(table, column, split_bin, missing_left, rows, begin, end, flags):
    bins = bins_of(table.words, column)
    for i in range(begin, end):
        b = bins[rows[i]]
        flags[i] = missing_left if b == table.n_bins - 1 else b <= split_bin
    return int(flags[begin:end].sum())


def move_rows(buffers, side, begin, end, left, right):
    goes_left = buffers.flags[begin:end] == 1
    for moved in (buffers.rows, buffers.ordered):
        if moved.size:
            here = moved[side, begin:end]
            for place, chosen in ((left, here[goes_left]), (right, here[~goes_left])):
                moved[1 - side, place : place + len(chosen)] = chosen
