"""Growth of one tree with vector leaves, whose rows are divided among workers.

Histograms of many gradients are large: workers send them for searched columns alone.  For random
cuts, they send which bins have rows, and the sums on the left of the cuts.  Sums are rounded, so
that trees may differ where splits are equal up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import Exchange
from hilboost.engine.ops.cpu.batch import N_TREE
from hilboost.engine.ops.cpu.best_first import choose_batch
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.nodes import (
    BEGIN,
    COLUMN,
    END,
    LEFT,
    N_NODES,
    N_ROWS,
    RIGHT,
    open_children,
)
from hilboost.engine.ops.cpu.operations import CpuOperations, n_parts
from hilboost.engine.ops.cpu.vector_candidates import SIDE, draw_candidates, empty_candidates
from hilboost.engine.ops.cpu.vector_cuts import NodeRows
from hilboost.engine.ops.cpu.vector_grow import set_priority, sum_rows
from hilboost.engine.ops.cpu.vector_state import VARIANCE, WEIGHT, VectorGrowth
from hilboost.engine.ops.cpu.vector_sums import choose_candidate, mark_bins, search_sums, sum_bins

_MESSAGE_CELLS = 2**22  # numbers that are sent at once


class VectorLoop:
    """The growth of one tree; each worker has its rows and finds the same nodes.

    The limits of ``growth`` are for the whole table.
    """

    def __init__(self, growth: VectorGrowth, operations: CpuOperations, exchange: Exchange) -> None:
        self._growth, self._operations, self._exchange = growth, operations, exchange
        self._nodes, self._fields, self._team = growth.nodes, growth.nodes.fields, operations.team
        self._bins = np.arange(growth.table.n_bins, dtype=dtypes.ROW)

    def run(self) -> None:
        """Divide the nodes of the largest variances until there are enough leaves."""
        batch, limits, nodes = self._growth.batch, self._growth.limits, self._nodes
        batch.state[:] = batch.is_split[:] = 0
        batch.state[N_TREE], batch.tree[0] = 1, 0
        room = 2**62 if limits.in_turn else len(self._fields) // 2  # in turn, none is in vain
        sum_rows(0, self._growth)
        self._note(0, self._exchange.added(self._sums_of(0)))
        while n := choose_batch(limits.max_leaves, room, batch, nodes):
            self._expand(batch.divided[:n].copy())
        self._close(batch.tree[: batch.state[N_TREE]])

    def _close(self, tree: NDArray[np.int64]) -> None:
        """Number the nodes of the tree in their order; divided in vain, they are leaves."""
        numbers = np.full(len(self._fields) + 1, -1)  # the last one of no child
        numbers[tree] = np.arange(len(tree))
        sets = self._growth.categories.left_sets
        by_node = [self._fields, self._nodes.gains, self._growth.sums.values]
        for array in [*by_node, *([sets] if len(sets) else [])]:
            array[: len(tree)] = array[tree]
        here = self._fields[: len(tree)]
        here[:, [LEFT, RIGHT]] = numbers[here[:, [LEFT, RIGHT]]]
        self._nodes.control[N_NODES] = len(tree)

    def _expand(self, batch: NDArray[np.int64]) -> None:
        """Search some nodes, and divide those with a split."""
        on_left = self._search(batch)
        is_split = self._nodes.priority[batch] > NO_GAIN
        batch, on_left = batch[is_split], on_left[is_split]
        n_left = self._operations.partition(self._growth, batch)
        for node, n, sums in zip(batch, n_left, on_left, strict=True):
            open_children(node, n, n, self._nodes)
            self._note(self._fields[node, LEFT], sums)
            self._note(self._fields[node, RIGHT], self._sums_of(node) - sums)

    def _sums_of(self, node: int | np.int64) -> Floats:
        """Sums of the gradients, weights, squares and number of the rows of a node, (k + 3,)."""
        sums = self._growth.sums
        return np.array(
            [*sums.totals[node], *sums.masses[node, :VARIANCE], self._fields[node, N_ROWS]]
        )

    def _note(self, node: int, sums: Floats) -> None:
        """Set the sums of a node over the rows of all workers, and its priority."""
        self._growth.sums.totals[node] = sums[:-3]
        self._growth.sums.masses[node, :VARIANCE] = sums[-3:-1]
        self._fields[node, N_ROWS] = sums[-1]
        set_priority(node, self._growth)

    def _search(self, batch: NDArray[np.int64]) -> Floats:
        """Note the best split of each node; returns the sums on its left, (n_nodes, k + 3)."""
        random_cuts, k = self._growth.limits.random_cuts, self._growth.sums.totals.shape[1]
        present = self._present(batch) if random_cuts else [None] * len(batch)
        drawn = [self._drawn(node, bins) for node, bins in zip(batch, present, strict=True)]
        at_once = max(1, _MESSAGE_CELLS // ((k + 3) * (1 if random_cuts else len(self._bins))))
        parts = [part for node in drawn for part in node.parts(at_once)]
        joined = sum(len(part.columns) for part in parts) <= at_once
        for message in filter(None, [parts] if joined else [[part] for part in parts]):
            here = [self._sums(part) for part in message]
            sums = self._exchange.added(np.concatenate(here))
            ends = np.cumsum([len(part.columns) for part in message])
            for part, sums_of_part in zip(message, np.split(sums, ends[:-1]), strict=True):
                self._search_columns(part, sums_of_part)
        for node in drawn:
            choose_candidate(node.node, node.growth)
        return np.array([one.on_left[self._fields[one.node, COLUMN]] for one in drawn])

    def _present(self, batch: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which bins have rows of each node on any worker, (n_nodes, d, n_bins)."""
        packed = np.packbits([self._present_here(node) for node in batch], axis=2)
        every = np.bitwise_or.reduce(self._exchange.gathered(packed[None]))
        return np.unpackbits(every, axis=2, count=len(self._bins)).astype(bool)

    def _present_here(self, node: np.int64) -> NDArray[np.uint8]:
        growth = self._growth
        present = np.zeros(growth.ranges.low.shape, dtype=np.uint8)
        self._in_parts(node, len(present), lambda k, n: mark_bins(k, n, node, growth, present))
        return present

    def _in_parts(
        self, node: int | np.int64, n_columns: int, work: Callable[[int, int], None]
    ) -> None:
        """Read some columns of a node's rows here, in parts that threads share."""
        fields, team = self._fields, self._team
        n = min(n_columns, n_parts(team, n_columns * int(fields[node, END] - fields[node, BEGIN])))
        team.map(lambda part: work(part, n), range(n))

    def _drawn(self, node: np.int64, present: NDArray[np.bool_] | None) -> _Candidates:
        """Draw the columns of a node, and their cuts if these are random."""
        sums = self._growth.sums
        candidates = empty_candidates(len(self._growth.ranges.low))
        growth = self._growth._replace(candidates=candidates)
        table = growth.table if present is None else _table_of(present)
        weight = float(sums.masses[node, WEIGHT])
        here = NodeRows(self._bins, 0, len(self._bins), sums.totals[node], weight)
        draw_candidates(table, here, growth.nodes.seeds[node], growth)
        some = slice(0, int(candidates.number[0]))
        on_left = np.zeros((len(growth.ranges.low), sums.totals.shape[1] + 3))
        return _Candidates(growth, node, some, present, on_left)

    def _sums(self, part: _Candidates) -> Floats:
        """Sums over the rows here by candidate and bin, or left of the cut, (c, 1 or b, k + 3)."""
        growth, node, columns, n_bins = part.growth, part.node, part.columns, len(self._bins)
        if part.present is None:
            groups = np.tile(np.arange(n_bins), (len(columns), 1))
        else:
            groups, n_bins = np.where(part.goes_left(n_bins), 0, -1), 1
        sums = np.zeros((len(columns), n_bins, growth.sums.totals.shape[1] + 3))

        def work(part: int, n_parts: int) -> None:
            sum_bins(part, n_parts, node, columns, groups, growth, sums)

        self._in_parts(node, len(columns), work)
        return sums

    def _search_columns(self, part: _Candidates, sums: Floats) -> None:
        """Search some of the candidates of a node, by sums over the rows of all workers."""
        present, whole = sums[..., -1] > 0, self._sums_of(part.node)
        if part.present is not None:
            present, on_left = part.present[part.columns], sums[:, 0]
            goes_left = part.goes_left(len(self._bins))
            # Any bin of a side may have the sums of the side.
            sums = np.zeros((*present.shape, len(whole)))
            each = np.arange(len(present))
            sums[each, (present & goes_left).argmax(axis=1)] = on_left
            sums[each, (present & ~goes_left).argmax(axis=1)] = whole - on_left
        values, weights = np.ascontiguousarray(sums[..., :-3]), sums[..., -3].copy()
        table, first = _table_of(present), part.some.start
        search_sums(part.node, first, table, self._bins, values, weights, part.growth)
        goes_left = part.goes_left(len(self._bins))
        part.on_left[part.columns] = np.einsum("cbk,cb->ck", sums, goes_left)


