"""Inputs of growth, and the steps that all orders of growth have in common."""

from typing import NamedTuple

import numpy as np
from numba import int64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.batch import (
    BOTH,
    N_DIVIDED,
    N_PAIRS,
    N_SPLITS,
    N_SUMMED,
    N_TREE,
    NEITHER,
    ONLY_SUMMED,
    Batch,
    start_step,
)
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.histogram import Histograms
from hilboost.engine.ops.cpu.joint_columns import JointColumns
from hilboost.engine.ops.cpu.nodes import (
    BIN,
    COLUMN,
    DEPTH,
    LEFT,
    N_NODES,
    N_ROWS,
    RIGHT,
    ROOT_GIVEN,
    SLOT,
    SPARE,
    NodeStore,
    draw_columns,
    open_children,
)
from hilboost.engine.ops.cpu.partition import RowBuffers
from hilboost.engine.ops.cpu.split_constraints import (
    SplitConstraints,
    bound_children,
    permit_columns,
)
from hilboost.engine.ops.cpu.split_search import NodeSums, SearchScratch, SplitRules

NANOSECONDS_PER_CELL = 3
"""That the search of a bin of both children takes, roughly."""


class GrowthLimits(NamedTuple):
    """Where growth ends."""

    max_leaves: int
    max_depth: int
    min_rows: int  # A node of fewer rows cannot be split
    columns_per_node: int  # so many are drawn for every node; 0 where all are searched
    # the children of a node of so few rows are searched without histograms
    few_rows: int


class Growth(NamedTuple):
    """All that one tree is grown from, and all that growth writes."""

    table: BinTable
    # (n, width) int64 or None: fixed-point gradients in the table's row order; ``None`` with one
    # channel, where ``buffers.ordered`` holds them.  The width is the number of channels, or one
    # less if the last one counts one for each row.
    packed: NDArray[np.int64] | None
    rules: SplitRules
    limits: GrowthLimits
    # ``None`` where all columns are numbers without constraints
    constraints: SplitConstraints | None
    # with an open root; ``max_leaves`` leaves need room for ``2 * max_leaves - 1`` nodes, and
    # batches of several nodes for more
    nodes: NodeStore
    sums: NodeSums  # ``totals[0]`` filled
    categories: CategorySplits | None  # ``None`` without constraints
    buffers: RowBuffers  # ``rows[0]``, and ``ordered[0]`` if there, filled
    histograms: Histograms
    scratch: SearchScratch  # ``permitted`` and ``drawn`` filled with the allowed columns
    joint: JointColumns  # ``NO_GROUPS`` where columns have many values, and with several channels
    batch: Batch  # before the first step


@inner
def _constrain(node, nodes, totals, rules, constraints, permitted):
    """Constraints that the children of a split inherit: bounds and allowed columns."""
    if constraints is None:
        return
    if rules.monotonic.shape[0] > 0:
        column = nodes.fields[node, COLUMN]
        direction = rules.monotonic[column]
        if nodes.fields[node, BIN] == rules.n_values[column] - 1:
            direction = 0  # missing values have no place in the order
        bound_children(node, direction, nodes, totals, rules, constraints.bounds)
    if constraints.group_start.shape[0] > 0:
        permit_columns(node, nodes, constraints, permitted)


@compiled
def inherit(node, growth, permitted):
    """Give the children of a split their sums and constraints.

    growth : Growth; permitted : (d,) uint8, columns of the node, and then of its children
    """
    nodes, totals, left_totals = growth.nodes, growth.sums.totals, growth.sums.left_totals
    left, right = nodes.fields[node, LEFT], nodes.fields[node, RIGHT]
    for c in range(totals.shape[1]):
        totals[left, c] = left_totals[node, c]
        totals[right, c] = totals[node, c] - left_totals[node, c]
    _constrain(node, nodes, totals, growth.rules, growth.constraints, permitted)


@inner
def keeps_parents(growth):
    """Whether every leaf has a histogram, so that that of a larger child is a difference."""
    return growth.histograms.slots.shape[0] >= growth.limits.max_leaves


