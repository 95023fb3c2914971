"""Conversion of grown nodes to a tree, the leaf of every row, and the sums in the leaves.

``nodes`` (n_nodes, N_NODE_FIELDS) int64 and ``rows`` (2, m) uint32 are the results of growth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import CHUNK, empty_sums, is_whole, rounded
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.trees.binned_leaves import BinnedTree, binned_leaves
from hilboost.backends.trees.binning import BinTable
from hilboost.backends.trees.category_splits import CategorySplits
from hilboost.backends.trees.leaves import leaf_sums, mark_leaves
from hilboost.backends.trees.nodes import BEGIN, COLUMN, DEPTH, END, LEFT, MISSING_LEFT
from hilboost.backends.trees.traverse import mark_left_leaves
from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.learners.tree.tree import Tree

_BLOCK_ROWS = 2**15


def tree_of(
    nodes: NDArray[np.int64],
    gains: Floats,
    thresholds: Floats,
    categories: CategorySplits | None = None,
) -> Tree:
    """Build the tree with zero leaf values; ``gains`` and ``thresholds`` are those of the splits.

    Both are ignored at leaves, where they describe the best rejected split.
    """
    n_nodes = len(nodes)
    is_leaf = nodes[:, LEFT] < 0
    leaves = leaves_of(nodes)
    leaf_number = np.full(n_nodes, -1, dtype=np.int32)
    leaf_number[leaves] = np.arange(len(leaves))
    of_levels: dict[str, NDArray] = {}
    if categories is not None and len(categories.is_category):
        by_level, left_sets = categories.is_category[nodes[:, COLUMN]] != 0, categories.left_sets
        by_level &= ~is_leaf
        if by_level.any():
            of_levels = {"by_level": by_level, "left_sets": left_sets[:n_nodes][by_level]}
            thresholds = np.where(by_level, 0.0, thresholds)
    return Tree(
        column=np.where(is_leaf, 0, nodes[:, COLUMN]).astype(np.int32),
        threshold=np.where(is_leaf, np.inf, thresholds),
        missing_right=~is_leaf & (nodes[:, MISSING_LEFT] == 0),
        child=np.where(is_leaf, np.arange(n_nodes), nodes[:, LEFT]).astype(np.int32),
        gain=np.where(is_leaf, 0.0, gains[:n_nodes]),
        leaf_number=leaf_number,
        depth=int(nodes[:, DEPTH].max()),
        leaf_values=np.zeros((len(leaves), 1)),
        **of_levels,
    )


def leaves_of(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the nodes that are leaves."""
    return np.flatnonzero(nodes[:, LEFT] < 0)


def leaf_of_rows(
    team: ThreadTeam, nodes: NDArray[np.int64], rows: NDArray[np.uint32], n: int
) -> NDArray[np.int32]:
    """Leaf of each row of the table, (n,) int32; -1 for rows not used to grow the tree."""
    leaf_of_row = np.full(n, -1, dtype=dtypes.LEAF)
    leaves = leaves_of(nodes)
    team.run(lambda thread: mark_leaves(thread, team.n_threads, nodes, leaves, rows, leaf_of_row))
    return leaf_of_row


def leaves_of_others(
    team: ThreadTeam,
    table: BinTable,
    nodes: NDArray[np.int64],
    tree: Tree,
    categories: CategorySplits,
    leaf_of_row: NDArray[np.int32],
) -> None:
    """Find the leaves of the rows that were not used to grow the tree, which are marked with -1."""
    binned = binned_tree(nodes, tree)

    def work(begin: int) -> None:
        end = min(begin + _BLOCK_ROWS, len(leaf_of_row))
        binned_leaves(table, binned, categories, begin, end, leaf_of_row)

    team.map(work, range(0, len(leaf_of_row), _BLOCK_ROWS))


def binned_tree(nodes: NDArray[np.int64], tree: Tree) -> BinnedTree:
    """Arrange a tree for :func:`~hilboost.backends.trees.binned_leaves.binned_leaves`."""
    order = np.zeros(len(nodes), dtype=np.int64)
    masks = np.zeros(len(nodes), dtype=np.uint64)
    mark_left_leaves(np.array([0, len(nodes)]), tree.child, order, masks)
    is_leaf = tree.leaf_number >= 0
    in_order = tree.leaf_number[is_leaf][np.argsort(order[is_leaf])]
    return BinnedTree(nodes, tree.leaf_number, masks, in_order)


def sums_in_leaves(
    team: ThreadTeam,
    nodes: NDArray[np.int64],
    rows: NDArray[np.uint32],
    negative: Floats,
    hessian: Floats,
    weight: Floats,
) -> tuple[Floats, Floats]:
    """Compute ``sum(w g)`` and ``sum(w h)`` of every leaf exactly, (n_leaves, r) both.

    hessian : (n, r), or (n, 0) for ones; weight : (n,), or (0,) for ones

    The sums depend on the rows in a leaf alone, and not on their order.
    """
    leaves, r = leaves_of(nodes), negative.shape[1]
    whole, weight = is_whole(weight), weight[:, None]
    scratch = np.empty((team.n_threads, 2, CHUNK))

    def total(values: Floats, weight: Floats) -> Floats:
        sums = empty_sums(len(leaves), values.shape[1])
        n_threads = team.n_threads
        given = nodes, leaves, rows, values, weight, whole, scratch, sums
        team.run(lambda thread: leaf_sums(thread, n_threads, *given))
        return rounded(sums)

    sum_g = total(negative, weight)
    if hessian.shape[1]:
        return sum_g, total(hessian, weight)
    if len(weight):
        mass = total(weight, weight[:0])
    else:
        mass = (nodes[leaves, END] - nodes[leaves, BEGIN])[:, None].astype(np.float64)
    return sum_g, np.repeat(mass, r, axis=1)


def newton_steps(sum_g: Floats, sum_h: Floats, l2: float) -> Floats:
    """Compute ``sum(w g) / (sum(w h) + l2)`` of every leaf; 0 where the hessians vanish."""
    bottom = sum_h + l2
    return np.divide(sum_g, bottom, out=np.zeros_like(sum_g), where=bottom > 0)
