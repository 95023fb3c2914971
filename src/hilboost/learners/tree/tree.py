"""One tree, and many trees behind one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.team import Team
from hilboost.backends.traverse import add_forest, forest_cells
from hilboost.core import dtypes
from hilboost.core.contracts import CellModel
from hilboost.core.records import Floats, Part

_ROWS_WORTH_A_THREAD = 2000
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Tree(CellModel):
    """A binary tree with vector leaves.

    Attributes
    ----------
    column : (n_nodes,) int32
    threshold : (n_nodes,) float64
        ``x <= threshold`` goes left; ``inf`` at leaves.
    missing_right : (n_nodes,) bool
    child : (n_nodes,) int32
        The left child; the right one follows it.  A leaf is its own child.
    gain : (n_nodes,) float64
        Gain of the split, 0 at leaves.
    leaf_number : (n_nodes,) int32
        -1 at inner nodes.
    depth : int
    leaf_values : (n_leaves, r) float64
    """

    column: NDArray[np.int32]
    threshold: Floats
    missing_right: NDArray[np.bool_]
    child: NDArray[np.int32]
    gain: Floats
    leaf_number: NDArray[np.int32]
    depth: int
    leaf_values: Floats

    @property
    def values(self) -> Floats:
        """(n_leaves, r)"""
        return self.leaf_values

    def with_values(self, values: Floats) -> Self:
        """The same cells with other values."""
        return replace(self, leaf_values=values)

    def cells(self, X: Floats) -> NDArray[np.int32]:
        """Leaf of every row, (n,) int32."""
        return Forest.of([Part.of(self, slice(0, self.leaf_values.shape[1]))]).cells(X, 1)[:, 0]

    def predict_raw(self, X: Floats) -> Floats:
        """(n, r)"""
        return self.leaf_values[self.cells(X)]

    @classmethod
    def sum_of(cls, parts: Sequence[Part]) -> Forest:
        """All trees as one forest."""
        return Forest.of(parts)


@dataclass(frozen=True)
class Forest:
    """Trees as flat arrays, their coefficients multiplied into the leaf values."""

    roots: NDArray[np.int32]
    depths: NDArray[np.int32]
    column: NDArray[np.int32]
    threshold: Floats
    missing_right: NDArray[np.bool_]
    child: NDArray[np.int32]
    leaf_number: NDArray[np.int32]
    value_offset: NDArray[np.int64]
    values: Floats
    widths: NDArray[np.int32]
    first_output: NDArray[np.int32]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Forest:
        """Put the trees of parts behind one another."""
        trees: list[Any] = [part.model for part in parts]
        sizes = np.array([len(t.column) for t in trees])
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        widths = np.array([t.leaf_values.shape[1] for t in trees], dtype=np.int32)
        value_sizes = [t.leaf_values.size for t in trees]
        value_starts = np.concatenate([[0], np.cumsum(value_sizes)[:-1]])
        offsets = [
            start + np.maximum(t.leaf_number, 0) * np.int64(width)
            for t, start, width in zip(trees, value_starts, widths, strict=True)
        ]
        return cls(
            roots=roots,
            depths=np.array([t.depth for t in trees], dtype=np.int32),
            column=np.concatenate([t.column for t in trees]),
            threshold=np.concatenate([t.threshold for t in trees]),
            missing_right=np.concatenate([t.missing_right for t in trees]),
            child=np.concatenate(
                [t.child + root for t, root in zip(trees, roots, strict=True)]
            ).astype(np.int32),
            leaf_number=np.concatenate([t.leaf_number for t in trees]),
            value_offset=np.concatenate(offsets).astype(np.int64),
            values=np.concatenate(
                [(p.coefficient * t.leaf_values).ravel() for t, p in zip(trees, parts, strict=True)]
            ),
            widths=widths,
            first_output=np.array([part.columns.start for part in parts], dtype=np.int32),
        )

    @cached_property
    def _nodes(self) -> tuple[NDArray[np.int32], Floats, NDArray[np.bool_], NDArray[np.int32]]:
        return self.column, self.threshold, self.missing_right, self.child

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Add all trees' outputs to ``raw`` (n, r); ``X`` is (n, d) float32 or float64."""
        n = len(X)
        has_missing = bool(np.isnan(X.sum(dtype=np.float64)))

        def work(begin: int) -> None:
            add_forest(
                X,
                self.roots,
                self.depths,
                *self._nodes,
                self.value_offset,
                self.values,
                self.widths,
                self.first_output,
                begin,
                min(begin + _BLOCK_ROWS, n),
                has_missing,
                raw,
            )

        with Team(min(n_threads, 1 + n // _ROWS_WORTH_A_THREAD)) as team:
            team.map(work, range(0, n, _BLOCK_ROWS))

    def cells(self, X: Floats, n_threads: int) -> NDArray[np.int32]:
        """Leaf numbers, (n, n_trees)."""
        n = len(X)
        cells = np.empty((n, len(self.roots)), dtype=dtypes.CELL)

        def work(begin: int) -> None:
            end = min(begin + _BLOCK_ROWS, n)
            forest_cells(X, self.roots, *self._nodes, self.leaf_number, begin, end, cells)

        with Team(min(n_threads, 1 + n // _ROWS_WORTH_A_THREAD)) as team:
            team.map(work, range(0, n, _BLOCK_ROWS))
        return cells
