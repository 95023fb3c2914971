"""The separate trees of a stage, one for each output: one compiled call in every thread.

A thread takes the next tree that no other has taken, and does all that concerns it: packing of the
gradients, growth, leaf values.  Between the trees there is no Python::

    thread 0   tree 0 -> tree 2 -> tree 3 -> ...
    thread 1   tree 1 ------> tree 4 -> ...

Each tree depends on its own gradients alone, and not on the thread that grows it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.exact_sums import clear_sum, rounded_sum
from hilboost.backends.fixed_point import (
    Rounding,
    TreeGradients,
    WeightedGradients,
    absolute_sums,
    factor_of,
    pack_gradients,
    pack_one,
    packed_sums,
)
from hilboost.backends.intrinsics import atomic_add, keep_apart
from hilboost.backends.trees.binned_leaves import BinnedTree, binned_leaves, order_leaves
from hilboost.backends.trees.category_splits import CategorySplits
from hilboost.backends.trees.column_splits import Packing
from hilboost.backends.trees.grow import Growth, decide_step, divide_step, sum_step
from hilboost.backends.trees.grown_tree import GrownTree, write_tree
from hilboost.backends.trees.histogram import n_channels_of
from hilboost.backends.trees.leaves import LeafGradients, mark_leaves, newton_leaves
from hilboost.backends.trees.nodes import BIN, COLUMN, N_NODES, NODE, open_root
from hilboost.backends.trees.split_search import SplitRules
from hilboost.backends.trees.symmetric import grow_levels


class SeparateTrees(NamedTuple):
    """What the trees of a stage are grown from.

    Attributes
    ----------
    learned : TreeGradients
    weights : (n,) float64
        (0,) for ones.
    column_weights : (n, 1) or (0, 1) float64
        The same.
    ones : (0, 1) float64
    rows : (m,) uint32
        The rows to learn from; (0,) for all.
    rounding : Rounding
        Of all trees but for the factors and the salt.
    gradient_room, hessian_room : float
        The largest sums of magnitudes, in steps.
    salts : (n_trees,) uint64
    seeds : (n_trees,) int64
        Of the draws of columns.
    allowed : (n_trees, d) uint8
        Columns that a tree may use.
    thresholds : (d, n_cuts) float64
    l2 : float
        Added to the hessian of a leaf.
    next_tree : (1,) int64
        The number of trees that have been taken.
    """

    learned: TreeGradients
    weights: NDArray[np.float64]
    column_weights: NDArray[np.float64]
    ones: NDArray[np.float64]
    rows: NDArray[np.uint32]
    rounding: Rounding
    gradient_room: float
    hessian_room: float
    salts: NDArray[np.uint64]
    seeds: NDArray[np.int64]
    allowed: NDArray[np.uint8]
    thresholds: NDArray[np.float64]
    l2: float
    next_tree: NDArray[np.int64]


class GrownTrees(NamedTuple):
    """The trees of a stage.

    Attributes
    ----------
    trees : GrownTree
        With a first axis (n_trees,).
    sizes, depths : (n_trees,) int64
        Numbers of nodes, and depths.
    nodes : (n_trees, n_nodes, N_NODE_FIELDS) int64
        (n_trees, 0, N_NODE_FIELDS) if other rows than those to learn from need no leaves.
    left_sets : (n_trees, n_sets, SET_WORDS) uint64
    values : (n_trees, n_leaves, 1) float64
        Newton steps.
    steps : (n_trees,) float64
        Of the fixed-point gradients.
    bounds : (n_trees, n_leaves, 2) float64
        Of the values; (n_trees, 0, 2) without constraints.
    """

    trees: GrownTree
    sizes: NDArray[np.int64]
    depths: NDArray[np.int64]
    nodes: NDArray[np.int64]
    left_sets: NDArray[np.uint64]
    values: NDArray[np.float64]
    steps: NDArray[np.float64]
    bounds: NDArray[np.float64]


class StageScratch(NamedTuple):
    """Memory of one thread.

    Attributes
    ----------
    numbers : (1, 2, CHUNK) float64
    sums : (2, n_leaves, 1, 5) int64
    totals : (3, 5) int64
    thresholds : (n_nodes,) float64
    """

    numbers: NDArray[np.float64]
    sums: NDArray[np.int64]
    totals: NDArray[np.int64]
    thresholds: NDArray[np.float64]


@inner
def _rounding_of(tree, stage, n_learned, scratch):
    """How the gradients of a tree become integers, by the sums of their magnitudes."""
    keep_apart()
    gradients, hessians = stage.learned.gradients[tree], stage.learned.hessians[tree]
    learned = WeightedGradients(gradients, hessians, stage.weights, stage.rows)
    totals, whole = scratch.totals, stage.learned.whole
    for k in range(totals.shape[0]):
        clear_sum(totals[k])
    absolute_sums(learned, 0, n_learned, whole, scratch.numbers[0], totals)
    of_hessian = 1.0
    if hessians.shape[1] > 0:
        of_hessian = factor_of(rounded_sum(totals[1]), stage.hessian_room)
    return Rounding(
        factor_of(rounded_sum(totals[0]), stage.gradient_room),
        of_hessian,
        stage.rounding.of_count,
        stage.rounding.whole,
        stage.salts[tree],
        stage.rounding.first_row,
    )


@inner
def _packing_of(stage, rounding, packing):
    """The layout that all trees share, with the steps of one of them."""
    hessian_step = packing.hessian_step
    if stage.learned.hessians.shape[2] > 0:
        hessian_step = 1.0 / rounding.of_hessian
    return Packing(
        packing.hessian_shift,
        packing.hessian_mask,
        packing.count_mask,
        packing.gradient_shift,
        1.0 / rounding.of_gradient,
        hessian_step,
        packing.hessian_of_count,
        packing.count_step,
    )


@inner
def _allow(allowed, constraints, drawn):
    """Let a tree use some columns."""
    for column in range(drawn.shape[1]):
        drawn[0, column] = drawn[1, column] = allowed[column]
        if constraints is not None:
            constraints.allowed[column] = constraints.permitted[column] = allowed[column]


@inner
def _start(tree, stage, packing, rounding, growth):
    """Pack the gradients of a tree and open its root."""
    keep_apart()
    learned = WeightedGradients(
        stage.learned.gradients[tree], stage.learned.hessians[tree], stage.weights, stage.rows
    )
    rows, ordered = growth.buffers.rows, growth.buffers.ordered
    m = growth.buffers.flags.shape[0]
    for i in range(m):
        rows[i] = stage.rows[i] if stage.rows.shape[0] > 0 else i
    n_channels = n_channels_of(growth.packed, growth.sums.totals)
    if n_channels == 1 and stage.rows.shape[0] == 0 and stage.weights.shape[0] == 0:
        pack_one(learned, packing, rounding, 0, m, ordered)
    else:
        pack_gradients(learned, packing, rounding, 0, m, growth.packed, ordered)
    packed_sums(growth.packed, ordered[:m], rows[:m], growth.sums.totals[0])
    open_root(growth.nodes, m, stage.seeds[tree])
    _allow(stage.allowed[tree], growth.constraints, growth.scratch.drawn)


@inner
def _with_packing(packing, growth):
    """The growth of a tree of this layout."""
    rules = growth.rules
    return Growth(
        growth.table,
        growth.packed,
        SplitRules(
            rules.n_values,
            rules.n_bins,
            rules.n_outputs,
            packing,
            rules.limits,
            rules.monotonic,
            rules.is_category,
        ),
        growth.limits,
        growth.constraints,
        growth.nodes,
        growth.sums,
        growth.categories,
        growth.buffers,
        growth.histograms,
        growth.scratch,
        growth.joint,
    )


@inner
def _write_nodes(tree, stage, nodes, is_category, scratch, grown):
    """Write the tree itself, and return how many leaves it has."""
    keep_apart()
    fields, n_nodes = nodes.fields, nodes.control[N_NODES]
    for node in range(n_nodes):
        scratch.thresholds[node] = stage.thresholds[fields[node, COLUMN], fields[node, BIN]]
    trees = grown.trees
    grown.sizes[tree] = n_nodes
    grown.depths[tree] = write_tree(
        fields,
        n_nodes,
        nodes.gains,
        scratch.thresholds,
        is_category,
        GrownTree(
            trees.column[tree],
            trees.threshold[tree],
            trees.missing_right[tree],
            trees.child[tree],
            trees.gain[tree],
            trees.leaf_number[tree],
            trees.leaves[tree],
        ),
    )
    return (n_nodes + 1) // 2


@inner
def _write_leaves(tree, n_leaves, stage, growth, scratch, grown, leaf_of_row):
    """Write the leaf of every row to learn from, and the values of the leaves."""
    keep_apart()
    fields, rows = growth.nodes.fields, growth.buffers.rows
    leaves = grown.trees.leaves[tree][:n_leaves]
    if growth.buffers.flags.shape[0] < leaf_of_row.shape[0]:
        for i in range(leaf_of_row.shape[0]):
            leaf_of_row[i] = -1
    mark_leaves(0, 1, fields, leaves, rows, None, leaf_of_row, None)
    learned = LeafGradients(
        stage.learned.gradients[tree],
        stage.learned.hessians[tree],
        stage.column_weights,
        stage.ones,
        stage.learned.whole,
        stage.l2,
    )
    newton_leaves(
        0, 1, fields, leaves, rows, learned, scratch.numbers, scratch.sums, grown.values[tree]
    )
    _keep_bounds(tree, leaves, growth.constraints, grown.bounds)


@inner
def _keep_bounds(tree, leaves, constraints, bounds):
    """Keep the bounds of the values of leaves, where there are any."""
    if constraints is not None and bounds.shape[1] > 0:
        for leaf in range(leaves.shape[0]):
            for side in range(2):
                bounds[tree, leaf, side] = constraints.bounds[leaves[leaf], side, 0]


@inner
def _keep_nodes(tree, n_nodes, fields, categories, grown):
    """Keep what leads other rows to their leaves."""
    for node in range(min(n_nodes, grown.nodes.shape[1])):
        for field in range(fields.shape[1]):
            grown.nodes[tree, node, field] = fields[node, field]
    if categories is not None:
        for node in range(min(n_nodes, grown.left_sets.shape[1])):
            for word in range(grown.left_sets.shape[2]):
                grown.left_sets[tree, node, word] = categories.left_sets[node, word]


@compiled
def grow_separate_trees(alone, stage, growth, scratch, summed, grown, leaf_of_row):
    """Grow trees until all have been taken.

    Parameters
    ----------
    alone : Threads
        One thread: each tree is grown by the thread that has taken it.
    stage : SeparateTrees
    growth : Growth
        Of the thread, for any tree: gradients, rows, root and columns are those of each tree.
    scratch : StageScratch
    summed : (1, 512) float64 or None
        Working memory of symmetric trees; ``None`` for trees that are grown best first.
    grown : GrownTrees
    leaf_of_row : (n_trees, n) int32
        Written at the rows to learn from.

    Notes
    -----
    Cost O(m d log(leaves)) for each tree, as :func:`~hilboost.backends.trees.grow.grow`.
    """
    while True:
        tree = atomic_add(stage.next_tree, 0, 1)
        if tree >= grown.sizes.shape[0]:
            return
        rounding = _rounding_of(tree, stage, growth.buffers.flags.shape[0], scratch)
        packing = _packing_of(stage, rounding, growth.rules.packing)
        grown.steps[tree] = packing.gradient_step
        _start(tree, stage, packing, rounding, growth)
        own = _with_packing(packing, growth)
        if summed is not None:
            grow_levels(alone, own, summed)
        else:
            # The steps of :func:`~hilboost.backends.trees.grow.grow`: a call of it would let the
            # compiler optimize all of them once more.
            while True:
                divide_step(alone, own)
                sum_step(alone, own)
                decide_step(alone, own)
                if own.nodes.control[NODE] < 0:
                    break
        n_leaves = _write_nodes(tree, stage, growth.nodes, growth.rules.is_category, scratch, grown)
        _write_leaves(tree, n_leaves, stage, growth, scratch, grown, leaf_of_row[tree])
        n_nodes = growth.nodes.control[N_NODES]
        _keep_nodes(tree, n_nodes, growth.nodes.fields, growth.categories, grown)


@compiled
def find_other_leaves(thread, n_threads, table, is_category, walk, grown, leaf_of_row):
    """Find the leaves of the rows that trees have not learned from, each thread for its trees.

    table : BinTable; is_category : (d,) uint8, or (0,) without categories
    walk : WalkScratch, of the thread; grown : GrownTrees; leaf_of_row : (n_trees, n) int32
    """
    for tree in range(thread, grown.sizes.shape[0], n_threads):
        n_nodes = grown.sizes[tree]
        leaf_number = grown.trees.leaf_number[tree][:n_nodes]
        order_leaves(grown.trees.child[tree][:n_nodes], leaf_number, walk)
        nodes, in_order = grown.nodes[tree][:n_nodes], walk.in_order[: (n_nodes + 1) // 2]
        binned = BinnedTree(nodes, leaf_number, walk.masks[:n_nodes], in_order)
        categories = CategorySplits(is_category, grown.left_sets[tree])
        found = leaf_of_row[tree]
        binned_leaves(table, binned, categories, walk.words, 0, found.shape[0], found)