class _Candidates(NamedTuple):
    """Some candidates for the split of a node."""

    growth: VectorGrowth  # with the candidates of this node
    node: np.int64
    some: slice
    present: NDArray[np.bool_] | None  # (d, n_bins), for random cuts
    on_left: Floats  # (d, k + 3), written: sums on the left of the splits of candidates

    def parts(self, at_once: int) -> list[_Candidates]:
        """Parts of so many candidates at most."""
        firsts = range(0, self.some.stop, at_once)
        return [
            self._replace(some=slice(first, min(first + at_once, self.some.stop)))
            for first in firsts
        ]

    @property
    def columns(self) -> NDArray[np.int64]:
        """The columns of the candidates."""
        return self.growth.candidates.columns[self.some]

    def goes_left(self, n_bins: int) -> NDArray[np.bool_]:
        """Which bins the drawn splits send left, (n_candidates, n_bins)."""
        sets = self.growth.candidates.left_sets[self.some].view(np.uint8)
        goes_left = np.unpackbits(sets, axis=1, count=n_bins, bitorder="little").astype(bool)
        goes_left[:, -1] = self.growth.candidates.found[SIDE, self.some]
        return goes_left


def _table_of(present: NDArray[np.bool_]) -> BinTable:
    """A table whose row ``b`` is in bin ``b`` of each column, or in one of ``present``."""
    (n_columns, n_bins), first = present.shape, present.argmax(axis=1)
    bins = np.zeros((-(-n_columns // 8), 8, n_bins), dtype=np.uint8)
    bins.reshape(-1, n_bins)[:n_columns] = np.where(present, np.arange(n_bins), first[:, None])
    flat = bins.swapaxes(1, 2).ravel()
    words = flat.view(dtypes.WORD).reshape(len(bins), n_bins)
    return BinTable(words, flat, np.full(n_columns, n_bins - 1), n_bins)
