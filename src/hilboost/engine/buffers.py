"""Memory that tree growth reuses for successive trees."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.engine.ops.cpu.batch import BEGIN_TREE, STEP, empty_batch
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.fixed_point import Compact
from hilboost.engine.ops.cpu.histogram import STRIDE, Histograms
from hilboost.engine.ops.cpu.joint_columns import JointColumns
from hilboost.engine.ops.cpu.nodes import empty_nodes
from hilboost.engine.ops.cpu.partition import RowBuffers
from hilboost.engine.ops.cpu.split_search import NodeSums, SearchScratch

HISTOGRAM_BUDGET = 2**29
"""Bytes of histograms that may be kept for sibling subtraction."""

PRIVATE_BUDGET = 2**28
"""Bytes of histograms of the threads."""
_MOST_CUT = 8

_BLOCK_ROWS = 2**16
_NO_CELLS = np.empty(0, dtype=dtypes.PACKED)


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
        spare_leaves: int = 0,
        has_sets: int = 0,
        keeps_all: int = 0,
        batch_size: int = 1,
    ) -> None:
        self._pool, self._key = pool, key
        self.n_rows, self.n_threads, self.max_leaves = n_rows, n_threads, max_leaves
        self._n_columns, self._n_bins, self._keeps_all = n_columns, n_bins, keeps_all
        self.n_nodes, self._spare_leaves = 2 * (max_leaves + spare_leaves) - 1, spare_leaves
        self.places = np.empty((2, n_rows), dtype=dtypes.ROW)
        """The rows, in one array for each other level of the tree."""
        self.flags = np.empty(n_rows, dtype=np.uint8)
        """Of growth, which leaves this memory free for the leaf of each position."""
        self.learn_from(n_rows)
        self.grower: Any = None
        """Grower of separate trees in this memory."""
        self.nodes = empty_nodes(self.n_nodes, by_gain=True)
        self.left_sets = np.zeros((self.n_nodes if has_sets else 0, SET_WORDS), dtype=np.uint64)
        self.batch = empty_batch(batch_size, n_rows, n_threads, n_columns, self.n_nodes)
        self._permitted = np.empty(n_columns, dtype=np.uint8)
        self._drawn = np.empty((2 * batch_size, 2, n_columns), dtype=np.uint8)
        self._scan_sums = np.zeros((n_threads, 5, 512), dtype=np.int64)
        self._scan_gains = np.empty((n_threads, 512))
        self._joint_sums: NDArray[np.int64] | None = None
        self._packed: dict[int, NDArray[np.int64]] = {}
        self._moved: dict[bool, NDArray[Any]] = {}
        self.may_be_compact = True
        """Whether the packed gradients of every tree so far fit into 32 bits, if this was tried."""
        self._histograms: dict[int, Histograms] = {}

    @classmethod
    def borrow(cls, pool: dict, **sizes: int) -> Self:
        """Return memory of these sizes, from the pool if available."""
        key = tuple(sizes.values())
        try:
            return pool.setdefault(key, []).pop()
        except IndexError:
            return cls(pool, key, **sizes)

    def release(self) -> None:
        """Return the memory to the pool for the next tree."""
        self._pool[self._key].append(self)

    def learn_from(self, n_learned: int) -> None:
        """Set ``rows`` to (n_learned,); buffers cover the whole table, samples may be smaller."""
        self.rows = self.places[0, :n_learned]

    def write_rows(self, given: NDArray[np.uint32] | None, team: ThreadTeam) -> None:
        """Write the numbers of the given rows, or of all, to ``rows``."""
        rows = self.rows

        def work(begin: int) -> None:
            part = rows[begin : begin + _BLOCK_ROWS]
            part[:] = np.arange(begin, begin + len(part), dtype=dtypes.ROW)

        if given is None:
            team.map(work, range(0, len(rows), _BLOCK_ROWS), 8)
        else:
            rows[:] = given

    def packed(self, n_channels: int, width: int) -> NDArray[np.int64] | None:
        """(n_rows, width) int64; ``None`` with one channel, which uses ``ordered``."""
        if n_channels == 1:
            return None
        if width not in self._packed:
            self._packed[width] = np.empty((self.n_rows, width), dtype=dtypes.PACKED)
        return self._packed[width]

    def ordered(self, n_channels: int, compact: bool = False) -> NDArray[Any]:
        """(n_learned,) int64 with one channel, or int32 if ``compact``; (0,) with more."""
        return self._moved_along(n_channels, compact)[0, : len(self.rows)]

    def _moved_along(self, n_channels: int, compact: bool) -> NDArray[Any]:
        """Memory for packed gradients that move along with the rows, (2, n_rows) or (2, 0)."""
        if n_channels > 1:
            return np.empty((2, 0), dtype=dtypes.PACKED)
        if compact not in self._moved:
            self._moved.clear()
            kind = dtypes.COMPACT if compact else dtypes.PACKED
            self._moved[compact] = np.empty(self.places.shape, dtype=kind)
        return self._moved[compact]

    def row_buffers(self, n_channels: int, compact: Compact | None = None) -> RowBuffers:
        """The training rows of the tree, and the values that move along with them."""
        ordered = self._moved_along(n_channels, compact is not None)
        flags = self.flags[: len(self.rows)]
        return RowBuffers(self.places, ordered, flags, compact)

    def histograms(self, n_channels: int) -> Histograms:
        """A slot for each leaf and spare ones; two if memory is short, and not all are needed."""
        if n_channels not in self._histograms:
            stride = STRIDE if n_channels == 1 else self._n_bins
            n_cells = self._n_columns * stride * n_channels
            n_slots = self.max_leaves
            most = HISTOGRAM_BUDGET // (8 * n_cells)
            if n_slots > most and not self._keeps_all:
                n_slots = min(2, self.max_leaves)
            else:
                n_slots += max(0, min(self._spare_leaves, most - n_slots))
            n_cut = self._n_cut(8 * n_cells * self.n_threads)
            self._histograms[n_channels] = Histograms(
                np.zeros((n_slots, n_cells), dtype=dtypes.PACKED),
                np.zeros((self.n_threads, n_cut, n_cells), dtype=dtypes.PACKED),
                _NO_CELLS,
            )
        return self._histograms[n_channels]

    def _n_cut(self, n_bytes: int) -> int:
        """Of how many nodes of a batch the rows may be cut, for which threads need memory."""
        return max(1, min(len(self.batch.divided), _MOST_CUT, PRIVATE_BUDGET // n_bytes))

    def joint(self, columns: JointColumns) -> JointColumns:
        """Groups of columns, with memory for their sums."""
        shape = self.n_threads, len(self.batch.summed), len(columns.n_codes) * STRIDE
        # Tables of equal size share this memory, but not the number of groups.
        if self._joint_sums is None or self._joint_sums.shape[2] < shape[2]:
            self._joint_sums = np.empty(shape, dtype=dtypes.PACKED)
        return columns._replace(sums=self._joint_sums)

    def start(
        self, allowed: NDArray[np.uint8], totals: NDArray[np.int64]
    ) -> tuple[NodeSums, SearchScratch]:
        """Initialize the sums of the nodes and the search state; ``totals`` (n_channels,)."""
        n_channels = len(totals)
        self._permitted[:] = self._drawn[:] = allowed
        self.batch.state[STEP] = BEGIN_TREE
        sums = NodeSums(
            np.zeros((self.n_nodes, n_channels), dtype=dtypes.PACKED),
            np.zeros((self.n_nodes, n_channels), dtype=dtypes.PACKED),
        )
        sums.totals[0] = totals
        scratch = SearchScratch(
            self._permitted,
            self._drawn,
            self._scan_sums,
            self._scan_gains,
            np.zeros((self.n_threads, 2, n_channels), dtype=np.int64),
        )
        return sums, scratch
