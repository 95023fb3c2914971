"""Random draws of rows by the hashes of their numbers in the whole table.

A draw is a function of its key and of row numbers.  A worker that has some of the rows, in any
order, finds its part of the same draw: it needs its first row number, and sums over all workers
where this page says *count*.

Without replacement, the rows with the smallest hashes are drawn.  The largest of these hashes is
found by counting rows by the first bits of their hashes::

    first bits     0    1    2    3  …        8 rows are to be drawn
    count          3    2    6    2           5 rows are drawn whatever follows,
    sum            3    5   11   13           and the smallest 3 of the 6 hashes that begin with 2
"""

from typing import Any

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled
from hilboost.backends.random_bits import bits_of, hash_numbers
from hilboost.backends.threads import ThreadTeam

_BITS = 10
_SHIFT = 64 - _BITS
_BLOCK_ROWS = 2**17
_NO_ROWS = np.empty(0, dtype=np.uint32)
_FEW_ROWS = 2**11


@compiled
def hashes_of_rows(key, rows, hashes):
    """The hashes of rows, in their order.

    rows : (n,) uint32, or (0,) where position and row number are the same
    hashes : (n,) uint64, written
    """
    for i in range(hashes.shape[0]):
        hashes[i] = bits_of(key, rows[i] if rows.shape[0] > 0 else i)


@compiled
def count_first_bits(key, rows, begin, end, counts):
    """Count rows by the first ten bits of their hashes.

    rows : (m,) uint32, or (0,) where position and row number are the same; counts : (1024,) int64
    """
    for i in range(begin, end):
        row = rows[i] if rows.shape[0] > 0 else i
        counts[int64(bits_of(key, row) >> uint64(_SHIFT))] += 1


@compiled
def hashes_of_first_bits(key, rows, begin, end, first_bits, hashes):
    """The hashes that begin with these ten bits, in the order of the rows; returns how many.

    rows : as in :func:`count_first_bits`; hashes : (n,) uint64, written
    """
    n_found = 0
    for i in range(begin, end):
        row = rows[i] if rows.shape[0] > 0 else i
        bits = bits_of(key, row)
        if int64(bits >> uint64(_SHIFT)) == first_bits:
            hashes[n_found] = bits
            n_found += 1
    return n_found


@compiled
def rows_up_to(key, rows, begin, end, largest, drawn):
    """The rows whose hash is at most ``largest``, in their order; returns how many.

    rows : as in :func:`count_first_bits`; drawn : uint32, written, with room for one more
    """
    n_drawn = 0
    for i in range(begin, end):
        row = rows[i] if rows.shape[0] > 0 else i
        drawn[n_drawn] = row
        n_drawn += int64(bits_of(key, row) <= largest)
    return n_drawn


@compiled
def count_picks(key, size, n, first, counts):
    """Add how often ``size`` draws with replacement from ``n`` rows pick each row of a range.

    Draw ``j`` picks row ``floor(n u)``, where ``u`` are the 64 bits of ``j`` after the binary
    point.  ``n`` is less than 2**32.

    counts : (m,) int64, of the rows ``first`` to ``first + m - 1``
    """
    count = uint64(n)
    for j in range(size):
        bits = bits_of(key, j)
        low = ((bits & uint64(0xFFFFFFFF)) * count) >> uint64(32)
        i = int64(((bits >> uint64(32)) * count + low) >> uint64(32)) - first
        if 0 <= i < counts.shape[0]:
            counts[i] += 1


