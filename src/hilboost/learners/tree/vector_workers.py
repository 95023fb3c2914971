"""Growth of one tree with vector leaves, whose rows are divided among workers.

The tree is that of :func:`~hilboost.backends.trees.vector_grow.grow_vector`.  For each split, the
workers add up sums over their rows, from which each of them takes the same decisions::

    random cuts    least and greatest bins of the drawn columns, then the sums left of each cut
    best cuts      the sums in each bin of the columns

Sums are rounded, so that trees may differ where splits are equal up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hilboost.backends.random_bits import mix
from hilboost.backends.trees.column_splits import NO_GAIN
from hilboost.backends.trees.nodes import (
    BEGIN,
    BIN,
    BUFFER,
    COLUMN,
    DEPTH,
    END,
    LEFT,
    MISSING_LEFT,
    N_LEFT,
    N_LEFT_HERE,
    N_ROWS,
    NODE,
    RIGHT,
    choose_node,
    open_children,
)
from hilboost.backends.trees.vector_state import SQUARES, VARIANCE, WEIGHT, VectorGrowth
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import Exchange

_BLOCK_CELLS = 2**22  # numbers of the gradients that are gathered at once
_MESSAGE_CELLS = 2**22  # numbers that are sent at once
_OF_WEIGHT, _OF_SQUARES, _OF_ROWS = -3, -2, -1  # columns of sums after those of the gradients


@dataclass(frozen=True)
class _Cut:
    """A split of a node, its score, and the sums over the left child, (k + 3,)."""

    column: int
    bin: int
    missing_left: bool
    value: float
    score: float
    left: Floats


@dataclass(frozen=True)
class _Drawn:
    """A column, and a number in [0, 1) that places a random cut."""

    column: int
    number: float


def grow_among_workers(growth: VectorGrowth, exchange: Exchange) -> None:
    """Grow one tree; each worker calls with its rows, and finds the same nodes.

    Parameters
    ----------
    growth : VectorGrowth
        With the limits of the whole table, and without categories.
    exchange : Exchange
    """
    _SharedGrowth(growth, exchange).run()


class _SharedGrowth:
    def __init__(self, growth: VectorGrowth, exchange: Exchange) -> None:
        self._growth, self._exchange = growth, exchange
        self._nodes, self._limits = growth.nodes, growth.limits
        weights, n = growth.gradients.weights, len(growth.gradients.values)
        weights = weights if len(weights) else np.ones(n)
        self._beside = np.column_stack([weights, growth.gradients.squares, np.ones(n)])
        self._missing = growth.table.n_bins - 1
        words = growth.table.words
        self._bins = growth.table.flat.reshape(len(words), words.shape[1], 8)

    def run(self) -> None:
        """Split the node of largest total variance until none is left."""
        nodes, limits = self._nodes, self._limits
        self._note(0, self._root_sums())
        while True:
            node = int(choose_node(nodes, limits.max_leaves, limits.in_turn))
            if node < 0:
                return
            nodes.control[NODE] = node
            cut = self._best_random_cut(node) if limits.random_cuts else self._best_cut(node)
            if cut is None:
                nodes.priority[node] = NO_GAIN
            else:
                self._split(node, cut)

    # Sums over rows

    def _rows(self, node: int) -> NDArray[np.uint32]:
        begin, end, buffer = (int(self._nodes.fields[node, f]) for f in (BEGIN, END, BUFFER))
        return self._growth.buffers.rows[buffer, begin:end]

    def _blocks(self, rows: NDArray[np.uint32]) -> Iterator[NDArray[np.uint32]]:
        size = max(256, _BLOCK_CELLS // max(1, self._n_outputs))
        return (rows[begin : begin + size] for begin in range(0, len(rows), size))

    @property
    def _n_outputs(self) -> int:
        return self._growth.gradients.values.shape[1]

    def _root_sums(self) -> Floats:
        sums = np.zeros(self._n_outputs + 3)
        for rows in self._blocks(self._rows(0)):
            sums += self._values(rows).sum(axis=0)
        return self._exchange.added(sums)

    def _values(self, rows: NDArray[np.uint32]) -> Floats:
        """Gradients, weights, squares and ones, (m, k + 3)."""
        return np.hstack([self._growth.gradients.values[rows], self._beside[rows]])

    def _note(self, node: int, sums: Floats) -> None:
        """Set the sums of a node, and its priority."""
        growth, limits = self._growth, self._limits
        totals, weight, squares = sums[:_OF_WEIGHT], sums[_OF_WEIGHT], sums[_OF_SQUARES]
        variance = squares - float(totals @ totals) / weight if weight > 0 else 0.0
        growth.sums.totals[node] = totals
        masses = growth.sums.masses[node]
        masses[WEIGHT], masses[SQUARES], masses[VARIANCE] = weight, squares, variance
        self._nodes.fields[node, N_ROWS] = sums[_OF_ROWS]
        done = (
            sums[_OF_ROWS] < 2
            or variance <= limits.pure
            or self._nodes.fields[node, DEPTH] >= limits.max_depth
            or weight < 2 * limits.min_weight
        )
        self._nodes.priority[node] = NO_GAIN if done else variance

    def _sums_of(self, node: int) -> Floats:
        sums = self._growth.sums
        of_node = sums.masses[node, WEIGHT], sums.masses[node, SQUARES]
        return np.array([*sums.totals[node], *of_node, self._nodes.fields[node, N_ROWS]])

    # Choice of a split

    def _tie(self, node: int) -> float:
        masses = self._growth.sums.masses
        return float(
            self._limits.tie * masses[0, VARIANCE] / masses[0, WEIGHT] * masses[node, WEIGHT]
        )

    def _scores(self, left: Floats, node: int) -> Floats:
        """Scores of splits from the sums over the left child, (..., k + 3)."""
        whole, least = self._sums_of(node), self._limits.min_weight
        mass, other = left[..., _OF_WEIGHT], whole[_OF_WEIGHT] - left[..., _OF_WEIGHT]
        allowed = (mass >= least) & (other >= least) & (mass > 0) & (other > 0)
        here = left[..., :_OF_WEIGHT]
        there = whole[:_OF_WEIGHT] - here
        squares = (here**2).sum(axis=-1), (there**2).sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(allowed, squares[0] / mass + squares[1] / other, NO_GAIN)

    def _best_random_cut(self, node: int) -> _Cut | None:
        """The best of the drawn cuts; columns without two values in the node do not count."""
        seed, n_drawn = int(self._nodes.seeds[node]), self._limits.n_columns
        d = len(self._growth.table.n_values)
        drawn = _drawn(seed, d, n_drawn, lambda column: True)
        ranges = self._ranges(node, [one.column for one in drawn])
        if not all(_has_values(ranges[one.column]) for one in drawn):
            ranges = self._ranges(node, list(range(d)))
            drawn = _drawn(seed, d, n_drawn, lambda column: _has_values(ranges[column]))
        if not drawn:
            return None
        cuts = [self._placed(one, ranges[one.column]) for one in drawn]
        left = self._left_of([one.column for one in drawn], [cut for cut, _ in cuts], node)
        scores = self._scores(left, node)
        best = first_best(scores, self._tie(node))
        if best is None:
            return None
        column, (cut, value) = drawn[best].column, cuts[best]
        any_missing = bool(ranges[column][2])
        mass = self._growth.sums.masses[node, WEIGHT]
        missing_left = not any_missing and 2 * left[best, _OF_WEIGHT] >= mass
        return _Cut(column, cut, bool(missing_left), value, float(scores[best]), left[best])

    def _ranges(self, node: int, columns: list[int]) -> dict[int, tuple[int, int, bool]]:
        """Least and greatest bin of columns in a node, and whether values are missing."""
        found = np.full((3, len(columns)), -np.inf)  # minus the least bin, to look for the largest
        rows = self._rows(node)
        for c, column in enumerate(columns):
            bins = self._bins[column // 8, rows, column % 8]
            present = bins[bins != self._missing]
            found[2, c] = len(present) < len(bins)
            if len(present):
                found[0, c], found[1, c] = -float(present.min()), present.max()
        first, last, missing = self._exchange.largest(found)
        return {
            column: (
                self._missing + 1 if np.isinf(first[c]) else int(-first[c]),
                -1 if np.isinf(last[c]) else int(last[c]),
                missing[c] > 0,
            )
            for c, column in enumerate(columns)
        }

    def _placed(self, drawn: _Drawn, bins: tuple[int, int, bool]) -> tuple[int, float]:
        """Bin and value of a cut, uniform between the least and the greatest value of a node."""
        ranges, (first, last, _) = self._growth.ranges, bins
        low, high = ranges.low[drawn.column], ranges.high[drawn.column]
        if first == last:  # values against missing ones
            return last, float(high[last])
        value = low[first] + drawn.number * (high[last] - low[first])
        beyond = np.flatnonzero(~(low[first + 1 : last] <= value))
        cut = first + int(beyond[0]) if len(beyond) else last - 1
        # Between the values of the bins on both sides, so that rows and bins agree.
        value = max(value, high[cut])
        return cut, float(high[cut] if value >= low[cut + 1] else value)

    def _left_of(self, columns: list[int], cuts: list[int], node: int) -> Floats:
        """Sums of the rows up to each cut, (n_cuts, k + 3); missing values are not among them."""
        sums = np.zeros((len(columns), self._n_outputs + 3))
        for rows in self._blocks(self._rows(node)):
            is_left = np.empty((len(columns), len(rows)))
            for c, (column, cut) in enumerate(zip(columns, cuts, strict=True)):
                is_left[c] = self._bins[column // 8, rows, column % 8] <= cut
            sums += is_left @ self._values(rows)
        return self._exchange.added(sums)

    def _best_cut(self, node: int) -> _Cut | None:
        """The best of all cuts of the columns, or of those that are drawn."""
        d, n_drawn = len(self._growth.table.n_values), self._limits.n_columns
        columns = list(range(d))
        if n_drawn < d:
            seed = int(self._nodes.seeds[node])
            columns = [one.column for one in _drawn(seed, d, n_drawn, lambda column: True)]
        n_bins, tie = self._growth.table.n_bins, self._tie(node)
        at_once = max(1, _MESSAGE_CELLS // (n_bins * (self._n_outputs + 3)))
        found: list[_Cut] = []
        for begin in range(0, len(columns), at_once):
            some = columns[begin : begin + at_once]
            for column, sums in zip(some, self._in_bins(some, node), strict=True):
                cut = self._best_cut_of(column, sums, node, tie)
                if cut is not None:
                    found.append(cut)
        best = first_best(np.array([cut.score for cut in found]), tie)
        return None if best is None else found[best]

    def _in_bins(self, columns: list[int], node: int) -> Floats:
        """Sums of the rows in each bin of some columns, (n_columns, n_bins, k + 3)."""
        n_bins, width = self._growth.table.n_bins, self._n_outputs + 3
        sums = np.zeros((len(columns) * n_bins, width))
        for rows in self._blocks(self._rows(node)):
            cells = np.empty((len(rows), len(columns)), dtype=np.int64)
            for c, column in enumerate(columns):
                cells[:, c] = self._bins[column // 8, rows, column % 8]
                cells[:, c] += c * n_bins
            starts = np.arange(0, cells.size + 1, len(columns))
            given = np.ones(cells.size), cells.ravel(), starts
            sums += csr_array(given, shape=(len(rows), len(sums))).T @ self._values(rows)
        return self._exchange.added(sums).reshape(len(columns), n_bins, width)

    def _best_cut_of(self, column: int, sums: Floats, node: int, tie: float) -> _Cut | None:
        """The best cut of a column, the first of nearly equal ones, from its sums by bin."""
        of_missing = sums[self._missing]
        occupied = np.flatnonzero(sums[: self._missing, _OF_ROWS] > 0)
        if not len(occupied):
            return None
        up_to = np.cumsum(sums[occupied], axis=0)
        if of_missing[_OF_ROWS] > 0:  # the last cut divides the missing values from all others
            left = np.concatenate([up_to, up_to[:-1] + of_missing])
            cuts = np.concatenate([occupied, occupied[:-1]])
        else:
            left, cuts = up_to[:-1], occupied[:-1]
        scores = self._scores(left, node)
        best = first_best(scores, tie)
        if best is None:
            return None
        cut, whole = int(cuts[best]), self._growth.sums.masses[node, WEIGHT]
        missing_left = best >= len(occupied)
        if not of_missing[_OF_ROWS] > 0:
            missing_left = bool(2 * left[best, _OF_WEIGHT] >= whole)
        above = occupied[occupied > cut]
        value = self._middle(column, cut, int(above[0]) if len(above) else None)
        return _Cut(column, cut, missing_left, value, float(scores[best]), left[best])

    def _middle(self, column: int, cut: int, following: int | None) -> float:
        """The value halfway between two bins, the lower one where there is none between them."""
        low, high = self._growth.ranges.low[column], self._growth.ranges.high[column]
        value = float(high[cut])
        if following is not None:
            middle = value + (0.5 * float(low[following]) - 0.5 * value)
            if value <= middle < low[following]:
                return middle
        return value

    # The split

    def _split(self, node: int, cut: _Cut) -> None:
        """Note a split, divide the rows that are here, and open the children."""
        nodes, sums = self._nodes, self._growth.sums
        fields, whole = nodes.fields, self._sums_of(node)
        fields[node, COLUMN], fields[node, BIN] = cut.column, cut.bin
        fields[node, MISSING_LEFT] = cut.missing_left
        sums.values[node] = cut.value
        totals = whole[:_OF_WEIGHT]
        nodes.gains[node] = max(cut.score - float(totals @ totals) / whole[_OF_WEIGHT], 0.0)
        nodes.control[N_LEFT_HERE] = self._divide(node, cut)
        nodes.control[N_LEFT] = cut.left[_OF_ROWS]
        open_children(nodes)
        self._note(int(fields[node, LEFT]), cut.left)
        self._note(int(fields[node, RIGHT]), whole - cut.left)

    def _divide(self, node: int, cut: _Cut) -> int:
        """Write the rows to the other buffer, those on the left first, in their old order."""
        rows, (begin, end) = self._rows(node), self._nodes.fields[node, [BEGIN, END]]
        bins = self._bins[cut.column // 8, rows, cut.column % 8]
        left = bins <= cut.bin
        if cut.missing_left:
            left |= bins == self._missing
        n_left = int(left.sum())
        other = self._growth.buffers.rows[1 - self._nodes.fields[node, BUFFER]]
        other[begin : begin + n_left] = rows[left]
        other[begin + n_left : end] = rows[~left]
        return n_left


def first_best(scores: Floats, tie: float) -> int | None:
    """Position of the best score, the first of those nearly equal; ``None`` if none is allowed."""
    best, score, begin = None, NO_GAIN, 0
    while begin < len(scores):
        better = scores[begin:] > (score + tie if best is not None else NO_GAIN)
        step = int(np.argmax(better))
        if not better[step]:
            break
        best = begin + step
        score, begin = float(scores[best]), best + 1
    return best


def _has_values(bins: tuple[int, int, bool]) -> bool:
    """Whether a node has two values of a column, or one beside missing ones."""
    first, last, any_missing = bins
    return last >= 0 and (first < last or any_missing)


def _drawn(seed: int, d: int, n_drawn: int, is_usable: Callable[[int], bool]) -> list[_Drawn]:
    """Draw columns of a node, as ``draw_candidates`` in the compiled growth does."""
    columns, state, found = list(range(d)), np.uint64(seed), list[_Drawn]()
    left = d
    while left > 0 and len(found) < n_drawn:
        state, number = _next_number(state)
        chosen = len(found) + int(number * left)
        left -= 1
        column = columns[chosen]
        state, number = _next_number(state)
        first = len(found)
        if is_usable(column):
            columns[chosen], columns[first] = columns[first], column
            found.append(_Drawn(column, number))
        else:
            columns[chosen], columns[first + left] = columns[first + left], column
    return found


def _next_number(state: np.uint64) -> tuple[np.uint64, float]:
    state = np.uint64(mix(state))
    return state, int(state >> np.uint64(11)) * 2.0**-53
