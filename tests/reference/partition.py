"""Naive twins of :mod:`hilboost.backends.partition`."""


def flag_rows(bins, n, column, split_bin, missing_bin, missing_left, rows, begin, end, flags):
    table = bins.reshape(-1, n, 8)
    for i in range(begin, end):
        b = table[column // 8, rows[i], column % 8]
        flags[i] = missing_left if b == missing_bin else b <= split_bin
    return int(flags[begin:end].sum())


def move_rows(flags, rows, ordered, target_rows, target_ordered, begin, end, left, right):
    goes_left = [i for i in range(begin, end) if flags[i]]
    goes_right = [i for i in range(begin, end) if not flags[i]]
    for start, chosen in ((left, goes_left), (right, goes_right)):
        target_rows[start : start + len(chosen)] = rows[chosen]
        if len(ordered):
            target_ordered[start : start + len(chosen)] = ordered[chosen]
