"""Splits of a node of a tree with vector leaves, from sums over its rows instead of the rows.

The last three columns of sums (..., k + 3) are weights, squared lengths and numbers of rows.
The search for the best cut or subset of levels is the compiled one; the occupied bins of a column,
with their sums, take the place of rows::

    rows in bin 0, 0, 2, 2, 2   ->   rows of a table of one column: bin 0, bin 2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import mix
from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.vector_candidates import ValueRanges
from hilboost.engine.ops.cpu.vector_cuts import (
    ALMOST,
    CutScratch,
    NodeRows,
    VectorGradients,
    scan_cuts,
)
from hilboost.engine.ops.cpu.vector_levels import (
    LevelScratch,
    draw_subset,
    empty_levels,
    scan_subsets,
    settle_subset,
)

OF_WEIGHT, OF_SQUARES, OF_ROWS = -3, -2, -1  # columns of sums that follow the gradients
_APART = np.uint64(0xA0761D6478BD642F)  # between draws of columns and of levels


@dataclass(frozen=True)
class NodeSums:
    """A node, as far as the search for its split needs to know it."""

    whole: Floats  # (k + 3,) float64: sums over all of its rows
    least: float  # least weight of a child
    tie: float  # scores that differ by no more are equal

    def scores(self, left: Floats) -> Floats:
        """Scores of splits, (...), from the sums over the left child, (..., k + 3)."""
        mass, other = left[..., OF_WEIGHT], self.whole[OF_WEIGHT] - left[..., OF_WEIGHT]
        allowed = (mass >= self.least) & (other >= self.least) & (mass > 0) & (other > 0)
        here = left[..., :OF_WEIGHT]
        there = self.whole[:OF_WEIGHT] - here
        squares = (here**2).sum(axis=-1), (there**2).sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(allowed, squares[0] / mass + squares[1] / other, NO_GAIN)

    def in_place_of_rows(self, sums: Floats) -> tuple[BinTable, NodeRows, VectorGradients]:
        """A table of one column whose rows are the occupied bins of ``sums`` (n_bins, k + 3)."""
        bins = np.flatnonzero(sums[:, OF_ROWS] > 0)
        words, n_bins = bins.astype(dtypes.WORD)[None], len(sums)
        table = BinTable(words, words.reshape(-1).view(np.uint8), np.array([n_bins - 1]), n_bins)
        rows = np.arange(len(bins), dtype=dtypes.ROW)
        totals = np.ascontiguousarray(self.whole[:OF_WEIGHT])
        here = NodeRows(rows, 0, len(bins), totals, float(self.whole[OF_WEIGHT]))
        values = np.ascontiguousarray(sums[bins, :OF_WEIGHT])
        weights = np.ascontiguousarray(sums[bins, OF_WEIGHT])
        return table, here, VectorGradients(values, weights, weights)


@dataclass(frozen=True)
class Split:
    """A split of a node."""

    column: int
    bin: int
    missing_left: bool
    value: float  # where it cuts; 0 for levels
    score: float
    left: Floats  # (k + 3,) float64: sums over the left child
    # (SET_WORDS,) uint64 or None: a bit for each level that goes left; ``None`` for a cut of
    # numbers
    levels: NDArray[np.uint64] | None = None

    def goes_left(self, n_bins: int) -> NDArray[np.bool_]:
        """Which bins go left, (n_bins,); the last one has the missing values."""
        if self.levels is None:
            flags = np.arange(n_bins) <= self.bin
        else:
            flags = _unpacked(self.levels, n_bins)
        flags[-1] = self.missing_left
        return flags


def best_cut(column: int, sums: Floats, node: NodeSums, ranges: ValueRanges) -> Split | None:
    """Find the best cut of a column of numbers, from its sums by bin, (n_bins, k + 3)."""
    table, here, given = node.in_place_of_rows(sums)
    scratch = _scratch(given.values.shape, len(sums))
    found = scan_cuts(table, 0, here, given, node.least, node.tie, scratch)
    score, cut, missing_left = float(found[0]), int(found[1]), bool(found[2])
    if not score > NO_GAIN:
        return None
    left = sums[: cut + 1].sum(axis=0)
    if missing_left:
        left = left + sums[-1]
    elif not sums[-1, OF_ROWS] > 0:  # missing values follow the heavier part where none was seen
        missing_left = bool(2 * left[OF_WEIGHT] >= ALMOST * node.whole[OF_WEIGHT])
    above = np.flatnonzero(sums[cut + 1 : -1, OF_ROWS] > 0)
    following = cut + 1 + int(above[0]) if len(above) else None
    value = _middle(ranges.low[column], ranges.high[column], cut, following)
    return Split(column, cut, missing_left, value, score, left)


def _middle(low: Floats, high: Floats, cut: int, following: int | None) -> float:
    """The value halfway between two bins, the lower one where there is none between them."""
    value = float(high[cut])
    if following is not None:
        middle = value + (0.5 * float(low[following]) - 0.5 * value)
        if value <= middle < low[following]:
            return middle
    return value


def best_levels(column: int, sums: Floats, node: NodeSums) -> Split | None:
    """Find the best subset of the levels of a column, from their sums, (n_bins, k + 3)."""
    table, here, given = node.in_place_of_rows(sums)
    m, k = given.values.shape
    levels = LevelScratch(*(array[0] for array in empty_levels(1, max(m, 2), k)))
    chosen, scratch = np.zeros(SET_WORDS, dtype=np.uint64), _scratch((m, k), len(sums))
    score, missing_left = scan_subsets(
        table, 0, here, given, node.least, node.tie, scratch, levels, chosen
    )
    if not score > NO_GAIN:
        return None
    return _of_levels(column, sums, node, chosen, missing_left == 1)


def drawn_levels(drawn: Drawn, sums: Floats, node: NodeSums) -> Split:
    """Draw a subset of the levels of a column, from their sums, (n_bins, k + 3)."""
    table, here, _ = node.in_place_of_rows(sums)
    present, chosen = np.zeros((2, SET_WORDS), dtype=np.uint64)
    missing_left = draw_subset(table, 0, here, drawn.seed, present, chosen)
    return _of_levels(drawn.column, sums, node, chosen, missing_left == 1)


def _of_levels(
    column: int, sums: Floats, node: NodeSums, chosen: NDArray[np.uint64], missing_left: bool
) -> Split:
    """Score a subset of the levels, and send those without rows to the heavier side."""
    flags = _unpacked(chosen, len(sums))
    flags[-1] = missing_left
    left = sums[flags].sum(axis=0)
    table, here, given = node.in_place_of_rows(sums)
    present = np.zeros(SET_WORDS, dtype=np.uint64)
    side = settle_subset(table, 0, here, given.weights, int(missing_left), present, chosen)
    return Split(column, 0, side == 1, 0.0, float(node.scores(left)), left, chosen)


def _unpacked(levels: NDArray[np.uint64], n_bins: int) -> NDArray[np.bool_]:
    return np.unpackbits(levels.view(np.uint8), bitorder="little")[:n_bins].astype(bool)


def _scratch(shape: tuple[int, ...], n_bins: int) -> CutScratch:
    m, k = shape
    order = np.empty(m, dtype=dtypes.ROW)
    return CutScratch(np.empty(n_bins + 1, dtype=np.int64), order, np.empty(k))


def first_best(splits: list[Split], tie: float) -> Split | None:
    """Return the best split, the first of nearly equal ones; ``None`` if none is allowed."""
    best = None
    for split in splits:
        if split.score > (NO_GAIN if best is None else best.score + tie):
            best = split
    return best


@dataclass(frozen=True)
class Drawn:
    """A column, a number in [0, 1) that places a random cut, and a seed for a subset of levels."""

    column: int
    number: float
    seed: np.uint64


def draw_columns(seed: int, d: int, n_drawn: int, is_usable: Callable[[int], bool]) -> list[Drawn]:
    """Draw columns of a node, as ``draw_candidates`` in the compiled growth does."""
    columns, state, found = list(range(d)), np.uint64(seed), list[Drawn]()
    left = d
    while left > 0 and len(found) < n_drawn:
        state, number = _next_number(state)
        first, chosen = len(found), len(found) + int(number * left)
        left -= 1
        column = columns[chosen]
        state, number = _next_number(state)
        if is_usable(column):
            columns[chosen], columns[first] = columns[first], column
            found.append(Drawn(column, number, state ^ _APART))
        else:
            columns[chosen], columns[first + left] = columns[first + left], column
    return found


def _next_number(state: np.uint64) -> tuple[np.uint64, float]:
    state = np.uint64(mix(state))
    return state, int(state >> np.uint64(11)) * 2.0**-53
