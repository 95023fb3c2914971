"""Naive twins of :mod:`hilboost.engine.ops.cpu.partition`."""

from tests.reference.histogram import bins_of


def flag_rows(table, column, split_bin, missing_left, rows, flags):
    bins = bins_of(table.words, column)
    for i, row in enumerate(rows):
        b = bins[row]
        flags[i] = missing_left if b == table.n_bins - 1 else b <= split_bin
    return int(flags.sum())


def move_rows(buffers, side, left_side, begin, end, left, right):
    goes_left = buffers.flags[begin:end] == 1
    for moved in (buffers.rows, buffers.ordered):
        if moved.size:
            here = moved[side, begin:end].copy()
            of_left, of_right = here[goes_left], here[~goes_left]
            moved[left_side, left : left + len(of_left)] = of_left
            moved[1 - side, right : right + len(of_right)] = of_right
