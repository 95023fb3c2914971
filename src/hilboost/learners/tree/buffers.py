"""Memory that tree growth reuses for successive trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.sync import ABORT, SYNC_SIZE
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.trees.category_splits import SET_WORDS
from hilboost.backends.trees.compact_gradients import Compact
from hilboost.backends.trees.histogram import STRIDE, Histograms
from hilboost.backends.trees.joint_columns import JointColumns
from hilboost.backends.trees.nodes import empty_nodes
from hilboost.backends.trees.partition import RowBuffers, n_spare
from hilboost.backends.trees.split_search import NodeSums, SearchScratch
from hilboost.core import dtypes
from hilboost.core.exchange import RowShare
from hilboost.learners.tree.binning import BinnedTable
from hilboost.learners.tree.joint_columns import joint_columns
from hilboost.learners.tree.next_root import NextRoot
from hilboost.learners.tree.row_order import RowOrder

HISTOGRAM_BUDGET = 2**29
"""Bytes of histograms that may be kept for sibling subtraction."""

_BLOCK_ROWS = 2**16
_NO_CELLS = np.empty(0, dtype=dtypes.PACKED)
_FEWEST_ROWS_LENT = 2**15
_STEP = 2**16 // 32
"""New memory for the leaves of fewer rows takes less time than a loan."""


class TreeBuffers:
    """Working memory for growing one tree at a time."""

    def __init__(
        self,
        pool: dict[tuple[int, ...], list[TreeBuffers]],
        key: tuple[int, ...],
        *,
        n_rows: int,
        n_columns: int,
        n_bins: int,
        n_threads: int,
        max_leaves: int,
        n_sets: int = 0,
        keeps_all: int = 0,
    ) -> None:
        self._pool, self._key = pool, key
        self.n_rows, self.n_threads, self.max_leaves = n_rows, n_threads, max_leaves
        self._n_columns, self._n_bins, self._keeps_all = n_columns, n_bins, keeps_all
        self.n_nodes = 2 * max_leaves - 1
        self._n_places = n_rows + n_spare(n_rows, n_threads)
        self._places = np.empty(self._n_places, dtype=dtypes.ROW)
        self.flags = np.empty(n_rows, dtype=np.uint8)
        """Of growth, which leaves this memory free for the leaf of each position."""
        self.learn_from(n_rows)
        self.grower: Any = None
        """What separate trees are grown with in this memory."""
        self.nodes = empty_nodes(self.n_nodes, by_gain=True)
        self.left_sets = np.zeros((n_sets, SET_WORDS), dtype=np.uint64)
        self._counts = np.zeros(8 * n_threads, dtype=np.int64)
        self.sync = np.zeros(SYNC_SIZE, dtype=np.int64)
        self._permitted = np.empty(n_columns, dtype=np.uint8)
        self._drawn = np.empty((2, n_columns), dtype=np.uint8)
        self._best_gains = np.empty((n_threads, 2, 8))
        self._best_splits = np.empty((n_threads, 2, 8), dtype=np.int64)
        self._scan_sums = np.empty((n_threads, 2, 512), dtype=np.int64)
        self._scan_gains = np.empty((n_threads, 512))
        self._joint_sums: NDArray[np.int64] | None = None
        self._packed: dict[int, NDArray[np.int64]] = {}
        self._moved: dict[bool, NDArray[Any]] = {}
        self.may_be_compact = True
        """Whether the packed gradients of every tree so far fit into 32 bits, if this was tried."""
        self._histograms: dict[int, NDArray[np.int64]] = {}
        self._is_lent = False

    @classmethod
    def borrow(cls, pool: dict, **sizes: int) -> Self:
        """Return memory of these sizes, from the pool if available."""
        key = tuple(sizes.values())
        try:
            return pool.setdefault(key, []).pop()
        except IndexError:
            return cls(pool, key, **sizes)

    def release(self) -> None:
        """Return the memory to the pool for the next tree, or later if leaves are still in it."""
        if not self._is_lent:
            self._pool[self._key].append(self)

    def leaf_of_row(self, packed: NDArray[np.int64] | None, is_alone: bool) -> NDArray[np.int32]:
        """Memory for the leaf of every row after growth, (n_rows,) int32.

        With many rows, if the tree is the only one of its stage, that of its gradients: ``packed``
        (n_rows, width), or those that move along with the rows.  The buffers return to the pool
        once neither the array nor a view of it is used any more.
        """
        if not is_alone or self.n_rows < _FEWEST_ROWS_LENT:
            return np.empty(self.n_rows, dtype=dtypes.LEAF)
        (memory,) = [packed.reshape(-1)] if packed is not None else self._moved.values()
        self._is_lent = True
        return np.asarray(_Loan(self, memory.view(dtypes.LEAF)[: self.n_rows]))

    def end_loan(self) -> None:
        """Return the memory to the pool."""
        self._is_lent = False
        self.release()

    def learn_from(self, n_learned: int) -> None:
        """Set ``rows`` to (n_learned,); buffers cover the whole table, samples may be smaller."""
        self.rows = self._places[:n_learned]

    def learn_from_all(self, team: ThreadTeam) -> None:
        """Write the numbers of all rows to ``rows``."""
        rows = self.rows

        def work(begin: int) -> None:
            part = rows[begin : begin + _BLOCK_ROWS]
            part[:] = np.arange(begin, begin + len(part), dtype=dtypes.ROW)

        team.map(work, range(0, len(rows), _BLOCK_ROWS))

    def abort(self) -> None:
        """Release the threads that wait for a thread that has failed."""
        self.sync[ABORT] = 1

    def packed(self, n_channels: int, width: int) -> NDArray[np.int64] | None:
        """(n_rows, width) int64; ``None`` with one channel, which uses ``ordered``."""
        if n_channels == 1:
            return None
        if width not in self._packed:
            self._packed[width] = np.empty((self.n_rows, width), dtype=dtypes.PACKED)
        return self._packed[width]

    def ordered(self, n_channels: int, compact: bool = False) -> NDArray[Any]:
        """(n_learned,) int64 with one channel, or int32 if ``compact``; (0,) with more."""
        return self._moved_along(n_channels, compact)[: len(self.rows)]

    def _moved_along(self, n_channels: int, compact: bool) -> NDArray[Any]:
        """Memory for packed gradients that move along with the rows, and for the spare ones."""
        if n_channels > 1:
            return np.empty(0, dtype=dtypes.PACKED)
        if compact not in self._moved:
            self._moved.clear()
            kind = dtypes.COMPACT if compact else dtypes.PACKED
            self._moved[compact] = np.empty(self._n_places, dtype=kind)
        return self._moved[compact]

    def row_buffers(self, n_channels: int, compact: Compact | None = None) -> RowBuffers:
        """The training rows of the tree, and the values that move along with them."""
        ordered = self._moved_along(n_channels, compact is not None)
        flags = self.flags[: len(self.rows)]
        return RowBuffers(self._places, ordered, flags, self._counts, compact)

    def histograms(self, n_channels: int) -> Histograms:
        """One slot for each leaf; two if that is too much memory, and not all are needed."""
        if n_channels not in self._histograms:
            stride = STRIDE if n_channels == 1 else self._n_bins
            n_cells = self._n_columns * stride * n_channels
            n_slots = self.max_leaves
            if 8 * n_cells * n_slots > HISTOGRAM_BUDGET and not self._keeps_all:
                n_slots = min(2, self.max_leaves)
            self._histograms[n_channels] = np.zeros(
                (n_slots + self.n_threads, n_cells), dtype=dtypes.PACKED
            )
        whole = self._histograms[n_channels]
        return Histograms(whole[: -self.n_threads], whole[-self.n_threads :], _NO_CELLS)

    def joint(self, columns: JointColumns | None) -> JointColumns | None:
        """Groups of columns, with memory for their sums."""
        if columns is None:
            return None
        shape = self.n_threads, len(columns.n_codes) * STRIDE
        # Tables of equal size share this memory, but not the number of groups.
        if self._joint_sums is None or self._joint_sums.shape[1] < shape[1]:
            self._joint_sums = np.empty(shape, dtype=dtypes.PACKED)
        return columns._replace(sums=self._joint_sums)

    def start(
        self, allowed: NDArray[np.uint8], totals: NDArray[np.int64]
    ) -> tuple[NodeSums, SearchScratch]:
        """Initialize the sums of the nodes and the search state; ``totals`` (n_channels,)."""
        n_channels = len(totals)
        self.sync[:] = 0
        self._permitted[:] = self._drawn[:] = allowed
        sums = NodeSums(
            np.zeros((self.n_nodes, n_channels), dtype=dtypes.PACKED),
            np.zeros((self.n_nodes, n_channels), dtype=dtypes.PACKED),
        )
        sums.totals[0] = totals
        scratch = SearchScratch(
            self._permitted,
            self._drawn,
            self._best_gains,
            self._best_splits,
            self._scan_sums,
            self._scan_gains,
            np.zeros((self.n_threads, 2, n_channels), dtype=np.int64),
        )
        return sums, scratch


class _Loan:
    """The owner of an array in the memory of buffers, which it returns in the end."""

    def __init__(self, space: TreeBuffers, memory: NDArray[Any]) -> None:
        self._space = space
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._space.end_loan()


@dataclass
class TreeData:
    """A binned table, the threads of a fit, and the memory reused for successive trees.

    ``share`` says which rows of the whole table these are, if other workers have the others.
    ``joins`` says whether columns of few values may form groups, ``n_sorts`` by how many
    of the next trees its rows are to be sorted.  ``order`` is that of the rows of a sorted table.
    ``rounds`` says whether leaf values may be rounded, ``next_root`` is there if histograms are
    carried from tree to tree.  ``seed`` is that of the fit.
    """

    table: BinnedTable
    team: ThreadTeam
    buffers: dict[tuple[int, ...], list[TreeBuffers]]
    share: RowShare | None = None
    joins: bool = False
    n_sorts: int = 0
    order: RowOrder | None = None
    rounds: bool = False
    next_root: NextRoot | None = None
    seed: int = 0

    @cached_property
    def joint(self) -> JointColumns | None:
        """Groups of columns, found when the first tree uses them; all trees share them."""
        if not self.joins:
            return None
        table = self.table
        return joint_columns(table.words, table.n_values, table.n_bins, self.team)

    def salt(self, output: int, stage: int) -> np.uint64:
        """Return the key by which an output's gradients are rounded at random in a stage.

        The random number of a row grows from stage to stage by a 32nd, modulo one: few integers
        change, and their errors cancel over the stages.
        """
        key = key_of(self.seed, Purpose.ROUNDING, member=output) | np.uint64(1 << 16)
        return key & ~np.uint64(0xFFFF) | np.uint64(stage * _STEP & 0xFFFF)

    @property
    def n_rows(self) -> int:
        """Number of rows of the whole table."""
        return self.table.n_rows if self.share is None else self.share.n_rows

    @property
    def _words(self) -> list[NDArray[np.uint64]]:
        """Arrays that compiled code reads for each row, (n,) each."""
        groups = self.__dict__.get("joint")  # those found later are in the order of the table
        return [*self.table.words, *(() if groups is None else groups.words)]

    @property
    def may_be_sorted(self) -> bool:
        """Whether the rows are sorted, or will be after the next tree."""
        return self.order is not None or self.n_sorts > 0

    def sort_rows(self, leaf_of_row: NDArray[np.int32], ranks: NDArray[np.intp]) -> None:
        """Sort the rows by the leaves (n,) of a tree, whose ``ranks`` (n_leaves,) are given."""
        if self.n_sorts == 0:
            return
        self.n_sorts -= 1
        if self.order is None:
            self.order = RowOrder.as_given(self.table.n_rows, self.team)
        self.order.sort(leaf_of_row, ranks, self._words)
        self.forget_tree()

    def bring_rows_back(self) -> None:
        """Undo the sorting of the rows."""
        if self.order is not None:
            self.order.undo(self._words)
            self.order = None
            self.forget_tree()

    def forget_tree(self) -> None:
        """Take the sums of the next root from all rows."""
        if self.next_root is not None:
            self.next_root.forget()
