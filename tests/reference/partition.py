"""Naive twins of :mod:`hilboost.engine.ops.cpu.partition`."""

from tests.reference.histogram import bins_of


def flag_rows(table, column, split_bin, missing_left, rows, begin, end, flags):
    bins = bins_of(table.words, column)
    for i in range(begin, end):
        b = bins[rows[i]]
        flags[i] = missing_left if b == table.n_bins - 1 else b <= split_bin
    return int(flags[begin:end].sum())


def move_rows(buffers, keeps, begin, end, kept, others, backwards):
    is_kept = buffers.flags[begin:end] == keeps
    for moved in (buffers.rows, buffers.ordered):
        if len(moved):
            here = moved[begin:end].copy()
            for place, chosen in ((kept, here[is_kept]), (others, here[~is_kept])):
                place -= len(chosen) if backwards else 0
                moved[place : place + len(chosen)] = chosen


def copy_rows(buffers, begin, end, target):
    for moved in (buffers.rows, buffers.ordered):
        if len(moved):
            moved[target : target + end - begin] = moved[begin:end]