@inner
def _add_pair(small, big, mode, growth):
    """Note two nodes to be searched, or the root twice, and which of them are summed."""
    batch, fields = growth.batch, growth.nodes.fields
    pair, n_summed = batch.state[N_PAIRS], batch.state[N_SUMMED]
    batch.pairs[pair, 0], batch.pairs[pair, 1], batch.modes[pair] = small, big, mode
    batch.first_sum[pair] = n_summed
    given = fields[small, DEPTH] == 0 and growth.nodes.control[ROOT_GIVEN] != 0
    if fields[small, SLOT] >= 0 and not given:
        batch.summed[n_summed] = small
        n_summed += 1
        if small != big and not keeps_parents(growth):
            batch.summed[n_summed] = big
            n_summed += 1
    batch.first_sum[pair + 1] = n_summed
    batch.state[N_PAIRS], batch.state[N_SUMMED] = pair + 1, n_summed


@inner
def _draw(pair, small, big, nodes, limits, constraints, scratch):
    """Columns to search, where these differ from node to node."""
    permitted, drawn = scratch.permitted, scratch.drawn[pair]
    if limits.columns_per_node > 0:
        if nodes.fields[small, N_ROWS] >= limits.min_rows:
            draw_columns(permitted, limits.columns_per_node, nodes.seeds[small], drawn[0])
        if small != big:
            draw_columns(permitted, limits.columns_per_node, nodes.seeds[big], drawn[1])
    elif constraints is not None:
        for f in range(permitted.shape[0]):
            drawn[0, f], drawn[1, f] = permitted[f], permitted[f]


@inner
def begin_with_root(growth):
    """Begin with the root, which is summed if it may be split."""
    batch, limits, fields = growth.batch, growth.limits, growth.nodes.fields
    for i in range(batch.is_split.shape[0]):
        batch.is_split[i] = 0
    batch.used[:] = 0
    batch.state[:] = 0
    batch.state[N_TREE], batch.tree[0] = 1, 0
    if limits.max_leaves > 1 and limits.max_depth > 0 and fields[0, N_ROWS] >= limits.min_rows:
        fields[0, SLOT] = 0 if fields[0, N_ROWS] > limits.few_rows else -1
        root = int64(0)  # not a literal, whose type is compiled for again
        _add_pair(root, root, int64(BOTH), growth)
        _draw(root, root, root, growth.nodes, limits, growth.constraints, growth.scratch)


@inner
def _mode_of(small, big, growth):
    """Whether the children of a split are searched, only summed, or neither."""
    fields, limits, control = growth.nodes.fields, growth.limits, growth.nodes.control
    if (
        growth.batch.state[N_SPLITS] + 2 < limits.max_leaves
        and fields[small, DEPTH] < limits.max_depth
        and fields[big, N_ROWS] >= limits.min_rows
    ):
        return BOTH
    if fields[small, N_ROWS] <= control[SPARE]:
        control[SPARE] -= fields[small, N_ROWS]
        return ONLY_SUMMED
    return NEITHER


@inner
def open_batch(growth):
    """Open the children of the nodes that were divided; note which are summed and searched."""
    keep_apart()
    nodes, batch, limits = growth.nodes, growth.batch, growth.limits
    fields, control = nodes.fields, nodes.control
    batch.state[N_PAIRS] = batch.state[N_SUMMED] = 0
    for i in range(batch.state[N_DIVIDED]):
        node = batch.divided[i]
        open_children(node, batch.n_left_here[i], batch.n_left[i], nodes)
        inherit(node, growth, growth.scratch.permitted)
        small, big = fields[node, LEFT], fields[node, RIGHT]
        if fields[big, N_ROWS] < fields[small, N_ROWS]:
            small, big = big, small
        mode, pair = _mode_of(small, big, growth), batch.state[N_PAIRS]
        if mode == NEITHER:
            continue
        if fields[node, N_ROWS] <= limits.few_rows:
            pass  # without slots
        elif keeps_parents(growth):
            fields[small, SLOT] = (control[N_NODES] - 1) // 2
            fields[big, SLOT] = fields[node, SLOT]
        else:
            fields[small, SLOT], fields[big, SLOT] = 0, 1
        _add_pair(small, big, mode, growth)
        _draw(pair, small, big, nodes, limits, growth.constraints, growth.scratch)


@inner
def cut_columns(n_pairs, step, growth):
    """Cut the columns of the nodes that are searched into tasks."""
    batch = growth.batch
    n_groups = batch.gains.shape[0] // batch.pairs.shape[0]
    for i in range(n_pairs):
        batch.first_task[i + 1] = (i + 1) * n_groups
    n_cells = growth.histograms.slots.shape[1]
    start_step(step, n_pairs, NANOSECONDS_PER_CELL * n_cells * n_pairs, batch)
