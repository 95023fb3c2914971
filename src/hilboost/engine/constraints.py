"""Columns that trees treat in a special way: categories, monotonic and interacting columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.isotonic import nearest_in_order
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.loss_kinds import LeafOrder
from hilboost.engine.ops.cpu.category_splits import MAX_LEVELS
from hilboost.engine.ops.cpu.split_constraints import SplitConstraints
from hilboost.engine.tree import Tree


def check_levels(categorical: Sequence[tuple[int, int]]) -> None:
    """Check that trees can distinguish the levels of ``(column, n_levels)``."""
    for column, n_levels in categorical:
        if n_levels > MAX_LEVELS:
            raise InvalidParameter(
                f"column {column} has {n_levels} levels, but trees support at most "
                f"{MAX_LEVELS}; merge the rare ones."
            )


def marked_columns(categorical: Sequence[tuple[int, int]], d: int) -> NDArray[np.uint8]:
    """Mark category columns with 1, (d,); (0,) if there are none."""
    marked = np.zeros(d if categorical else 0, dtype=np.uint8)
    marked[[column for column, _ in categorical]] = 1
    return marked


@dataclass(frozen=True)
class MonotonicOrder(LeafOrder):
    """Monotonic order of leaves: values on the lower side of a split do not exceed the others."""

    tree: Tree
    # (n_nodes,) int64: 1 if the left side is the lower one, -1 if the right side is, 0 otherwise
    directions: NDArray[np.int64]

    @classmethod
    def of(cls, tree: Tree, monotonic: Sequence[int]) -> Self:
        """Derive the order from the directions of the columns; missing values are not ordered."""
        # A threshold of inf marks a leaf, or a split of missing values from all others.
        directed = np.asarray(monotonic, dtype=np.int64)[tree.column]
        return cls(tree, np.where(np.isfinite(tree.threshold), directed, 0))

    def nearest(self, values: Floats, weight: Floats) -> Floats:
        """Project the values onto the order, output by output."""
        if not self.directions.any():
            return values
        columns = []
        for value, w in zip(values.T, np.broadcast_to(weight, values.shape).T, strict=True):
            moved = np.array(value, order="C")
            nearest_in_order(
                self.tree.child,
                self.tree.leaf_number,
                self.directions,
                np.ascontiguousarray(w),
                moved,
            )
            columns.append(moved)
        return np.column_stack(columns)


def constraints_of(
    monotonic: Sequence[int],
    groups: Sequence[Sequence[int]],
    allowed: NDArray[np.uint8],
    n_nodes: int,
    n_outputs: int,
) -> SplitConstraints:
    """Constraints for a tree of at most ``n_nodes`` nodes; empty arrays if there are none."""
    bounds = np.empty((n_nodes, 2 if monotonic else 0, n_outputs if monotonic else 0))
    bounds[0, :1], bounds[0, 1:] = -np.inf, np.inf
    sizes = [len(group) for group in groups]
    used = np.empty((n_nodes if groups else 0, len(allowed)), dtype=np.uint8)
    used[:1] = 0
    return SplitConstraints(
        allowed=allowed,
        bounds=bounds,
        group_start=np.cumsum([0, *sizes] if groups else [], dtype=np.int64),
        group_columns=np.array([f for group in groups for f in group], dtype=np.int64),
        used=used,
    )
