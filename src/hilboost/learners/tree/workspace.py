"""Memory that growth reuses from tree to tree."""

from __future__ import annotations

from threading import Lock
from typing import Self

import numpy as np

from hilboost.backends.histogram import STRIDE
from hilboost.backends.levels import SET_WORDS
from hilboost.backends.nodes import (
    BEGIN,
    BUFFER,
    CONTROL_SIZE,
    DEPTH,
    END,
    LEFT,
    N_NODE_FIELDS,
    N_NODES,
    NODE,
    RIGHT,
    SLOT,
)
from hilboost.backends.split import NO_GAIN
from hilboost.backends.sync import ABORT, SYNC_SIZE
from hilboost.core import dtypes

HISTOGRAM_BUDGET = 2**29
"""Bytes of histograms that may be kept for sibling subtraction."""

_lock = Lock()


class Workspace:
    """Buffers for one tree at a time."""

    def __init__(
        self,
        pool: dict[tuple[int, ...], list[Workspace]],
        key: tuple[int, ...],
        *,
        n_rows: int,
        n_columns: int,
        n_bins: int,
        n_threads: int,
        max_leaves: int,
        n_sets: int = 0,
    ) -> None:
        self._pool, self._key = pool, key
        self.n_rows, self.n_threads, self.max_leaves = n_rows, n_threads, max_leaves
        self._n_columns, self._n_bins = n_columns, n_bins
        n_nodes = 2 * max_leaves - 1
        self._row_buffer = np.empty(2 * n_rows, dtype=dtypes.ROW)
        self.all_rows = np.arange(n_rows, dtype=dtypes.ROW)
        self.flags = np.empty(n_rows, dtype=np.uint8)
        self.learn_from(n_rows)
        self.nodes = np.zeros((n_nodes, N_NODE_FIELDS), dtype=np.int64)
        self.left_sets = np.zeros((n_sets, SET_WORDS), dtype=np.uint64)
        self.gains = np.empty(n_nodes)
        self.drawn = np.empty((2, n_columns), dtype=np.uint8)
        self.best_gain = np.empty((n_threads, 2, 8))
        self.best_split = np.empty((n_threads, 2, 8), dtype=np.int64)
        self.scan_sums = np.empty((n_threads, 2, 512), dtype=np.int64)
        self.scan_gains = np.empty((n_threads, 512))
        self.counts = np.zeros(8 * n_threads, dtype=np.int64)
        self.control = np.zeros(CONTROL_SIZE, dtype=np.int64)
        self.sync = np.zeros(SYNC_SIZE, dtype=np.int64)
        self._packed: dict[int, np.ndarray] = {}
        self._ordered: dict[int, np.ndarray] = {}
        self._histograms: dict[int, np.ndarray] = {}

    @classmethod
    def borrow(cls, pool: dict, **sizes: int) -> Self:
        """A workspace of these sizes, a used one where one is free."""
        key = tuple(sizes.values())
        with _lock:
            free = pool.setdefault(key, [])
            if free:
                return free.pop()
        return cls(pool, key, **sizes)

    def release(self) -> None:
        """Let the next tree use it."""
        with _lock:
            self._pool[self._key].append(self)

    def learn_from(self, n_learnt: int) -> None:
        """Make ``rows`` (2, n_learnt): buffers are as long as the table, samples may be shorter."""
        self.rows = self._row_buffer[: 2 * n_learnt].reshape(2, n_learnt)

    def abort(self) -> None:
        """Let threads leave that wait for one which has failed."""
        self.sync[ABORT] = 1

    def packed(self, n_channels: int) -> np.ndarray:
        """(n_rows, n_channels) int64; no rows with one channel, where ``ordered`` serves"""
        if n_channels not in self._packed:
            n_rows = 0 if n_channels == 1 else self.n_rows
            self._packed[n_channels] = np.empty((n_rows, n_channels), dtype=dtypes.PACKED)
        return self._packed[n_channels]

    def ordered(self, n_channels: int) -> np.ndarray:
        """(2, m) int64 with one channel, (2, 0) with more"""
        if n_channels not in self._ordered:
            width = self.n_rows if n_channels == 1 else 0
            self._ordered[n_channels] = np.empty(2 * width, dtype=dtypes.PACKED)
        width = self.rows.shape[1] if n_channels == 1 else 0
        return self._ordered[n_channels][: 2 * width].reshape(2, width)

    def histograms(self, n_channels: int) -> np.ndarray:
        """(n_slots, cells) int64: one slot a leaf, or two where these would take too much."""
        if n_channels not in self._histograms:
            stride = STRIDE if n_channels == 1 else self._n_bins
            cells = self._n_columns * stride * n_channels
            n_slots = self.max_leaves
            if 8 * cells * n_slots > HISTOGRAM_BUDGET:
                n_slots = min(2, self.max_leaves)
            self._histograms[n_channels] = np.empty(
                (n_slots + self.n_threads, cells), dtype=dtypes.PACKED
            )
        return self._histograms[n_channels][: -self.n_threads]

    def private(self, n_channels: int) -> np.ndarray:
        """(n_threads, cells) int64, a histogram for every thread"""
        self.histograms(n_channels)
        return self._histograms[n_channels][-self.n_threads :]

    def start(self, allowed: np.ndarray, totals: np.ndarray) -> None:
        """Make node 0 the open root."""
        n_channels = len(totals)
        self.nodes[0, [BEGIN, END, BUFFER, DEPTH]] = 0, self.rows.shape[1], 0, 0
        self.nodes[0, [SLOT, LEFT, RIGHT]] = -1
        self.gains[0] = NO_GAIN
        self.drawn[:] = allowed
        n_nodes = len(self.gains)
        self.totals = np.zeros((n_nodes, n_channels), dtype=dtypes.PACKED)
        self.left_totals = np.zeros((n_nodes, n_channels), dtype=dtypes.PACKED)
        self.totals[0] = totals
        self.scratch = np.zeros((self.n_threads, 2, n_channels), dtype=np.int64)
        self.control[[NODE, N_NODES]] = -1, 1
        self.sync[:] = 0
