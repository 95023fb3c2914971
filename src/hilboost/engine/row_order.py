"""The order of the rows of a large table: rows of one leaf of an earlier tree lie together.

The trees of a fit resemble each other.  In the order of the leaves of one tree, the rows of a node
of the next trees form runs, which share cache lines::

    leaves, rows as given     2 0 1 0 2 1 0 2     a node reads every line
    leaves, rows sorted       0 0 0 1 1 2 2 2     a node reads few lines

Rows stay within their block, so that gradients are read, and leaves written, within a part that
the cache holds.  Sums are exact and random numbers belong to a row, so that the order of the
rows changes no tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.engine.ops.cpu.nodes import BEGIN
from hilboost.engine.ops.cpu.row_order import ROWS_PER_BLOCK, arrange

_FEWEST_BYTES = 2**23
"""A smaller table lies in the caches as it is."""

_N_SORTS = 2


def n_sorts_worthwhile(words: NDArray[np.uint64]) -> int:
    """Return by how many trees the rows of a table are to be sorted."""
    return _N_SORTS if words.nbytes >= _FEWEST_BYTES else 0


def ranks_of_leaves(nodes: NDArray[np.int64], leaves: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the positions of the leaves from left to right, (n_leaves,).

    nodes : (n_nodes, N_NODE_FIELDS) int64; leaves : (n_leaves,) int64, their node numbers
    """
    return np.argsort(np.argsort(nodes[leaves, BEGIN]))


@dataclass(frozen=True)
class RowOrder:
    """Where the rows of a table are."""

    offsets: NDArray[np.uint16]  # (n,) uint16: which row of its block is at each position
    team: ThreadTeam

    @classmethod
    def as_given(cls, n: int, team: ThreadTeam) -> Self:
        """Return the order in which each row is at its own position."""
        return cls(np.resize(np.arange(ROWS_PER_BLOCK, dtype=np.uint16), n), team)

    def arrange(self, values: NDArray[np.integer], begin: int) -> None:
        """Bring the values (n, k) of the rows of a block in this order, in place."""
        scratch = np.empty((ROWS_PER_BLOCK, values.shape[1]), dtype=values.dtype)
        arrange(values, self.offsets, begin, scratch)

    def arrange_all(self, values: NDArray[np.integer]) -> None:
        """Bring the values (n, k) of all rows in this order, in place."""
        self._in_blocks(lambda rows: self.arrange(values, rows.start))

    def sort(
        self,
        leaf_of_row: NDArray[np.int32],
        ranks: NDArray[np.intp],
        words: Sequence[NDArray[np.uint64]],
    ) -> None:
        """Sort the rows by the ranks (n_leaves,) of their leaves (n,), equal ones as they were.

        ``words`` (n,) are in the order before, and are brought in the new one.
        """
        keys = ranks.astype(np.min_scalar_type(len(ranks)))  # 16 bits are sorted in linear time

        def sort_block(rows: slice) -> None:
            offsets = self.offsets[rows]
            source = np.argsort(keys[leaf_of_row[rows][offsets]], kind="stable")
            _move(source, [offsets, *(word[rows] for word in words)])

        self._in_blocks(sort_block)

    def undo(self, words: Sequence[NDArray[np.uint64]]) -> None:
        """Bring words (n,) back to the order as given."""

        def undo_block(rows: slice) -> None:
            back = np.argsort(self.offsets[rows], kind="stable")
            _move(back, [word[rows] for word in words])

        self._in_blocks(undo_block)

    def _in_blocks(self, work: Callable[[slice], None]) -> None:
        n = len(self.offsets)
        starts = range(0, n, ROWS_PER_BLOCK)
        self.team.map(work, [slice(b, min(b + ROWS_PER_BLOCK, n)) for b in starts])


def offsets_of(order: RowOrder | None) -> NDArray[np.uint16]:
    """Return the offsets of a sorted table; none of one as given."""
    return np.empty(0, dtype=np.uint16) if order is None else order.offsets


def _move(source: NDArray[np.intp], parts: Sequence[NDArray]) -> None:
    for part in parts:
        part[:] = part[source]
