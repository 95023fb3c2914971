"""The separate trees of a stage, one for each output: one compiled call in every thread.

A thread takes the next tree that no other has taken, and does all that concerns it: packing of the
gradients, growth, leaf values.  Between the trees there is no Python::

    thread 0   tree 0 -> tree 2 -> tree 3 -> ...
    thread 1   tree 1 ------> tree 4 -> ...

Each tree depends on its own gradients alone, and not on the thread that grows it.  Several stages
in a row can be grown in one call, see :mod:`hilboost.engine.ops.cpu.stage_series`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.exact_sums import clear_sum, rounded_sum
from hilboost.backends.intrinsics import atomic_add, keep_apart
from hilboost.engine.ops.cpu.batch import BEGIN_TREE, STEP
from hilboost.engine.ops.cpu.binned_leaves import (
    BinnedTree,
    WalkScratch,
    binned_leaves,
    order_leaves,
)
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.column_splits import Packing
from hilboost.engine.ops.cpu.fixed_point import (
    Rounding,
    TreeGradients,
    WeightedGradients,
    absolute_sums,
    factor_of,
    pack_gradients,
    pack_one,
    packed_sums,
)
from hilboost.engine.ops.cpu.grow import take_steps
from hilboost.engine.ops.cpu.grown_tree import GrownTree, write_tree
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.histogram import n_channels_of
from hilboost.engine.ops.cpu.leaves import LeafGradients, RowsOfLeaves, mark_leaves, newton_leaves
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, N_NODES, open_root
from hilboost.engine.ops.cpu.split_search import SplitRules
from hilboost.engine.ops.cpu.stage_series import (
    add_outputs,
    begin,
    begin_stage,
    end_stage,
    n_stages_of,
)
from hilboost.engine.ops.cpu.sync import Threads


class SeparateTrees(NamedTuple):
    """Inputs from which the trees of one or several stages are grown."""

    learned: TreeGradients  # of one stage
    weights: NDArray[np.float64]  # (n,) float64: (0,) for ones
    column_weights: NDArray[np.float64]  # (n, 1) or (0, 1) float64: the same
    ones: NDArray[np.float64]  # (0, 1) float64
    # (m,) uint32: the rows to learn from, which each stage of a series draws; (0,) for all
    rows: NDArray[np.uint32]
    rounding: Rounding  # of all trees but for the factors and the salt
    gradient_room: float  # the largest sums of magnitudes, in steps
    hessian_room: float  # the largest sums of magnitudes, in steps
    salts: NDArray[np.uint64]  # (n_trees,) uint64: of all trees of all stages, as the next two
    seeds: NDArray[np.int64]  # (n_trees,) int64: of the draws of columns
    allowed: NDArray[np.uint8]  # (n_trees, d) uint8: columns that a tree may use
    thresholds: NDArray[np.float64]  # (d, n_cuts) float64
    l2: float  # added to the hessian of a leaf
    # (1,) int64: the number of trees of the stage that have been taken
    next_tree: NDArray[np.int64]


class GrownTrees(NamedTuple):
    """The trees of one stage after the other."""

    trees: GrownTree  # with a first axis (n_trees,)
    sizes: NDArray[np.int64]  # (n_trees,) int64: numbers of nodes, and depths
    depths: NDArray[np.int64]  # (n_trees,) int64: numbers of nodes, and depths
    left_sets: NDArray[np.uint64]  # (n_trees, n_sets, SET_WORDS) uint64
    values: NDArray[np.float64]  # (n_trees, n_leaves, 1) float64: newton steps
    steps: NDArray[np.float64]  # (n_trees,) float64: of the fixed-point gradients
    # (n_trees, n_leaves, 2) float64: of the values; (n_trees, 0, 2) without constraints
    bounds: NDArray[np.float64]


class StageScratch(NamedTuple):
    """Memory of one thread."""

    numbers: NDArray[np.float64]  # (1, 2, CHUNK) float64
    sums: NDArray[np.int64]  # (2, n_leaves, 1, 5) int64
    totals: NDArray[np.int64]  # (3, 5) int64
    thresholds: NDArray[np.float64]  # (n_nodes,) float64


class TreeMemory(NamedTuple):
    """Inputs and memory of one thread, which grows one tree after the other."""

    alone: Threads  # each tree is grown by the thread that has taken it
    growth: Growth  # each tree replaces its gradients, rows, root and columns
    scratch: StageScratch
    # for rows that trees have not learned from; ``None`` if there are none
    walk: WalkScratch | None
    # (1, 512) float64: of symmetric trees; ``None`` for trees that are grown best first
    summed: NDArray[np.float64] | None


@inner
def _rounding_of(tree, place, stage, n_learned, scratch):
    """How the gradients of a tree become integers, by the sums of their magnitudes."""
    keep_apart()
    gradients, hessians = stage.learned.gradients[tree], stage.learned.hessians[tree]
    logistic = stage.learned.logistic
    learned = WeightedGradients(gradients, hessians, stage.weights, stage.rows, logistic)
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
        stage.salts[place],
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
def _allow(allowed, constraints, scratch):
    """Let a tree use some columns."""
    for column in range(allowed.shape[0]):
        scratch.permitted[column] = allowed[column]
        for pair in range(scratch.drawn.shape[0]):
            scratch.drawn[pair, 0, column] = scratch.drawn[pair, 1, column] = allowed[column]
        if constraints is not None:
            constraints.allowed[column] = allowed[column]


@inner
def _start(tree, place, stage, packing, rounding, growth):
    """Pack the gradients of a tree and open its root."""
    keep_apart()
    gradients, hessians = stage.learned.gradients[tree], stage.learned.hessians[tree]
    logistic = stage.learned.logistic
    learned = WeightedGradients(gradients, hessians, stage.weights, stage.rows, logistic)
    rows, ordered = growth.buffers.rows[0], growth.buffers.ordered[0]
    m = growth.buffers.flags.shape[0]
    for i in range(m):
        rows[i] = stage.rows[i] if stage.rows.shape[0] > 0 else i
    n_channels = n_channels_of(growth)
    if n_channels == 1 and stage.rows.shape[0] == 0 and stage.weights.shape[0] == 0:
        pack_one(learned, packing, rounding, 0, m, ordered)
    else:
        pack_gradients(learned, packing, rounding, 0, m, growth.packed, ordered)
    packed_sums(growth.packed, ordered[:m], rows[:m], growth.sums.totals[0])
    open_root(growth.nodes, m, stage.seeds[place])
    growth.batch.state[STEP] = BEGIN_TREE
    _allow(stage.allowed[place], growth.constraints, growth.scratch)


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
        growth.batch,
    )


@inner
def _write_nodes(place, stage, nodes, is_category, scratch, grown):
    """Write the tree itself, and return how many leaves it has."""
    keep_apart()
    fields, n_nodes = nodes.fields, nodes.control[N_NODES]
    for node in range(n_nodes):
        scratch.thresholds[node] = stage.thresholds[fields[node, COLUMN], fields[node, BIN]]
    trees = grown.trees
    grown.sizes[place] = n_nodes
    grown.depths[place] = write_tree(
        fields,
        n_nodes,
        nodes.gains,
        scratch.thresholds,
        is_category,
        GrownTree(
            trees.column[place],
            trees.threshold[place],
            trees.missing_right[place],
            trees.child[place],
            trees.gain[place],
            trees.leaf_number[place],
            trees.leaves[place],
        ),
    )
    return (n_nodes + 1) // 2


@inner
def _write_leaves(tree, place, n_leaves, stage, memory, grown, leaf_of_row):
    """Write the leaf of every row to learn from, and the values of the leaves."""
    keep_apart()
    growth, scratch = memory.growth, memory.scratch
    leaves = grown.trees.leaves[place][:n_leaves]
    if growth.buffers.flags.shape[0] < leaf_of_row.shape[0]:
        for i in range(leaf_of_row.shape[0]):
            leaf_of_row[i] = -1
    of_leaves = RowsOfLeaves(growth.nodes.fields, leaves, growth.buffers.rows)
    mark_leaves(0, 1, of_leaves, None, leaf_of_row, None)
    learned = LeafGradients(
        stage.learned.gradients[tree],
        stage.learned.hessians[tree],
        stage.column_weights,
        stage.ones,
        stage.learned.whole,
        stage.l2,
        stage.learned.logistic,
    )
    values = grown.values[place]
    newton_leaves(0, 1, of_leaves, learned, scratch.numbers, scratch.sums, values)
    _keep_bounds(place, leaves, growth.constraints, grown.bounds)


@inner
def _keep_bounds(place, leaves, constraints, bounds):
    """Keep the bounds of the values of leaves, where there are any."""
    if constraints is not None and bounds.shape[1] > 0:
        for leaf in range(leaves.shape[0]):
            for side in range(2):
                bounds[place, leaf, side] = constraints.bounds[leaves[leaf], side, 0]


@inner
def _keep_sets(place, n_nodes, categories, grown):
    """Keep which levels go left."""
    if categories is not None:
        for node in range(min(n_nodes, grown.left_sets.shape[1])):
            for word in range(grown.left_sets.shape[2]):
                grown.left_sets[place, node, word] = categories.left_sets[node, word]


@inner
def _find_other_leaves(place, growth, walk, grown, leaf_of_row):
    """Find the leaves of the rows that the last tree has not learned from, if there are any."""
    keep_apart()
    if walk is not None:
        n, n_nodes = leaf_of_row.shape[0], grown.sizes[place]
        leaf_number = grown.trees.leaf_number[place][:n_nodes]
        order_leaves(grown.trees.child[place][:n_nodes], leaf_number, walk)
        nodes, in_order = growth.nodes.fields[:n_nodes], walk.in_order[: (n_nodes + 1) // 2]
        tree = BinnedTree(nodes, leaf_number, walk.masks[:n_nodes], in_order)
        categories = CategorySplits(growth.rules.is_category, grown.left_sets[place])
        binned_leaves(growth.table, tree, categories, walk.words, 0, n, leaf_of_row)


@inner
def _grow_trees(number, series, stage, memory, grown, leaf_of_row):
    """Grow trees of a stage until all have been taken."""
    keep_apart()
    growth, scratch = memory.growth, memory.scratch
    n_outputs = leaf_of_row.shape[0]
    while True:
        tree = atomic_add(stage.next_tree, 0, 1)
        if tree >= n_outputs:
            return
        place = number * n_outputs + tree
        rounding = _rounding_of(tree, place, stage, growth.buffers.flags.shape[0], scratch)
        packing = _packing_of(stage, rounding, growth.rules.packing)
        grown.steps[place] = packing.gradient_step
        _start(tree, place, stage, packing, rounding, growth)
        take_steps(memory.alone, _with_packing(packing, growth), memory.summed)
        n_leaves = _write_nodes(
            place, stage, growth.nodes, growth.rules.is_category, scratch, grown
        )
        found = leaf_of_row[tree]
        _write_leaves(tree, place, n_leaves, stage, memory, grown, found)
        _keep_sets(place, grown.sizes[place], growth.categories, grown)
        _find_other_leaves(place, growth, memory.walk, grown, found)
        add_outputs(tree, series, grown.values[place], found)


@compiled
def grow_separate_trees(team, series, stage, memory, grown, leaf_of_row):
    """Grow trees until all of the stage have been taken, or of a series of stages.

    ``team``: this thread, and those that grow other trees of the stages. ``series``: ``None`` for
    one stage, from given gradients. ``memory``: TreeMemory of this thread. ``leaf_of_row``:
    (n_outputs, n) int32: written.

    Notes
    -----
    Cost O(m d log(leaves)) for each tree, as :func:`~hilboost.engine.ops.cpu.grow.grow`.
    """
    begin(team, series)
    for number in range(n_stages_of(series)):
        if not begin_stage(team, number, series, stage.rows, stage.next_tree):
            return
        _grow_trees(number, series, stage, memory, grown, leaf_of_row)
        if not end_stage(team, number, series, stage.weights, stage.learned.whole):
            return
