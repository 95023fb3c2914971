"""Parameters of tree growth, and columns that trees treat in a special way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.isotonic import nearest_in_order
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.loss_kinds import LeafOrder
from hilboost.engine.ops.cpu.category_splits import MAX_LEVELS
from hilboost.engine.ops.cpu.split_constraints import SplitConstraints
from hilboost.engine.tree import Tree


@dataclass(frozen=True)
class TreeSettings:
    """Parameters of histogram trees with scalar or shared leaves."""

    max_leaf_nodes: int = 31
    max_depth: int | None = None
    # minimum sum of weights (number of rows without weights) in a leaf
    min_samples_leaf: float = 20
    min_hessian: float = 1e-3  # minimum sum of hessians in a leaf, over its outputs
    l2_regularization: float = 0.0  # added to the hessian of a leaf, in its value and in the gain
    min_gain: float = 0.0  # minimum gain of a split
    # float in (0, 1]: fraction of the columns that are considered in a node
    max_features: float = 1.0
    # float in (0, 1]: fraction of the columns that are considered in a tree
    max_features_per_tree: float = 1.0
    max_bins: int = 255
    # whether all nodes of a level are split on the same column at the same cut, instead of growth
    # best first.  The number of levels is the largest that ``max_leaf_nodes`` and ``max_depth``
    # permit.  Cannot be combined with ``monotonic``, ``groups`` or ``categorical``.
    symmetric: bool = False
    # whether to grow one tree with vector leaves for all outputs, or one tree for each output
    shared: bool = False
    # number of columns of a random projection of the gradients on which shared trees are grown;
    # leaf values use all outputs
    sketch: int | None = None
    # for every column 1 if outputs must not decrease in it, -1 if they must not increase, 0
    # otherwise; empty for no constraints.  Cannot be combined with ``sketch``.
    monotonic: tuple[int, ...] = ()
    # columns that may interact: all splits on a path from the root are in columns of one group.
    # Empty if all columns may interact.
    groups: tuple[tuple[int, ...], ...] = ()
    # sequence of (int, int): category columns and their numbers of levels, at most 255.  Such a
    # column contains codes 0, 1, …, NaN for missing values and, in prediction, -1 for unknown
    # levels.  Requires one tree for each output, and no direction in such columns.
    categorical: tuple[tuple[int, int], ...] = ()
    # levels are sorted by their Newton steps, each shrunk toward that of the node as if it had this
    # many additional rows
    level_smoothing: float = 10.0
    # levels with a smaller weight in a node are not distinguished there
    min_samples_level: float = 10.0
    level_l2: float = 1.0  # added to the hessian of both sides in the gain of a split on categories
    # the GPU that grows trees with scalar leaves, such as ``"cuda:1"``; ``None`` is the processor
    device: str | None = None

    def __post_init__(self) -> None:
        """Reject incompatible parameters."""
        if self.device is not None and self.shared:
            raise InvalidParameter(
                "trees with vector leaves are not grown on a GPU; set multi_output='separate', or "
                "device=None."
            )
        if self.symmetric and (any(self.monotonic) or self.groups or self.categorical):
            raise InvalidParameter(
                "symmetric trees do not support monotonic columns, interaction groups or splits on "
                "categories; set growth='best_first', or encode the categories as numbers."
            )
        if not self.categorical:
            return
        if self.shared:
            raise InvalidParameter(
                "trees with vector leaves do not support splits on categories; set "
                "multi_output='separate', or encode the categories as numbers."
            )
        check_levels(self.categorical)
        for column, _ in self.categorical:
            if self.monotonic and self.monotonic[column] != 0:
                raise InvalidParameter(
                    f"monotonic is not supported for column {column}, because categories have no "
                    "order; set its direction to 0."
                )


@dataclass(frozen=True)
class VectorSettings:
    """Parameters of trees that are grown by exact squared error (OK3 of G2007)."""

    shared: ClassVar[bool] = True
    # maximum number of splits; the node with the largest total variance is split first.  ``None``
    # grows until the leaves are pure or cannot be split further.
    max_splits: int | None = 20
    max_depth: int | None = None
    # minimum sum of weights (number of rows without weights) in a leaf.  A sum that misses
    # it by a millionth, as rounded sums may, is enough.
    min_samples_leaf: float = 1
    # float in (0, 1], or "sqrt": fraction of the columns that are considered in a node.  With
    # random cuts, columns that are constant in the node are not considered.
    max_features: float | str = 1.0
    # whether to draw one cut for each column, uniformly between its minimum and maximum in the node
    # (Geurts, Ernst and Wehenkel 2006), instead of searching for the best one
    random_cuts: bool = False
    # number of columns of a random projection of the gradients on which trees are grown; leaf
    # values use all outputs (Iosipoi and Vakhrushev 2022)
    sketch: int | None = None
    max_bins: int = 255  # columns with more distinct values are cut only between quantiles
    # sequence of (int, int): category columns and their numbers of levels, at most 255.  Such a
    # column contains codes 0, 1, …, NaN for missing values and, in prediction, -1 for unknown
    # levels.
    categorical: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Reject columns with too many levels."""
        check_levels(self.categorical)


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
