"""A grown tree, as arrays over its nodes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled
from hilboost.engine.ops.cpu.nodes import COLUMN, DEPTH, LEFT, MISSING_LEFT


class GrownTree(NamedTuple):
    """A tree without leaf values.

    Attributes
    ----------
    column : (n_nodes,) int32
        0 at leaves, as everything without another meaning there.
    threshold : (n_nodes,) float64
        ``inf`` at leaves, 0 at splits on categories.
    missing_right : (n_nodes,) bool
    child : (n_nodes,) int32
        The left child; a leaf is its own child.
    gain : (n_nodes,) float64
    leaf_number : (n_nodes,) int32
        -1 at inner nodes.
    leaves : (n_leaves,) int64
        Node numbers of the leaves.
    """

    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_right: NDArray[np.bool_]
    child: NDArray[np.int32]
    gain: NDArray[np.float64]
    leaf_number: NDArray[np.int32]
    leaves: NDArray[np.int64]


class GrownTrees(NamedTuple):
    """The trees of one stage after the other."""

    trees: GrownTree  # with a first axis (n_trees,)
    sizes: NDArray[np.int64]  # (n_trees,) int64: numbers of nodes
    depths: NDArray[np.int64]  # (n_trees,) int64
    left_sets: NDArray[np.uint64]  # (n_trees, n_sets, SET_WORDS) uint64
    values: NDArray[np.float64]  # (n_trees, n_leaves, 1) float64


def empty_tree(*shape: int) -> GrownTree:
    """Memory for trees of so many nodes, or (..., n_nodes)."""
    *others, n_nodes = shape
    return GrownTree(
        np.empty(shape, dtype=np.int32),
        np.empty(shape),
        np.empty(shape, dtype=np.bool_),
        np.empty(shape, dtype=np.int32),
        np.empty(shape),
        np.empty(shape, dtype=np.int32),
        np.empty((*others, (n_nodes + 1) // 2), dtype=np.int64),
    )


@compiled
def write_tree(nodes, n_nodes, gains, thresholds, is_category, tree):
    """Write the nodes of a tree and return its depth.

    ``nodes``: (n_nodes or more, N_NODE_FIELDS) int64. ``gains``: (n_nodes or more,) float64, of the
    splits; ignored at leaves. ``thresholds``: (n_nodes or more,) float64, of the splits; ignored at
    leaves. ``is_category``: (d,) uint8, or (0,) without categories.
    """
    depth, n_leaves = np.int64(0), np.int64(0)
    for node in range(n_nodes):
        column, left = nodes[node, COLUMN], nodes[node, LEFT]
        depth = max(depth, nodes[node, DEPTH])
        if left < 0:
            tree.column[node], tree.threshold[node] = 0, np.inf
            tree.missing_right[node], tree.child[node] = False, node
            tree.gain[node], tree.leaf_number[node] = 0.0, n_leaves
            tree.leaves[n_leaves] = node
            n_leaves += 1
            continue
        by_level = is_category.shape[0] > 0 and is_category[column] != 0
        tree.column[node] = column
        tree.threshold[node] = 0.0 if by_level else thresholds[node]
        tree.missing_right[node], tree.child[node] = nodes[node, MISSING_LEFT] == 0, left
        tree.gain[node], tree.leaf_number[node] = gains[node], -1
    return depth
