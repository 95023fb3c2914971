"""Growth of one tree with vector leaves, whose rows are divided among workers.

The tree is that of :func:`~hilboost.engine.ops.cpu.vector_grow.grow_vector`.  For each split, the
workers add up sums over their rows, from which each of them takes the same decisions::

    random cuts    least and greatest bins of the drawn columns, then the sums left of each cut
    best cuts      the sums in each bin of the columns
    levels         the sums in each level

Sums are rounded, so that trees may differ where splits are equal up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hilboost.core.dtypes import Floats
from hilboost.core.exchange import Exchange
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.nodes import (
    BEGIN,
    BIN,
    COLUMN,
    DEPTH,
    END,
    LEFT,
    LEFT_BEGIN,
    MISSING_LEFT,
    N_LEFT,
    N_LEFT_HERE,
    N_ROWS,
    NODE,
    RIGHT,
    choose_node,
    open_children,
)
from hilboost.engine.ops.cpu.vector_cuts import ALMOST
from hilboost.engine.ops.cpu.vector_state import SQUARES, VARIANCE, WEIGHT, VectorGrowth
from hilboost.engine.splits_from_sums import (
    OF_ROWS,
    OF_SQUARES,
    OF_WEIGHT,
    Drawn,
    NodeSums,
    Split,
    best_cut,
    best_levels,
    draw_columns,
    drawn_levels,
    first_best,
)

_BLOCK_CELLS = 2**22  # numbers of the gradients that are gathered at once
_MESSAGE_CELLS = 2**22  # numbers that are sent at once


def grow_among_workers(growth: VectorGrowth, exchange: Exchange) -> None:
    """Grow one tree; each worker calls with its rows, and finds the same nodes.

    ``growth``: with the limits of the whole table.
    """
    _SharedGrowth(growth, exchange).run()


class _Extent(NamedTuple):
    """Least and greatest bin of a column in a node, and whether values are missing."""

    first: int
    last: int
    any_missing: bool

    @property
    def is_usable(self) -> bool:
        """Whether there are two values, or one beside missing ones."""
        return self.last >= 0 and (self.first < self.last or self.any_missing)


class _SharedGrowth:
    """The growth of one tree; the nodes belong to all workers, and the rows are local."""

    def __init__(self, growth: VectorGrowth, exchange: Exchange) -> None:
        self._growth, self._exchange = growth, exchange
        self._nodes, self._limits = growth.nodes, growth.limits
        gradients, words = growth.gradients, growth.table.words
        n, self._width = len(gradients.values), gradients.values.shape[1] + 3
        weights = gradients.weights if len(gradients.weights) else np.ones(n)
        self._beside = np.column_stack([weights, gradients.squares, np.ones(n)])
        self._missing, self._n_columns = growth.table.n_bins - 1, len(growth.table.n_values)
        self._bins = growth.table.flat.reshape(len(words), words.shape[1], 8)
        self._known_here: dict[int, Floats] = {}  # by node
        self._left_here: dict[int, Floats] = {}  # by drawn column of the present node

    def run(self) -> None:
        """Split the node of largest total variance until none is left."""
        nodes, limits = self._nodes, self._limits
        self._note(0, self._root_sums())
        while True:
            node = int(choose_node(nodes, limits.max_leaves, limits.in_turn))
            if node < 0:
                return
            nodes.control[NODE] = node
            here = self._sums_of(node)
            found = self._drawn(node, here) if limits.random_cuts else self._best(node, here)
            split = first_best(found, here.tie)
            if split is None:
                nodes.priority[node] = NO_GAIN
            else:
                self._split(node, split, here)

    # Candidates

    def _best(self, node: int, here: NodeSums) -> list[Split]:
        """The best split of each column, or of those that are drawn."""
        columns, n_drawn = list(range(self._n_columns)), self._limits.n_columns
        if n_drawn < self._n_columns:
            seed = int(self._nodes.seeds[node])
            drawn = draw_columns(seed, self._n_columns, n_drawn, lambda column: True)
            columns = [one.column for one in drawn]
        found = []
        for column, sums in zip(columns, self._by_bin(columns, node), strict=True):
            if self._is_category(column):
                split = best_levels(column, sums, here)
            else:
                split = best_cut(column, sums, here, self._growth.ranges)
            if split is not None:
                found.append(split)
        return found

    def _drawn(self, node: int, here: NodeSums) -> list[Split]:
        """A random split of each drawn column; those without two values do not count."""
        seed, n_drawn, d = int(self._nodes.seeds[node]), self._limits.n_columns, self._n_columns
        drawn = draw_columns(seed, d, n_drawn, lambda column: True)
        extents = self._extents(node, [one.column for one in drawn])
        if not all(extents[one.column].is_usable for one in drawn):
            extents = self._extents(node, list(range(d)))
            drawn = draw_columns(seed, d, n_drawn, lambda column: extents[column].is_usable)
        found: dict[int, Split] = {}
        by_level = [one for one in drawn if self._is_category(one.column)]
        of_levels = self._by_bin([one.column for one in by_level], node)
        for one, sums in zip(by_level, of_levels, strict=True):
            found[one.column] = drawn_levels(one, sums, here)
        numbers = [one for one in drawn if not self._is_category(one.column)]
        for split in self._drawn_cuts(numbers, extents, node, here):
            found[split.column] = split
        return [found[one.column] for one in drawn]

    def _drawn_cuts(
        self, drawn: list[Drawn], extents: dict[int, _Extent], node: int, here: NodeSums
    ) -> list[Split]:
        """The drawn cuts of columns of numbers."""
        if not drawn:
            return []
        cuts = [self._placed(one, extents[one.column]) for one in drawn]
        left = self._left_of([one.column for one in drawn], [cut for cut, _ in cuts], node)
        splits = []
        for one, (cut, value), sums, score in zip(
            drawn, cuts, left, here.scores(left), strict=True
        ):
            heavier = bool(2 * sums[OF_WEIGHT] >= ALMOST * here.whole[OF_WEIGHT])
            missing_left = heavier and not extents[one.column].any_missing
            splits.append(Split(one.column, cut, missing_left, value, float(score), sums))
        return splits

    def _placed(self, drawn: Drawn, extent: _Extent) -> tuple[int, float]:
        """Bin and value of a cut, uniform between the least and the greatest value of a node."""
        ranges, (first, last, _) = self._growth.ranges, extent
        low, high = ranges.low[drawn.column], ranges.high[drawn.column]
        if first == last:  # values against missing ones
            return last, float(high[last])
        value = low[first] + drawn.number * (high[last] - low[first])
        beyond = np.flatnonzero(~(low[first + 1 : last] <= value))
        cut = first + int(beyond[0]) if len(beyond) else last - 1
        # Between the values of the bins on both sides, so that rows and bins agree.
        value = max(value, high[cut])
        return cut, float(high[cut] if value >= low[cut + 1] else value)

    def _is_category(self, column: int) -> bool:
        marked = self._growth.categories.is_category
        return len(marked) > 0 and bool(marked[column])

    # Sums over the rows of all workers

    def _rows(self, node: int) -> NDArray[np.uint32]:
        begin, end = (int(self._nodes.fields[node, f]) for f in (BEGIN, END))
        return self._growth.buffers.rows[begin:end]

    def _blocks(self, node: int) -> Iterator[NDArray[np.uint32]]:
        rows, size = self._rows(node), max(256, _BLOCK_CELLS // self._width)
        return (rows[begin : begin + size] for begin in range(0, len(rows), size))

    def _of_rows(self, rows: NDArray[np.uint32]) -> Floats:
        """Gradients, weights, squares and ones, (m, k + 3)."""
        return np.hstack([self._growth.gradients.values[rows], self._beside[rows]])

    def _bins_of(self, column: int, rows: NDArray[np.uint32]) -> NDArray[np.uint8]:
        return self._bins[column // 8, rows, column % 8]

    def _root_sums(self) -> Floats:
        return self._exchange.added(self._sums_here(0))

    def _extents(self, node: int, columns: list[int]) -> dict[int, _Extent]:
        found = np.full((3, len(columns)), -np.inf)  # minus the least bin, to look for the largest
        rows = self._rows(node)
        for c, column in enumerate(columns):
            bins = self._bins_of(column, rows)
            present = bins[bins != self._missing]
            found[2, c] = len(present) < len(bins)
            if len(present):
                found[0, c], found[1, c] = -float(present.min()), present.max()
        least, greatest, missing = self._exchange.largest(found)
        return {
            column: _Extent(
                self._missing if np.isinf(least[c]) else int(-least[c]),
                -1 if np.isinf(greatest[c]) else int(greatest[c]),
                missing[c] > 0,
            )
            for c, column in enumerate(columns)
        }

    def _left_of(self, columns: list[int], cuts: list[int], node: int) -> Floats:
        """Sums of the rows up to each cut, (n_cuts, k + 3); missing values are not among them.

        The side with fewer rows is summed; the other one is what it lacks of the rows here.
        """
        rows, whole = self._rows(node), self._sums_here(node)
        is_left = np.array(
            [self._bins_of(column, rows) <= cut for column, cut in zip(columns, cuts, strict=True)]
        )
        by_right = 2 * is_left.sum(axis=1) > len(rows)
        summed = [rows[left != other] for left, other in zip(is_left, by_right, strict=True)]
        sums = self._sums_of_rows(summed)
        sums[by_right] = whole - sums[by_right]
        self._left_here = dict(zip(columns, sums, strict=True))
        return self._exchange.added(sums)

    def _sums_here(self, node: int) -> Floats:
        """Sums over the rows of a node that are here, (k + 3,)."""
        if node not in self._known_here:
            self._known_here[node] = self._sums_of_rows([self._rows(node)])[0]
        return self._known_here[node]

    def _sums_of_rows(self, parts: list[NDArray[np.uint32]]) -> Floats:
        """Sums over some rows, (n_parts, k + 3)."""
        values, starts = self._growth.gradients.values, np.cumsum([0, *map(len, parts)])
        rows = np.concatenate(parts).astype(np.int64)
        given = np.ones(len(rows)), rows, starts
        members = csr_array(given, shape=(len(parts), len(values)))
        return np.hstack([members @ values, members @ self._beside])

    def _by_bin(self, columns: list[int], node: int) -> Iterator[Floats]:
        """Sums in the bins of each column, (n_bins, k + 3), as many at once as a message has."""
        at_once = max(1, _MESSAGE_CELLS // ((self._missing + 1) * self._width))
        for begin in range(0, len(columns), at_once):
            yield from self._in_bins(columns[begin : begin + at_once], node)

    def _in_bins(self, columns: list[int], node: int) -> Floats:
        n_bins = self._missing + 1
        sums = np.zeros((len(columns) * n_bins, self._width))
        for rows in self._blocks(node):
            cells = np.empty((len(rows), len(columns)), dtype=np.int64)
            for c, column in enumerate(columns):
                cells[:, c] = self._bins_of(column, rows)
                cells[:, c] += c * n_bins
            starts = np.arange(0, cells.size + 1, len(columns))
            given = np.ones(cells.size), cells.ravel(), starts
            sums += csr_array(given, shape=(len(rows), len(sums))).T @ self._of_rows(rows)
        return self._exchange.added(sums).reshape(len(columns), n_bins, self._width)

    # Nodes

    def _sums_of(self, node: int) -> NodeSums:
        masses, totals = self._growth.sums.masses, self._growth.sums.totals[node]
        weight, squares = masses[node, WEIGHT], masses[node, SQUARES]
        whole = np.array([*totals, weight, squares, self._nodes.fields[node, N_ROWS]])
        tie = self._limits.tie * masses[0, VARIANCE] / masses[0, WEIGHT] * weight
        return NodeSums(whole, self._limits.min_weight, float(tie))

    def _note(self, node: int, sums: Floats) -> None:
        """Set the sums of a node, and its priority."""
        growth, limits = self._growth, self._limits
        totals, weight, squares = sums[:OF_WEIGHT], sums[OF_WEIGHT], sums[OF_SQUARES]
        variance = squares - float(totals @ totals) / weight if weight > 0 else 0.0
        growth.sums.totals[node] = totals
        masses = growth.sums.masses[node]
        masses[WEIGHT], masses[SQUARES], masses[VARIANCE] = weight, squares, variance
        self._nodes.fields[node, N_ROWS] = sums[OF_ROWS]
        done = (
            sums[OF_ROWS] < 2
            or variance <= limits.pure
            or self._nodes.fields[node, DEPTH] >= limits.max_depth
            or weight < 2 * limits.min_weight
        )
        self._nodes.priority[node] = NO_GAIN if done else variance

    def _split(self, node: int, split: Split, here: NodeSums) -> None:
        """Note a split, divide the rows that are here, and open the children."""
        nodes, fields, totals = self._nodes, self._nodes.fields, here.whole[:OF_WEIGHT]
        fields[node, COLUMN], fields[node, BIN] = split.column, split.bin
        fields[node, MISSING_LEFT] = split.missing_left
        self._growth.sums.values[node] = split.value
        if split.levels is not None:
            self._growth.categories.left_sets[node] = split.levels
        whole = float(totals @ totals) / here.whole[OF_WEIGHT]
        nodes.gains[node] = max(split.score - whole, 0.0)
        nodes.control[N_LEFT_HERE] = self._divide(node, split)
        nodes.control[N_LEFT] = split.left[OF_ROWS]
        open_children(nodes)
        left, right = int(fields[node, LEFT]), int(fields[node, RIGHT])
        self._note(left, split.left)
        self._note(right, here.whole - split.left)
        if split.column in self._left_here:
            own = self._left_here[split.column]
            self._known_here[left], self._known_here[right] = own, self._known_here[node] - own
        self._left_here = {}

    def _divide(self, node: int, split: Split) -> int:
        """Write the rows that go left before the others, both in their old order."""
        rows = self._rows(node)
        left = split.goes_left(self._missing + 1)[self._bins_of(split.column, rows)]
        rows[:] = np.concatenate([rows[left], rows[~left]])
        self._nodes.control[LEFT_BEGIN] = self._nodes.fields[node, BEGIN]
        return int(left.sum())
