"""Naive twins of :mod:`hilboost.backends.row_draws`: all hashes, in Python integers."""

from tests.reference.random_bits import bits_of


def _chosen(rows, begin, end):
    return [int(rows[i]) if len(rows) else i for i in range(begin, end)]


def hashes_of_rows(key, rows, hashes):
    hashes[:] = [bits_of(key, row) for row in _chosen(rows, 0, len(hashes))]


def count_first_bits(key, rows, begin, end, counts):
    for row in _chosen(rows, begin, end):
        counts[bits_of(key, row) >> 54] += 1


def hashes_of_first_bits(key, rows, begin, end, first_bits, hashes):
    all_bits = [bits_of(key, row) for row in _chosen(rows, begin, end)]
    found = [bits for bits in all_bits if bits >> 54 == first_bits]
    hashes[: len(found)] = found
    return len(found)


def rows_up_to(key, rows, begin, end, largest, drawn):
    found = [row for row in _chosen(rows, begin, end) if bits_of(key, row) <= largest]
    drawn[: len(found)] = found
    return len(found)


def count_picks(key, size, n, first, counts):
    for j in range(size):
        row = bits_of(key, j) * n >> 64
        if first <= row < first + len(counts):
            counts[row - first] += 1


def draw_rows(key, pool, size):
    """The rows with the smallest hashes, in the order of the pool."""
    smallest = sorted((bits_of(key, row), row) for row in pool)[:size]
    drawn = {row for _, row in smallest}
    return [row for row in pool if row in drawn]


def assign_folds(key, strata, n_folds, rows):
    """In every stratum in turn, deal out the folds, then sort both these and the hashes."""
    folds, dealt = {}, 0
    for stratum in sorted(set(strata)):
        here = [i for i in range(len(strata)) if strata[i] == stratum]
        here.sort(key=lambda i: bits_of(key, rows[i]))
        labels = sorted(k % n_folds for k in range(dealt, dealt + len(here)))
        folds.update(zip(here, labels, strict=True))
        dealt += len(here)
    return [folds[i] for i in range(len(strata))]
