"""Conversion of grown nodes to a tree, the leaf of every row, and the values of the leaves.

``nodes`` (n_nodes, N_NODE_FIELDS) int64 and ``rows`` (2, n) uint32 are the results of growth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import CHUNK, empty_sums, rounded
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.engine.ops.cpu.binned_leaves import (
    BinnedTree,
    binned_leaves,
    order_leaves,
    walk_scratch,
)
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.criterion import leaf_values
from hilboost.engine.ops.cpu.grown_tree import GrownTree, empty_tree, write_tree
from hilboost.engine.ops.cpu.leaf_words import BLOCK
from hilboost.engine.ops.cpu.leaves import (
    LeafGradients,
    LeafNumbers,
    RowsOfLeaves,
    leaf_sums,
    mark_leaves,
)
from hilboost.engine.ops.cpu.nodes import END, N_ROWS
from hilboost.engine.row_order import RowOrder
from hilboost.engine.tree import Tree
from hilboost.reductions.sums import is_whole, on_any_worker

_BLOCK_ROWS = 2**15
_ROWS_WORTH_A_TEAM = 2**15
"""Handing work to other threads takes longer than what these save with fewer rows."""
_ALONE = ThreadTeam(1)


def tree_of(
    nodes: NDArray[np.int64], gains: Floats, thresholds: Floats, categories: CategorySplits
) -> tuple[Tree, NDArray[np.int64]]:
    """Build the tree with zero leaf values, and the node numbers of its leaves.

    ``gains`` and ``thresholds`` belong to the splits; both are ignored at leaves, where they
    describe the best rejected split.
    """
    grown = empty_tree(len(nodes))
    depth = write_tree(nodes, len(nodes), gains, thresholds, categories.is_category, grown)
    values = np.zeros((len(grown.leaves), 1))
    return as_tree(grown, depth, values, categories), grown.leaves


def as_tree(grown: GrownTree, depth: int, values: Floats, categories: CategorySplits) -> Tree:
    """Return a grown tree with these leaf values as a base model; arrays are not copied."""
    of_levels: dict[str, NDArray] = {}
    if len(categories.is_category):
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
    nodes: NDArray[np.int64],
    leaves: NDArray[np.int64],
    rows: NDArray[np.uint32],
    leaf_of_row: NDArray[np.int32],
    order: RowOrder | None = None,
    leaf_at: NDArray[np.uint8] | None = None,
) -> None:
    """Write the leaf of each row of the table, (n,); -1 for rows not used to grow the tree.

    If the table is sorted, ``rows`` become the numbers of the rows that are at these positions.
    ``leaf_at`` (n,) are the leaves by position, if they are wanted.
    """
    n_learned = int(nodes[0, END])
    if n_learned < len(leaf_of_row):
        leaf_of_row[:] = -1
    offsets = None if order is None else order.offsets
    given = RowsOfLeaves(nodes, leaves, rows), offsets, leaf_of_row, leaf_at
    team = team if n_learned > 2 * _ROWS_WORTH_A_TEAM else _ALONE
    n_parts = _n_parts(team)
    team.map(lambda part: mark_leaves(part, n_parts, *given), range(n_parts))


def _n_parts(team: ThreadTeam) -> int:
    """Return into how many parts work is divided, so that a late thread delays little."""
    return 1 if team.n_threads == 1 else 4 * team.n_threads


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
        words = np.empty(BLOCK, dtype=np.uint64)
        binned_leaves(table, binned, categories, words, begin, end, leaf_of_row)

    team.map(work, range(0, len(leaf_of_row), _BLOCK_ROWS))


def binned_tree(nodes: NDArray[np.int64], tree: Tree) -> BinnedTree:
    """Arrange a tree for :func:`~hilboost.engine.ops.cpu.binned_leaves.binned_leaves`."""
    scratch = walk_scratch(len(nodes))
    order_leaves(tree.child, tree.leaf_number, scratch)
    return BinnedTree(nodes, tree.leaf_number, scratch.masks, scratch.in_order)


def leaf_gradients(
    negative: Floats,
    hessian: Floats,
    logistic: bool,
    weight: Floats,
    l2: float,
    share: RowShare | None,
) -> LeafGradients:
    """Collect what leaf values are computed from.

    negative : (n, r); hessian : (n, r), or (n, 0) for ones
    logistic : bool, whether hessians are derived from ``hessian``, which are gradients
    weight : (n,), or (0,) for ones
    """
    weights = weight[:, None]
    whole = is_whole(weight, share)
    return LeafGradients(negative, hessian, weights, weights[:0], whole, float(l2), logistic)


def newton_steps(
    team: ThreadTeam,
    nodes: NDArray[np.int64],
    leaves: NDArray[np.int64],
    rows: NDArray[np.uint32],
    learned: LeafGradients,
    share: RowShare | None,
) -> Floats:
    """Compute the Newton step of every leaf from exact sums, (n_leaves, r)."""
    gradients, hessians, weights, ones, whole, l2, logistic = learned
    if share is None and int(nodes[0, END]) * gradients.shape[1] <= _ROWS_WORTH_A_TEAM:
        team = _ALONE
    n_parts = _n_parts(team)
    scratch, of_leaves = np.empty((n_parts, 2, CHUNK)), RowsOfLeaves(nodes, leaves, rows)

    def sums_of(values: Floats, weights: Floats, logistic: bool = False) -> Floats:
        sums = empty_sums(2, len(leaves), values.shape[1])
        numbers = LeafNumbers(values, weights, whole, logistic)
        team.map(
            lambda part: leaf_sums(part, n_parts, of_leaves, numbers, scratch, sums),
            range(n_parts),
        )
        sums = sums if logistic else sums[0]
        return rounded(sums if share is None else share.exchange.merged(sums))

    if logistic:
        top, bottom = sums_of(gradients, weights, logistic)
    else:
        top = sums_of(gradients, weights)
        if hessians.shape[1]:
            bottom = sums_of(hessians, weights)
        elif on_any_worker(len(weights) > 0, share):
            bottom = sums_of(weights, ones)
        else:
            bottom = nodes[leaves, N_ROWS, None].astype(np.float64)
    values = np.empty_like(top)
    leaf_values(top, bottom, l2, values)
    return values
