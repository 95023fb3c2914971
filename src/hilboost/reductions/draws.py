"""Draws of rows of a table that is divided among workers: each finds its part of the same draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import row_draws
from hilboost.backends.random_bits import hash_numbers
from hilboost.backends.row_draws import count_picks
from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.dtypes import Ints
from hilboost.core.exchange import RowShare
from hilboost.core.target import Target
from hilboost.reductions.sums import count

_BITS = 10


def draw_rows(
    key: np.uint64,
    n: int,  # number of rows that are here
    # (m,) uint32 or None: positions of those that may be drawn; ``None`` means all n
    rows: NDArray[np.uint32] | None,
    size: int,  # in all workers together
    team: ThreadTeam,
    share: RowShare | None,
) -> NDArray[np.uint32]:  # (size,) uint32: positions of the drawn rows that are here, ascending
    """Draw ``size`` rows of all workers without replacement: those with the smallest hashes."""
    if share is None:
        return row_draws.draw_rows(key, n if rows is None else rows, size, team)
    numbers = share.numbers if rows is None else share.numbers[rows]
    bits = _bits(key, numbers)
    is_drawn = bits <= _bounds(bits, np.zeros(len(bits), np.int64), np.array([[size]]), share)[0, 0]
    drawn = np.flatnonzero(is_drawn).astype(dtypes.ROW)
    return drawn if rows is None else rows[drawn]


def draw_with_replacement(
    key: np.uint64,
    n: int,
    rows: NDArray[np.uint32] | None,
    size: int,
    team: ThreadTeam,
    share: RowShare | None,
) -> Ints:
    """Draw ``size`` times one of the rows of all workers; return how often each was drawn.

    Parameters as in :func:`draw_rows`; the result is (n,) int64, for the rows that are here.
    """
    pool = n if rows is None else len(rows)
    if share is None:
        counts = row_draws.draw_with_replacement(key, pool, size, team)
    else:
        counts = np.zeros(pool, dtype=np.int64)
        numbers = share.numbers if rows is None else share.numbers[rows]
        places, n_all = _places(numbers, share)
        for run in runs_of(places):
            count_picks(key, size, n_all, int(places[run.start]), counts[run])
    if rows is None:
        return counts
    every = np.zeros(n, dtype=np.int64)
    every[rows] = counts
    return every


def renumbered(target: Target, rows: NDArray[np.integer] | slice) -> Target:
    """Return the target of some of the rows (positions), as a table of their own."""
    own, share = target.rows(rows), target.share
    if share is None:
        return own
    numbers, n_all = _places(share.numbers[rows], share)
    return replace(own, share=RowShare(share.exchange, n_all, numbers.astype(dtypes.ROW)))


def runs_of(numbers: NDArray[np.integer]) -> list[slice]:
    """Return the ranges of consecutive numbers in ascending ones."""
    if not len(numbers):
        return []
    starts = np.flatnonzero(np.diff(numbers.astype(np.int64), prepend=-2) != 1)
    ends = np.append(starts[1:], len(numbers))
    return [slice(start, end) for start, end in zip(starts, ends, strict=True)]


def _places(numbers: NDArray[np.uint32], share: RowShare) -> tuple[Ints, int]:
    """Places of ascending numbers among the numbers of all workers, and how many there are."""
    runs = runs_of(numbers)
    first = np.array([int(numbers[run.start]) for run in runs], dtype=np.int64)
    length = np.array([run.stop - run.start for run in runs], dtype=np.int64)
    of_all = share.exchange.gathered(np.stack([first, length], axis=1).reshape(-1, 2))
    of_all = of_all[np.argsort(of_all[:, 0], kind="stable")]
    before = np.cumsum(of_all[:, 1]) - of_all[:, 1]
    place = before[np.searchsorted(of_all[:, 0], first)]
    within = np.arange(len(numbers)) - np.repeat(np.cumsum(length) - length, length)
    return np.repeat(place, length) + within, int(of_all[:, 1].sum())


def _bits(key: np.uint64, numbers: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Hashes of rows by their numbers, (n,)."""
    bits = np.empty(len(numbers), dtype=np.uint64)
    for run in runs_of(numbers):
        hash_numbers(key, int(numbers[run.start]), bits[run])
    return bits


