"""Growth of one tree with vector leaves, whose rows are divided among workers.

Histograms of many gradients are large: workers send those of the columns that are searched, and for
random cuts, which bins have rows and the sums on the left of the cuts.  Sums are rounded, so that
trees may differ where splits are equal up to rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import Exchange
from hilboost.engine.driver import GrowthLoop, batch_size
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.nodes import BEGIN, END, LEFT, N_ROWS, RIGHT
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.engine.ops.cpu.vector_candidates import CUT, SIDE, draw_candidates
from hilboost.engine.ops.cpu.vector_cuts import NodeRows
from hilboost.engine.ops.cpu.vector_grow import set_priority, sum_rows
from hilboost.engine.ops.cpu.vector_state import VARIANCE, WEIGHT, VectorGrowth
from hilboost.engine.ops.cpu.vector_sums import (
    choose_candidate,
    mark_bins,
    search_sums,
    sum_bins,
)

_MESSAGE_CELLS = 2**22  # numbers that are sent at once
_BATCH_OF_ALL = 32  # nodes that are divided together where every node that can be split is


class VectorLoop(GrowthLoop):
    """The growth of one tree; each worker calls with its rows, and finds the same nodes.

    ``growth``: with the limits of the whole table.
    """

    def __init__(self, growth: VectorGrowth, operations: CpuOperations, exchange: Exchange) -> None:
        limits, sets = growth.limits, growth.categories.left_sets
        by_node = [growth.sums.values, *([sets] if len(sets) else [])]
        batch = _BATCH_OF_ALL if limits.in_turn else batch_size(limits.max_leaves)
        super().__init__(growth, operations, batch, by_node)
        if limits.in_turn:
            self._room = 2**62  # no node is divided in vain
        self._growth, self._together, self._exchange = growth, operations.together, exchange
        self._bins = np.arange(growth.table.n_bins, dtype=dtypes.ROW)

    def _start(self) -> None:
        self._weigh(np.zeros(1, dtype=np.int64))

    def _expand(self, batch: NDArray[np.int64], n_splits: int) -> None:
        """Search some nodes, divide those with a split, and weigh the children."""
        self._search(batch)
        batch = batch[self._nodes.priority[batch] > NO_GAIN]
        here = self._operations.partition(self._growth, batch)
        self._open_children(batch, here, here[:, 0])
        self._weigh(self._fields[batch][:, [LEFT, RIGHT]].ravel())

    def _weigh(self, nodes: NDArray[np.int64]) -> None:
        """Set the sums of some nodes over the rows of all workers, and their priorities."""
        growth, (totals, masses, _) = self._growth, self._growth.sums
        for node in nodes:
            sum_rows(node, growth)
        counts = self._fields[nodes, END] - self._fields[nodes, BEGIN]
        here = np.column_stack([totals[nodes], masses[nodes, :VARIANCE], counts])
        sums = self._exchange.added(here)
        totals[nodes], masses[nodes, :VARIANCE] = np.split(sums[:, :-1], [totals.shape[1]], axis=1)
        self._fields[nodes, N_ROWS] = sums[:, -1]
        for node in nodes:
            set_priority(node, growth)

    def _search(self, batch: NDArray[np.int64]) -> None:
        """Note the best split of each node."""
        present = self._present(batch) if self._growth.limits.random_cuts else [None] * len(batch)
        for node, present_here in zip(batch, present, strict=True):
            self._draw(node, present_here)
            n_candidates = int(self._growth.candidates.number[0])
            n_numbers = (self._growth.sums.totals.shape[1] + 2) * len(self._bins)
            at_once = max(1, _MESSAGE_CELLS // n_numbers)
            for first in range(0, n_candidates, at_once):
                some = slice(first, min(first + at_once, n_candidates))
                self._search_columns(node, some, present_here)
            choose_candidate(node, self._growth)

    def _present(self, batch: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which bins have rows of each node on any worker, (n_nodes, d, n_bins)."""
        packed = np.packbits([self._present_here(node) for node in batch], axis=2)
        every = np.bitwise_or.reduce(self._exchange.gathered(packed[None]))
        return np.unpackbits(every, axis=2, count=len(self._bins)).astype(bool)

    def _present_here(self, node: np.int64) -> NDArray[np.uint8]:
        growth = self._growth
        present = np.zeros(growth.ranges.low.shape, dtype=np.uint8)
        self._together(lambda threads: mark_bins(threads, node, growth, present))
        return present

    def _draw(self, node: np.int64, present: NDArray[np.bool_] | None) -> None:
        """Draw the columns of a node, and their cuts if these are random."""
        growth, limits, sums = self._growth, self._growth.limits, self._growth.sums
        table = growth.table if present is None else _table_of(present)
        weight = float(sums.masses[node, WEIGHT])
        here = NodeRows(self._bins, 0, len(self._bins), sums.totals[node], weight)
        marked, seed = growth.categories.is_category, growth.nodes.seeds[node]
        n_drawn, random_cuts = limits.n_columns, limits.random_cuts
        draw_candidates(
            table, growth.ranges, marked, here, seed, n_drawn, random_cuts, growth.candidates
        )

    def _search_columns(
        self, node: np.int64, some: slice, present: NDArray[np.bool_] | None
    ) -> None:
        """Search some of the candidates of a node."""
        columns = self._growth.candidates.columns[some]
        if present is None:
            groups = np.tile(self._bins.astype(np.int64), (len(columns), 1))
            sums = self._sums(node, columns, groups, len(self._bins))
            present = sums[..., -1] > 0
        else:
            present, goes_left = present[columns], self._goes_left(some)
            on_left = self._sums(node, columns, goes_left - 1, 1)[:, 0]
            totals, masses = self._growth.sums.totals[node], self._growth.sums.masses[node]
            whole = np.array([*totals, masses[WEIGHT], self._fields[node, N_ROWS]])
            sums = np.zeros((*present.shape, len(whole)))
            # Any bin of a side may have the sums of the side.
            each, is_left = np.arange(len(columns)), goes_left == 1
            sums[each, (present & is_left).argmax(axis=1)] = on_left
            sums[each, (present & ~is_left).argmax(axis=1)] = whole - on_left
        values, weights = np.ascontiguousarray(sums[..., :-2]), sums[..., -2].copy()
        table = _table_of(present)
        search_sums(node, some.start, table, self._bins, values, weights, self._growth)

    def _goes_left(self, some: slice) -> NDArray[np.int64]:
        """Which bins the drawn splits of some candidates send left, (n_candidates, n_bins)."""
        candidates, marked = self._growth.candidates, self._growth.categories.is_category
        found, n_bins = candidates.found[:, some], len(self._bins)
        goes_left = (self._bins <= found[CUT][:, None]).astype(np.int64)
        if len(marked):
            by_level = marked[candidates.columns[some]] != 0
            sets = candidates.left_sets[some][by_level].view(np.uint8)
            goes_left[by_level] = np.unpackbits(sets, axis=1, count=n_bins, bitorder="little")
        goes_left[:, -1] = found[SIDE]
        return goes_left

    def _sums(
        self,
        node: np.int64,
        columns: NDArray[np.int64],
        groups: NDArray[np.int64],
        n_groups: int,
    ) -> Floats:
        """Sums over the rows of all workers by column and group, (c, n_groups, k + 2)."""
        growth = self._growth
        sums = np.zeros((len(columns), n_groups, growth.sums.totals.shape[1] + 2))
        self._together(lambda threads: sum_bins(threads, node, columns, groups, growth, sums))
        return self._exchange.added(sums)


def _table_of(present: NDArray[np.bool_]) -> BinTable:
    """A table whose row ``b`` is in bin ``b`` of each column, or in one of ``present``."""
    (n_columns, n_bins), first = present.shape, present.argmax(axis=1)
    bins = np.zeros((-(-n_columns // 8), 8, n_bins), dtype=np.uint8)
    bins.reshape(-1, n_bins)[:n_columns] = np.where(present, np.arange(n_bins), first[:, None])
    flat = bins.swapaxes(1, 2).ravel()
    words = flat.view(dtypes.WORD).reshape(len(bins), n_bins)
    return BinTable(words, flat, np.full(n_columns, n_bins - 1), n_bins)
