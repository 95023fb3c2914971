"""Divisions of rows into those that a model learns from and those that judge it.

Without a record of their dependence, rows (or the groups of a ranking) are divided at random.
Groups are held out as a whole.  With times, the latest rows are held out, in blocks, each of which
judges a member that learned from the rows before it.  A last member, whose number of stages these
blocks decide, learns from all rows, because the latest ones tell most about the future::

    time       ───────────────────────────────▶
    member 0   learned learned held
    member 1   learned learned learned held
    member 2   learned learned learned learned
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import hash_numbers
from hilboost.core.dependence import HELD, LEARNED, Dependence
from hilboost.core.dtypes import Ints
from hilboost.core.errors import InvalidParameter
from hilboost.core.target import Target
from hilboost.reductions import draws
from hilboost.reductions.rows import whole_dependence
from hilboost.reductions.sums import count_units

_MOST_HELD = 0.5  # of the rows, by all blocks of time together


class Split(NamedTuple):
    """Places of rows, ascending; a row may be in neither part."""

    learned: NDArray[np.intp]
    held: NDArray[np.intp]


def splits_of_members(
    key: np.uint64, strata: NDArray[Any], n_folds: int, fraction: float, target: Target
) -> tuple[Split, ...]:
    """Splits of the members of an ensemble; none if a single model holds out a part of the rows.

    If members do not learn from all rows that they do not hold out, a last one learns from all.
    """
    dependence, n = target.dependence, len(target.y)
    by_time = dependence is not None and dependence.kind == "time"
    n_folds = min(n_folds, _n_units(target))
    if n_folds == 1 and not (by_time or has_roles(target)):
        return ()
    found = splits(key, strata, n_folds, fraction, target)
    if len(found) == 1 and not by_time:
        return ()
    if not by_time and all(len(learned) + len(held) == n for learned, held in found):
        return tuple(found)
    return (*found, Split(np.arange(n), np.empty(0, dtype=np.intp)))


def last_is_model(splits: Sequence[Split], target: Target) -> bool:
    """Whether the last member is the model, for which the others chose the number of stages."""
    if target.dependence is None or not splits:
        return False
    return target.dependence.kind == "time" or (has_roles(target) and not len(splits[-1].held))


def has_roles(target: Target) -> bool:
    """Whether a splitter has divided the rows."""
    return target.dependence is not None and target.dependence.roles is not None


def _n_units(target: Target) -> int:
    dependence = whole_dependence(target)
    if dependence is None or dependence.groups is None:
        return count_units(target)
    return len(np.unique(dependence.groups))


def splits(
    key: np.uint64,
    strata: NDArray[Any],  # (n_units,): their proportions are preserved in random parts
    n_folds: int,
    fraction: float,  # of the rows, that a single split holds out
    target: Target,
) -> list[Split]:
    """Hold out a part of the rows, or each of several folds in turn."""
    dependence = whole_dependence(target)
    if dependence is not None and dependence.roles is not None:
        return [Split(*_places(of_split)) for of_split in dependence.roles.T]
    if dependence is not None and dependence.times is not None:
        times = _times_of_units(target, dependence)
        return _here(_forward(times, n_folds, fraction, dependence.gap), target)
    if dependence is None and n_folds == 1:
        size = _size(fraction, count_units(target))
        folds = target.of_units(draws.hold_out(key, strata, size, target).astype(np.int64))
        held = 1
    elif dependence is None:
        folds, held = target.of_units(draws.assign_folds(key, strata, n_folds, target)), 0
    else:
        folds, held = _folds_of_groups(key, dependence, n_folds, fraction)
        folds = folds[_numbers_here(target)]
    several = range(n_folds) if n_folds > 1 else (held,)
    return [Split(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in several]


def in_turn(key: np.uint64, n_parts: int, dependence: Dependence) -> list[Split]:
    """Hold out whole groups in turn, or blocks of the later half, judged by what is before them.

    There are fewer parts if there are fewer groups or times.
    """
    if dependence.groups is None:
        assert dependence.times is not None
        fraction = _MOST_HELD / n_parts
        return _forward(dependence.times, n_parts, fraction, dependence.gap)
    folds = _balanced(key, dependence.groups, n_parts)
    return [Split(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in np.unique(folds)]


def once(key: np.uint64, fraction: float, dependence: Dependence) -> Split:
    """Hold out whole groups with about a fraction of the rows, or the latest rows."""
    if dependence.groups is None:
        assert dependence.times is not None
        return _forward(dependence.times, 1, fraction, dependence.gap)[0]
    folds, held = _folds_of_groups(key, dependence, 1, fraction)
    return Split(np.flatnonzero(folds != held), np.flatnonzero(folds == held))


def parts(
    key: np.uint64, n_parts: int, target: Target, rows: NDArray[np.integer] | None = None
) -> Ints:
    """Divide rows into parts for cross-fitting, (n,): whole groups, blocks of time, or at random.

    If these are not all rows of the table, ``rows`` (n,) are their positions in it.
    """
    dependence = whole_dependence(target)
    if dependence is not None and dependence.groups is not None:
        return _balanced(key, dependence.groups, n_parts)[_numbers_here(target)]
    if dependence is not None and dependence.times is not None:
        number, counts = np.unique(dependence.times, return_inverse=True, return_counts=True)[1:]
        before = np.cumsum(counts) - counts
        part_of = np.asarray(before * n_parts // max(len(number), 1), dtype=np.int64)[number]
        return part_of[_numbers_here(target)]
    return draws.assign_folds(key, np.zeros(len(target.y)), n_parts, target, rows)


def _size(fraction: float, n: int) -> int:
    return min(max(1, ceil(fraction * n)), n - 1)


def _places(roles: NDArray[np.int8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.flatnonzero(roles == LEARNED), np.flatnonzero(roles == HELD)


def _numbers_here(target: Target) -> Any:
    """Find the places of the rows that are here in the table, from all workers."""
    return draws.renumbered(target, slice(None)).numbers if target.is_divided else slice(None)


def _here(found: list[Split], target: Target) -> list[Split]:
    """Restrict splits of the rows of all workers to those that are here."""
    if not target.is_divided:
        return found
    numbers = _numbers_here(target)
    return [Split(*(np.flatnonzero(np.isin(numbers, part)) for part in split)) for split in found]


def _times_of_units(target: Target, dependence: Dependence) -> NDArray[Any]:
    """Time of each row; in a ranking, that of the latest row of its group."""
    times = dependence.times
    assert times is not None
    if target.groups is None:
        return times
    return target.of_units(np.maximum.reduceat(times, target.starts[:-1]))


def _forward(times: NDArray[Any], n_blocks: int, fraction: float, gap: float) -> list[Split]:
    """Hold out the latest rows, in blocks of a fraction of all; rows of equal time stay together.

    Blocks are as far ahead of what a member learned from as new rows of the same duration will be.
    """
    n_blocks = max(1, min(n_blocks, int(_MOST_HELD / fraction)))
    values, counts = np.unique(times, return_counts=True)
    n_before, n = np.cumsum(counts) - counts, len(times)
    places = n - fraction * n * np.arange(n_blocks, 0, -1)
    first = np.unique(np.clip(np.searchsorted(n_before, places), 1, len(values) - 1))
    found = []
    for start, end in zip(first, [*first[1:], len(values)], strict=True):
        is_held = (times >= values[start]) & (times <= values[end - 1])
        learned = np.flatnonzero(times < values[start] - gap)
        if not len(learned):
            raise InvalidParameter(
                "validation_gap leaves out all rows before the held-out ones; set a smaller one."
            )
        found.append(Split(learned, np.flatnonzero(is_held)))
    return found


def _folds_of_groups(
    key: np.uint64, dependence: Dependence, n_folds: int, fraction: float
) -> tuple[Ints, int]:
    """Folds of whole groups (n,), and the one whose size is nearest to the fraction of the rows."""
    assert dependence.groups is not None
    if n_folds > 1:
        return _balanced(key, dependence.groups, n_folds), 0
    folds = _balanced(key, dependence.groups, max(2, round(1 / fraction)))
    sizes = np.bincount(folds)
    return folds, int(np.abs(sizes - fraction * len(folds)).argmin())


def _balanced(key: np.uint64, groups: NDArray[np.int64], n_folds: int) -> Ints:
    """Assign groups to folds of similar numbers of rows, the largest first, ties at random."""
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    hashes = np.empty(len(sizes), dtype=np.uint64)
    hash_numbers(key, 0, hashes)
    loads = [(0, k) for k in range(n_folds)]
    heapify(loads)
    fold_of = np.empty(len(sizes), dtype=np.int64)
    for group in np.lexsort((hashes, -sizes)).tolist():
        load, fold = loads[0]
        fold_of[group] = fold
        heapreplace(loads, (load + int(sizes[group]), fold))
    return fold_of[number]