def _bounds(
    bits: NDArray[np.uint64],  # (n,) uint64
    strata: Ints,  # (n,) int64
    ranks: Ints,  # (n_strata, k) int64: 1 is the smallest hash; 0 stands for no row
    share: RowShare,
) -> NDArray[np.uint64]:  # (n_strata, k) uint64: 0 for rank 0
    """Find the hashes of given ranks in every stratum, by counting first bits."""
    n_strata, size = len(ranks), 2**_BITS
    cells = strata * size + (bits >> np.uint64(64 - _BITS)).astype(np.int64)
    here = np.bincount(cells, minlength=n_strata * size).astype(np.int64)
    sums = share.exchange.sum(here).reshape(n_strata, size).cumsum(axis=1)
    bounds = np.zeros(ranks.shape, dtype=np.uint64)
    for stratum in range(n_strata):
        for k in np.flatnonzero(ranks[stratum]):
            rank = int(ranks[stratum, k])
            cell = int(np.searchsorted(sums[stratum], rank))
            before = int(sums[stratum, cell - 1]) if cell else 0
            candidates = share.exchange.gathered(bits[cells == stratum * size + cell])
            bounds[stratum, k] = np.partition(candidates, rank - before - 1)[rank - before - 1]
    return bounds


def assign_folds(
    key: np.uint64,
    strata: NDArray,
    n_folds: int,
    target: Target,
    rows: NDArray[np.integer] | None = None,
) -> Ints:
    """Assign each row that is here to a fold, (n,): folds of equal size, stratified.

    If these are not all rows of the table, ``rows`` (n,) are their positions in it.
    """
    share = target.share
    if share is None:
        return row_draws.assign_folds(key, strata, n_folds, rows)
    n = count(len(strata), share)
    return _assigned(key, strata, np.arange(n) % n_folds, n_folds, share)


def hold_out(key: np.uint64, strata: NDArray, size: int, target: Target) -> NDArray[np.bool_]:
    """Mark ``size`` rows of all workers to be held out, (n,), stratified."""
    share = target.share
    if share is None:
        return row_draws.hold_out(key, strata, size)
    n = count(len(strata), share)
    place = int(key) % n + size * np.arange(n + 1)
    return _assigned(key, strata, np.diff(place // n), 2, share) > 0


def _assigned(
    key: np.uint64, strata: NDArray, labels: Ints, n_labels: int, share: RowShare
) -> Ints:
    """Assign labels to the rows, ascending with the hashes in each stratum.

    ``labels`` (n,) belong to all rows in the order of the strata.
    """
    own, counts = np.unique(strata, return_counts=True)
    found = share.exchange.gathered(np.stack([own, counts], axis=1).astype(np.float64))
    values = np.unique(found[:, 0])
    sizes = np.zeros(len(values), dtype=np.int64)
    np.add.at(sizes, np.searchsorted(values, found[:, 0]), found[:, 1].astype(np.int64))
    ends = np.concatenate([[0], np.cumsum(sizes)])
    parts = [labels[ends[k] : ends[k + 1]] for k in range(len(values))]
    ranks = np.array([np.bincount(part, minlength=n_labels).cumsum() for part in parts])
    bits, index = _bits(key, share.numbers), np.searchsorted(values, strata)
    bounds = _bounds(bits, index, ranks, share)
    # A label without rows has the bound of the one before: no hash lies between them.
    assigned = np.zeros(len(bits), dtype=np.int64)
    for label in range(n_labels - 1):
        assigned += (bits > bounds[index, label]) | (ranks[index, label] == 0)
    return assigned
