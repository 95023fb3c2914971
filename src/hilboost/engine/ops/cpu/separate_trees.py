"""The steps of one of the trees of a stage besides its growth: gradients, leaves, values.

There is one tree for each output, which depends on its own gradients alone.  See
:mod:`hilboost.engine.ops.cpu.grow_stages`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import inner
from hilboost.backends.exact_sums import clear_sum, merge_sums, rounded_sum
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.batch import BEGIN_TREE, STEP, Batch
from hilboost.engine.ops.cpu.binned_leaves import OtherRows, find_leaves
from hilboost.engine.ops.cpu.fixed_point import (
    Layout,
    Rounding,
    WeightedGradients,
    absolute_sums,
    factor_of,
    pack_gradients,
    pack_one,
    packed_sums,
)
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.leaves import (
    LeafRule,
    RowsOfLeaves,
    mark_leaves,
    part_of_table,
    round_values,
    steps_of_totals,
    sum_leaves,
    unit_of_outputs,
    value_of_sums,
)
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, N_NODES, open_root, write_tree
from hilboost.engine.ops.cpu.row_order import arrange_blocks
from hilboost.engine.ops.cpu.sync import Threads


class TreeDraws(NamedTuple):
    """Random draws for each of several trees."""

    salts: NDArray[np.uint64]  # (n_trees,) uint64: of random rounding; 0 without
    seeds: NDArray[np.int64]  # (n_trees,) int64: of the columns of nodes
    allowed: NDArray[np.uint8]  # (n_trees, d) uint8: columns that a tree may use


class SeparateTrees(NamedTuple):
    """Inputs from which the trees of one or several stages are grown."""

    # of one stage, with a first axis of trees; each stage of a series may draw the rows
    learned: WeightedGradients
    # (n,) uint16: which row of its block is at each position of a sorted table; (0,) otherwise
    offsets: NDArray[np.uint16]
    layout: Layout  # of all trees but for the factors and the salt
    draws: TreeDraws  # for all trees of all stages
    thresholds: NDArray[np.float64]  # (d, n_cuts) float64
    rate: float  # factor of the leaf values
    fewest_rounded: float  # weight of the rows from which on leaf values are rounded
    in_turn: bool  # whether trees grow one after the other, each on all threads
    n_begun: NDArray[np.int64]  # (1,) int64: how many trees have been begun
    batch: Batch  # the step that is taken between trees


class StageScratch(NamedTuple):
    """Memory of the threads that grow a tree."""

    numbers: NDArray[np.float64]  # (n_threads, 2, CHUNK) float64
    sums: NDArray[np.int64]  # (2, n_leaves, 1, 5) int64
    magnitudes: NDArray[np.int64]  # (n_threads, 3, 5) int64: sums of some rows
    packed: NDArray[np.int64]  # (n_threads, 2, n_channels) int64: sums of some rows, and of a task
    of_nodes: NDArray[np.float64]  # (n_nodes,) float64
    # (n_threads, k, width) int64: packed gradients of the rows of a block; k = 0 unless sorted
    of_block: NDArray[np.int64]


class TreeMemory(NamedTuple):
    """Inputs and memory of one thread, or of all, to grow one tree after the other."""

    alone: Threads  # this thread, while the others grow other trees
    growth: Growth  # each tree replaces its gradients, their steps, rows, root and columns
    rule: LeafRule
    unit: NDArray[np.float64]  # (1,) float64: of leaf values
    scratch: StageScratch
    others: OtherRows  # with an axis of threads in front
    # (n_threads, 512) float64: of symmetric trees; ``None`` for trees that are grown best first
    summed: NDArray[np.float64] | None


@inner
def _learned_of(tree, stage):
    """Gradients, hessians and weights of the rows that a tree learns from."""
    gradients, hessians, weights, rows, whole, logistic = stage.learned
    return WeightedGradients(gradients[tree], hessians[tree], weights, rows, whole, logistic)


@inner
def clear_sums(scratch):
    """Clear the sums over the rows of a tree."""
    for thread in range(scratch.magnitudes.shape[0]):
        for k in range(scratch.magnitudes.shape[1]):
            clear_sum(scratch.magnitudes[thread, k])
        for c in range(scratch.packed.shape[2]):
            scratch.packed[thread, 0, c] = 0


@inner
def measure(tree, begin, end, thread, stage, scratch):
    """Add up the magnitudes of the gradients of some rows."""
    keep_apart()
    numbers, sums = scratch.numbers[thread], scratch.magnitudes[thread]
    absolute_sums(_learned_of(tree, stage), begin, end, numbers, sums)


@inner
def choose_steps(stage, memory):
    """Choose the steps of the fixed-point numbers of a tree, by the sums of their magnitudes."""
    keep_apart()
    sums, steps = memory.scratch.magnitudes, memory.growth.rules.packing.steps
    for thread in range(1, sums.shape[0]):
        merge_sums(sums[0], sums[thread])
    steps[0] = 1.0 / factor_of(rounded_sum(sums[0, 0]), stage.layout.gradient_room)
    if stage.learned.hessians.shape[2] > 0:
        steps[1] = 1.0 / factor_of(rounded_sum(sums[0, 1]), stage.layout.hessian_room)


@inner
def _rounding_of(place, stage, steps):
    """How the gradients of a tree become integers."""
    of_hessian = 1.0
    if stage.learned.hessians.shape[2] > 0:
        of_hessian = 1.0 / steps[1]
    return Rounding(
        1.0 / steps[0],
        of_hessian,
        stage.layout.rounding.of_count,
        stage.layout.rounding.whole,
        stage.draws.salts[place],
        stage.layout.rounding.first_row,
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
def pack(tree, place, begin, end, thread, stage, memory):
    """Pack the gradients of some rows of a tree, and add them up."""
    keep_apart()
    growth, learned, sums = memory.growth, _learned_of(tree, stage), memory.scratch.packed[thread]
    packing = growth.rules.packing
    rounding = _rounding_of(place, stage, packing.steps)
    rows, ordered = growth.buffers.rows[0], growth.buffers.ordered[0]
    for i in range(begin, end):
        rows[i] = learned.rows[i] if learned.rows.shape[0] > 0 else i
    if sums.shape[1] == 1 and learned.rows.shape[0] == 0 and learned.weights.shape[0] == 0:
        pack_one(learned, packing, rounding, begin, end, ordered)
    else:
        pack_gradients(learned, packing, rounding, begin, end, growth.packed, ordered)
    packed_sums(growth.packed, ordered[begin:end], rows[begin:end], sums[1])
    for c in range(sums.shape[1]):
        sums[0, c] += sums[1, c]
    if stage.offsets.shape[0] > 0:
        scratch = memory.scratch.of_block[thread]
        arrange_blocks(begin, end, stage.offsets, growth.packed, ordered, scratch)


@inner
def open_tree(place, stage, memory):
    """Open the root of a tree whose gradients have been packed."""
    keep_apart()
    growth, sums = memory.growth, memory.scratch.packed
    for c in range(sums.shape[2]):
        growth.sums.totals[0, c] = 0
        for thread in range(sums.shape[0]):
            growth.sums.totals[0, c] += sums[thread, 0, c]
    open_root(growth.nodes, growth.buffers.flags.shape[0], stage.draws.seeds[place])
    growth.batch.state[STEP] = BEGIN_TREE
    _allow(stage.draws.allowed[place], growth.constraints, growth.scratch)


@inner
def write_nodes(tree, place, stage, memory, grown, leaf_of_row):
    """Write the tree itself, and mark rows that it has not learned from."""
    keep_apart()
    growth, scratch = memory.growth, memory.scratch
    nodes, is_category = growth.nodes, growth.rules.is_category
    fields, n_nodes = nodes.fields, nodes.control[N_NODES]
    if growth.buffers.flags.shape[0] < leaf_of_row.shape[1]:
        for i in range(leaf_of_row.shape[1]):
            leaf_of_row[tree, i] = -1
    for node in range(n_nodes):
        scratch.of_nodes[node] = stage.thresholds[fields[node, COLUMN], fields[node, BIN]]
    grown.sizes[place] = n_nodes
    grown.depths[place] = write_tree(
        fields,
        n_nodes,
        nodes.gains,
        scratch.of_nodes,
        is_category,
        grown.trees,
        place,
    )


@inner
def _rows_of_leaves(place, growth, grown):
    leaves = grown.trees.leaves[place][: (growth.nodes.control[N_NODES] + 1) // 2]
    return RowsOfLeaves(growth.nodes.fields, leaves, growth.buffers.rows)


@inner
def mark_rows(place, part, n_parts, stage, memory, grown, leaf_of_row):
    """Write the leaf of the rows in one part of the table."""
    keep_apart()
    growth, own = memory.growth, leaf_of_row[place % leaf_of_row.shape[0]]
    mark_leaves(part, n_parts, _rows_of_leaves(place, growth, grown), stage.offsets, own, None)
    if growth.buffers.flags.shape[0] < own.shape[0]:
        rows, flags, ranges, nothing = memory.others
        others = OtherRows(rows[part], flags[part], ranges[part], nothing)
        here, numbers = part_of_table(part, n_parts, own.shape[0]), grown.trees.leaf_number[place]
        find_leaves(growth.table, growth.nodes, growth.categories, numbers, others, here, own)


@inner
def value_leaves(tree, place, part, n_parts, stage, memory, grown):
    """Write the values of some of the leaves."""
    keep_apart()
    scratch = memory.scratch
    learned = _learned_of(tree, stage)
    of_leaves, values = _rows_of_leaves(place, memory.growth, grown), grown.values[place]
    rule, sums = memory.rule, scratch.sums
    sum_leaves(part, n_parts, of_leaves, learned, scratch.numbers, sums)
    for leaf in range(part, of_leaves.leaves.shape[0], n_parts):
        values[leaf, 0] = value_of_sums(leaf, of_leaves, learned, rule, sums)


@inner
def values_are_known(place, stage, memory, grown):
    """Write the values of the leaves if the packed sums tell them; whether they do."""
    keep_apart()
    leaves, rule = _rows_of_leaves(place, memory.growth, grown).leaves, memory.rule
    memory.unit[0] = unit_of_outputs(rule.packing, rule.totals[0, 0], stage.fewest_rounded)
    values = grown.values[place][: leaves.shape[0]]
    return steps_of_totals(rule, leaves, memory.unit[0], values)


@inner
def _keep_sets(place, n_nodes, categories, grown):
    """Keep which levels go left."""
    if categories is not None:
        for node in range(min(n_nodes, grown.left_sets.shape[1])):
            for word in range(grown.left_sets.shape[2]):
                grown.left_sets[place, node, word] = categories.left_sets[node, word]


@inner
def end_tree(place, stage, memory, grown):
    """Round the values of the leaves, and keep the sets of levels."""
    keep_apart()
    growth = memory.growth
    leaves = _rows_of_leaves(place, growth, grown).leaves
    values = grown.values[place][: leaves.shape[0]]
    round_values(memory.unit[0], stage.rate, values, memory.scratch.of_nodes[: leaves.shape[0]])
    _keep_sets(place, grown.sizes[place], growth.categories, grown)
