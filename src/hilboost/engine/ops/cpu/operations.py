"""The operations of growth on the threads of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import CHUNK, FIELDS, TOP, empty_sums
from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    BOTH,
    N_DIVIDED,
    N_PAIRS,
    N_SUMMED,
    ONLY_SUMMED,
    SEARCH,
    STEP,
    SUM,
)
from hilboost.engine.ops.cpu.binned_leaves import OtherRows, find_leaves, other_rows
from hilboost.engine.ops.cpu.fixed_point import (
    Layout,
    WeightedGradients,
    pack_gradients,
    pack_one,
    packed_sums,
)
from hilboost.engine.ops.cpu.grow import DECIDE, WHOLE_TREE, grow
from hilboost.engine.ops.cpu.growth import NANOSECONDS_PER_CELL, Growth
from hilboost.engine.ops.cpu.leaves import RowsOfLeaves, sum_leaves
from hilboost.engine.ops.cpu.node_histogram import NANOSECONDS_PER_WORD
from hilboost.engine.ops.cpu.nodes import BEGIN, END, GrownTree, NodeStore
from hilboost.engine.ops.cpu.partition import NANOSECONDS_PER_ROW, partition_nodes
from hilboost.engine.ops.cpu.sync import ABORT, Threads, new_sync

if TYPE_CHECKING:
    from hilboost.engine.ops.cpu.vector_state import VectorGrowth

MOST_BINS = 512
_BLOCK_ROWS = 2**15
_PART = 2**14


def n_parts(team: ThreadTeam, n_numbers: int) -> int:
    """Return into how many parts work is divided, so that a late thread delays little."""
    return 1 if team.n_threads == 1 else min(4 * team.n_threads, 1 + n_numbers // _PART)


@dataclass(frozen=True)
class CpuOperations:
    """Operations that as many threads of a team as are useful run together."""

    in_order: ClassVar[bool] = True

    team: ThreadTeam
    n_threads: int
    worth_asking: int = 200_000  # nanoseconds of work for each thread that is asked to share it

    def quantize(
        self,
        learned: WeightedGradients,
        layout: Layout,
        numbers: NDArray[np.uint32] | None,
        into: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Round gradients to packed integers and return their sums, (n_channels,)."""
        r = learned.gradients.shape[1]
        rows, packing, n_channels = learned.rows, layout.packing, layout.n_channels(r)
        values, ordered = (None, into[:, 0]) if n_channels == 1 else (into, into[:0, 0])
        is_plain = values is None and not len(learned.weights) and not len(rows)
        m = len(rows) or len(learned.gradients)

        def quantize_block(begin: int) -> NDArray[np.int64]:
            end = min(begin + _BLOCK_ROWS, m)
            here = rows[begin:end] if len(rows) else np.arange(begin, end, dtype=dtypes.ROW)
            for first, last, offset in _runs(here, numbers):
                placed = layout.rounding._replace(first_row=offset)
                first, last = begin + first, begin + last
                if is_plain:
                    pack_one(learned, packing, placed, first, last, ordered)
                else:
                    pack_gradients(learned, packing, placed, first, last, values, ordered)
            totals = np.empty(n_channels, dtype=np.int64)
            packed_sums(values, ordered[begin:end], here, totals)
            return totals

        return np.sum(self.team.map(quantize_block, range(0, m, _BLOCK_ROWS), 3), axis=0)

    def partition(
        self, growth: Growth | VectorGrowth, nodes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Divide the rows of each node by its split."""
        batch, n = growth.batch, len(nodes)
        batch.divided[:n], batch.state[[STEP, N_DIVIDED]] = nodes, (BEGIN_TREE, n)
        given = growth.table, growth.nodes, growth.categories, growth.buffers, batch
        if n > 0:
            work = NANOSECONDS_PER_ROW * _n_rows(growth.nodes, nodes)
            self.cooperate(lambda threads: partition_nodes(threads, *given), work)
        return batch.n_left_here[:n].copy()

    def histogram(self, growth: Growth, nodes: NDArray[np.int64]) -> None:
        """Sum the rows of each node into its slot."""
        batch, n = growth.batch, len(nodes)
        batch.state[[STEP, N_SUMMED]] = BEGIN_TREE, n
        batch.summed[:n], batch.first_sum[: n + 1] = nodes, np.arange(n + 1)
        batch.pairs[:n], batch.modes[:n] = nodes[:, None], ONLY_SUMMED
        if n > 0:
            work = NANOSECONDS_PER_WORD * len(growth.table.words) * _n_rows(growth.nodes, nodes)
            self.cooperate(lambda threads: grow(threads, SUM, growth, None), work)

    def search(self, growth: Growth, nodes: NDArray[np.int64], columns: NDArray[np.uint8]) -> None:
        """Note the best split of each node, or one split of all of them."""
        batch, n = growth.batch, len(nodes)
        work = NANOSECONDS_PER_CELL * growth.histograms.slots.shape[1] * n
        growth.scratch.drawn[:n, 0] = columns
        if growth.rules.symmetric:
            batch.divided[:n] = nodes
            batch.state[[STEP, N_DIVIDED, N_PAIRS]] = BEGIN_TREE, n, 0
            summed = np.empty((self.n_threads, MOST_BINS))
            self.cooperate(lambda threads: grow(threads, SEARCH, growth, summed), work)
            return
        batch.state[[STEP, N_PAIRS]] = BEGIN_TREE, n
        batch.first_sum[: n + 1] = 0
        batch.pairs[:n], batch.modes[:n] = nodes[:, None], BOTH
        if n > 0:
            self.cooperate(lambda threads: grow(threads, SEARCH, growth, None), work)

    def leaves(
        self, growth: Growth | VectorGrowth, leaves: NDArray[np.int64], learned: WeightedGradients
    ) -> NDArray[np.int64]:
        """Sum the gradients of the rows of each leaf exactly, and what their steps are divided by.

        Returns (n_leaves, r + k, 5), with sums of k hessians, or of weights or rows.
        """
        of_leaves = RowsOfLeaves(growth.nodes.fields, leaves, growth.buffers.rows)
        r, curved = learned.gradients.shape[1], learned.hessians.shape[1] > 0
        n = n_parts(self.team, len(growth.buffers.flags) * r)
        scratch, sums = np.empty((n, 2, CHUNK)), np.empty((2, len(leaves), r, FIELDS), np.int64)

        def add(part: int) -> None:
            sum_leaves(part, n, of_leaves, learned, scratch, sums)

        self.team.map(add, range(n), 2)
        bottom = sums[1] if curved else sums[1, :, :1]
        if not curved and not len(learned.weights):
            bottom = counts(growth, leaves)
        return np.concatenate([sums[0], bottom], axis=1)

    def walk(self, growth: Growth, tree: GrownTree, leaf_of_row: NDArray[np.int32]) -> None:
        """Find the leaves of the rows that are marked with -1."""

        def walk_block(begin: int) -> None:
            rows, flags, ranges, nothing = other_rows(1, _BLOCK_ROWS, len(tree.child))
            others = OtherRows(rows[0], flags[0], ranges[0], nothing)
            given = growth.table, growth.nodes, growth.categories, tree.leaf_number, others
            find_leaves(*given, (begin, min(begin + _BLOCK_ROWS, len(leaf_of_row))), leaf_of_row)

        self.team.map(walk_block, range(0, len(leaf_of_row), _BLOCK_ROWS), 2)

    def grow(self, growth: Growth, symmetric: bool) -> None:
        """Grow a whole tree in one compiled call, which saves what calls of Python cost."""
        summed = np.empty((self.n_threads, MOST_BINS)) if symmetric else None
        self.cooperate(lambda threads: grow(threads, WHOLE_TREE, growth, summed))

    def cooperate(self, work: Callable[[Threads], None], nanoseconds: float = inf) -> None:
        """Begin tasks that other threads share if they come in time, and are worth asking."""
        n_threads, sync = int(min(self.n_threads, 1 + nanoseconds // self.worth_asking)), new_sync()

        def one(thread: int) -> None:
            if thread < self.n_threads:
                work(Threads(thread, n_threads, sync))

        def abort() -> None:
            sync[ABORT] = 1

        self.team.cooperate(one, abort, n_threads)


def decide(growth: Growth) -> int:
    """Decide what follows the step of a growth; returns the next step."""
    summed = np.empty((1, MOST_BINS)) if growth.rules.symmetric else None
    grow(Threads(0, 1, new_sync()), DECIDE, growth, summed)
    return int(growth.batch.state[STEP])


def _n_rows(nodes: NodeStore, chosen: NDArray[np.int64]) -> int:
    """How many rows some nodes have here."""
    return int(np.sum(nodes.fields[chosen, END] - nodes.fields[chosen, BEGIN]))


def _runs(
    rows: NDArray[np.uint32], numbers: NDArray[np.uint32] | None
) -> Iterator[tuple[int, int, int]]:
    """Divide ascending rows into runs that follow each other in the whole table.

    Each has the difference between the ``numbers`` of its rows there and their numbers here.
    """
    if numbers is None:
        yield 0, len(rows), 0
        return
    offsets = numbers[rows].astype(np.int64) - rows
    starts = np.flatnonzero(np.diff(offsets, prepend=-1))
    for first, last in pairwise([*starts.tolist(), len(rows)]):
        yield first, last, int(offsets[first])


def counts(growth: Growth | VectorGrowth, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exact sums of ones over the rows of each leaf, (n_leaves, 1, 5)."""
    sums, fields = empty_sums(len(leaves), 1), growth.nodes.fields
    n_rows = fields[leaves, END] - fields[leaves, BEGIN]
    sums[:, 0, TOP - 1] = n_rows
    sums[n_rows > 0, 0, TOP] = TOP - 1
    return sums
