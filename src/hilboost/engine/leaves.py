"""Conversion of grown nodes to a tree, the leaf of every row, and the values of the leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import rounded
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.criterion import Criterion, leaf_values
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.leaves import RowsOfLeaves, mark_leaves
from hilboost.engine.ops.cpu.nodes import GrownTree, NodeStore, empty_trees, write_tree
from hilboost.engine.ops.cpu.operations import n_parts
from hilboost.engine.ops.cpu.packing import Packing
from hilboost.engine.row_order import RowOrder, offsets_of
from hilboost.engine.tree import Tree
from hilboost.reductions.sums import merged

if TYPE_CHECKING:
    from hilboost.engine.ops.cpu.vector_state import VectorGrowth
    from hilboost.engine.tree_data import TreeData


def grown_tree(
    nodes: NodeStore, thresholds: Floats, is_category: NDArray[np.uint8]
) -> tuple[GrownTree, int]:
    """Return the tree without leaf values, and its depth.

    ``thresholds`` (n_nodes,) belong to the splits; as the gains, they are ignored at leaves, where
    they describe the best rejected split.
    """
    n_nodes = len(thresholds)
    grown, place = empty_trees(1, n_nodes), np.int64(0)
    given = nodes.fields, n_nodes, nodes.gains, thresholds, is_category
    depth = write_tree(*given, grown, place)
    return GrownTree._make([array[0] for array in grown]), depth


def as_tree(
    grown: GrownTree, depth: int, values: Floats, categories: CategorySplits | None
) -> Tree:
    """Return a grown tree with these leaf values as a base model; arrays are not copied."""
    of_levels: dict[str, NDArray] = {}
    if categories is not None and len(categories.is_category):
        by_level = (categories.is_category[grown.column] != 0) & (grown.leaf_number < 0)
        if by_level.any():
            sets = categories.left_sets[: len(by_level)][by_level]
            of_levels = {"by_level": by_level, "left_sets": sets}
    return Tree(
        column=grown.column,
        threshold=grown.threshold,
        missing_right=grown.missing_right,
        child=grown.child,
        gain=grown.gain,
        leaf_number=grown.leaf_number,
        depth=depth,
        leaf_values=values,
        **of_levels,
    )


def leaf_of_rows(
    team: ThreadTeam,
    growth: Growth | VectorGrowth,
    leaves: NDArray[np.int64],
    leaf_of_row: NDArray[np.int32],
    order: RowOrder | None = None,
    leaf_at: NDArray[np.uint8] | None = None,
) -> None:
    """Write the leaf of each row of the table, (n,); -1 for rows not used to grow the tree.

    If the table is sorted, the rows of ``growth`` become the numbers of the rows that are at these
    positions.  ``leaf_at`` (n,) are the leaves by position, if they are wanted.
    """
    n_learned = len(growth.buffers.flags)
    if n_learned < len(leaf_of_row):
        leaf_of_row[:] = -1
    of_leaves = RowsOfLeaves(growth.nodes.fields, leaves, growth.buffers.rows)
    offsets = offsets_of(order)
    n = n_parts(team, n_learned)
    team.map(lambda k: mark_leaves(k, n, of_leaves, offsets, leaf_of_row, leaf_at), range(n), 4)


def newton_steps(
    data: TreeData,
    growth: Growth | VectorGrowth,
    leaves: NDArray[np.int64],
    learned: WeightedGradients,
    weights: Floats,
    criterion: Criterion,
    bounds: Floats | None,
) -> Floats:
    """Compute the value of every leaf from exact sums, (n_leaves, r).

    ``weights``, ``bounds``: see :func:`~hilboost.engine.leaf_values`.
    """
    r = learned.gradients.shape[1]
    sums = rounded(merged(data.operations.leaves(growth, leaves, learned), data.share))
    values = np.empty((len(leaves), r))
    top, bottom = np.ascontiguousarray(sums[:, :r]), np.ascontiguousarray(sums[:, r:])
    leaf_values(top, bottom, weights, criterion, bounds, values)
    return values


def weights_of(totals: NDArray[np.int64], packing: Packing) -> Floats:
    """The weights of nodes from their packed sums (n_nodes, n_channels), (n_nodes,)."""
    mask = packing.count_mask
    return np.float64(packing.count_step) * (totals[:, 0] & mask if mask else totals[:, -1])