def draw_rows(
    key: np.uint64, pool: NDArray[np.uint32] | int, size: int, team: ThreadTeam
) -> NDArray[np.uint32]:  # (size,) uint32: in the order of the pool
    """Draw rows without replacement: those with the smallest hashes, exactly ``size``.

    ``pool``: (n,) uint32, or int: row numbers, all different; an int is the number of rows of the
    whole table. ``size``: 1 to n.

    Notes
    -----
    Cost O(n).
    """
    rows, n = (_NO_ROWS, pool) if isinstance(pool, int) else (pool, len(pool))
    if n <= _FEW_ROWS:
        return _drawn_at_once(key, rows, n, size)
    blocks = [(begin, min(begin + _BLOCK_ROWS, n)) for begin in range(0, n, _BLOCK_ROWS)]
    counts = np.zeros((len(blocks), 2**_BITS), dtype=np.int64)
    team.map(lambda b: count_first_bits(key, rows, *blocks[b], counts[b]), range(len(blocks)))
    sums = counts.sum(axis=0).cumsum()
    first_bits = int(np.searchsorted(sums, size))
    n_sure = counts[:, :first_bits].sum(axis=1)

    def candidates(b: int) -> NDArray[np.uint64]:
        hashes = np.empty(counts[b, first_bits], dtype=np.uint64)
        hashes_of_first_bits(key, rows, *blocks[b], first_bits, hashes)
        return hashes

    hashes = team.map(candidates, range(len(blocks)))
    last = size - int(n_sure.sum()) - 1
    largest = np.partition(np.concatenate(hashes), last)[last]

    def drawn(b: int) -> NDArray[np.uint32]:
        found = np.empty(n_sure[b] + len(hashes[b]) + 1, dtype=np.uint32)
        return found[: rows_up_to(key, rows, *blocks[b], largest, found)]

    return np.concatenate(team.map(drawn, range(len(blocks))))


def _drawn_at_once(
    key: np.uint64, rows: NDArray[np.uint32], n: int, size: int
) -> NDArray[np.uint32]:
    """Draw from a few rows: to sort them takes less time than to count first bits."""
    hashes = np.empty(n, dtype=np.uint64)
    hashes_of_rows(key, rows, hashes)
    is_drawn = hashes <= np.partition(hashes, size - 1)[size - 1]
    return rows[is_drawn] if len(rows) else np.flatnonzero(is_drawn).astype(np.uint32)


def draw_with_replacement(key: np.uint64, n: int, size: int, team: ThreadTeam) -> NDArray[np.int64]:
    """Draw ``size`` times one of ``n`` rows; returns how often each was drawn, (n,) int64.

    Every thread makes all draws and counts the rows in its range, as a worker would: O(size).
    """
    counts = np.zeros(n, dtype=np.int64)
    ends = [n * t // team.n_threads for t in range(team.n_threads + 1)]
    parts = [slice(*ends[t : t + 2]) for t in range(team.n_threads)]
    team.map(lambda part: count_picks(key, size, n, part.start, counts[part]), parts)
    return counts


def assign_folds(
    key: np.uint64, strata: NDArray, n_folds: int, rows: NDArray[np.integer] | None = None
) -> NDArray[np.int64]:
    """Assign each row to a fold, (m,): folds of equal size, stratified.

    A fold contains the hashes between two bounds in each stratum, which are found by counting.

    ``strata``: (m,) numbers. ``rows``: (m,) integers or None: row numbers in the whole table;
    ``None`` for all rows of the table.

    Notes
    -----
    Cost O(m log m).
    """
    return _assigned(key, strata, np.arange(len(strata)) % n_folds, rows)


def hold_out(key: np.uint64, strata: NDArray, size: int) -> NDArray[np.bool_]:
    """Mark ``size`` rows of the table to be held out, (n,), stratified.

    A stratum of m rows has ``m size / n`` of them, rounded up or down at random.  Cost O(n log n).
    """
    n = len(strata)
    place = int(key) % n + size * np.arange(n + 1)
    return _assigned(key, strata, np.diff(place // n).astype(np.uint8), None) > 0


def _assigned(
    key: np.uint64, strata: NDArray, labels: NDArray[Any], rows: NDArray[np.integer] | None
) -> NDArray[Any]:
    """Order rows by stratum and hash, and assign the labels, in ascending order in each stratum::

    stratum of the sorted rows   a a a a a b b
    labels                       0 1 2 0 1 2 0
    assigned                     0 0 1 1 2 0 2
    """
    hashes = np.empty(len(strata) if rows is None else int(rows.max()) + 1, dtype=np.uint64)
    hash_numbers(key, 0, hashes)
    order = np.lexsort((hashes if rows is None else hashes[rows], strata))
    assigned = np.empty(len(strata), dtype=labels.dtype)
    assigned[order] = labels[np.lexsort((labels, strata[order]))]
    return assigned
