"""Best-first growth of one tree, in steps that a team of threads runs together.

Every thread executes the whole function.  Between barriers each does its share: a range of rows
(partition, histograms of large nodes), of words (histograms of small nodes) or of columns (search);
thread 0 alone takes decisions.  Integer histograms and fixed tie rules make the tree the same for
any number of threads.  Nothing is allocated here: an exception in one thread would leave the others
waiting at a barrier.

One node is split in three steps; all state lies in the records::

    divide   rows of the node to be split      -> control[N_LEFT], rows that go left
    sum      open its children, sum their rows -> their histograms
    decide   search, settle, choose the next   -> control[NODE], -1 at the end

Other orders of growth, and rows that are divided among machines, take the same steps for batches of
nodes: see :mod:`hilboost.engine.driver`.

Inputs that few trees need are ``None`` in all others: ``constraints``, ``categories``, and
``packed`` where there is one channel.  The compiler then leaves out the code that reads them, which
shortens the first fit.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.draws import draw_columns
from hilboost.engine.ops.cpu.histogram import Histograms, n_channels_of, own_cells, subtract_sibling
from hilboost.engine.ops.cpu.joint_columns import JointColumns
from hilboost.engine.ops.cpu.node_histogram import fill_histogram
from hilboost.engine.ops.cpu.nodes import (
    BIG,
    BIN,
    COLUMN,
    DEPTH,
    LEFT,
    N_LEFT,
    N_LEFT_HERE,
    N_NODES,
    N_ROWS,
    NODE,
    ONLY_SUMMED,
    RIGHT,
    ROOT_GIVEN,
    SEARCHED,
    SLOT,
    SMALL,
    SPARE,
    NodeStore,
    choose_node,
    open_children,
)
from hilboost.engine.ops.cpu.partition import RowBuffers, divide_rows
from hilboost.engine.ops.cpu.split_constraints import (
    SplitConstraints,
    bound_children,
    permit_columns,
)
from hilboost.engine.ops.cpu.split_search import (
    NodeSums,
    SearchScratch,
    SplitRules,
    best_of_threads,
    scan_scratch,
    search_columns,
    settle_split,
)
from hilboost.engine.ops.cpu.sync import ABORT, barrier, share


class GrowthLimits(NamedTuple):
    """Where growth ends."""

    max_leaves: int
    max_depth: int
    min_rows: int  # A node of fewer rows cannot be split
    columns_per_node: int  # so many are drawn for every node; 0 where all are searched
    in_turn: bool  # nodes are split as they come and not by priority


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
    # with an open root; ``max_leaves`` leaves need room for ``2 * max_leaves - 1`` nodes
    nodes: NodeStore
    sums: NodeSums  # ``totals[0]`` filled
    categories: CategorySplits | None  # ``None`` where all columns are numbers
    buffers: RowBuffers  # ``rows``, and ``ordered`` if there, filled but for the spare memory
    histograms: Histograms
    scratch: SearchScratch  # ``permitted`` and ``drawn`` filled with the allowed columns
    joint: JointColumns | None  # ``None`` where columns have many values, and with several channels


@inner
def divide_step(threads, growth):
    """Divide the rows of the node to be split, where there is one."""
    nodes = growth.nodes
    node = nodes.control[NODE]
    if node >= 0:
        divide_rows(threads, node, growth.table, nodes, growth.categories, growth.buffers)
        if threads.number == 0:
            nodes.control[N_LEFT] = nodes.control[N_LEFT_HERE]


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
        bound_children(
            node,
            direction,
            constraints.bounds.shape[2],
            nodes,
            totals,
            rules.packing,
            rules.limits.l2,
            constraints.bounds,
        )
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
def _take_slots(node, nodes, keep_parents):
    """The larger child inherits its parent's histogram, from which the smaller one is taken."""
    fields, control = nodes.fields, nodes.control
    small, big = control[SMALL], control[BIG]
    if keep_parents:
        fields[small, SLOT] = (control[N_NODES] - 1) // 2
        fields[big, SLOT] = fields[node, SLOT] if small != big else fields[small, SLOT]
    else:
        fields[small, SLOT], fields[big, SLOT] = 0, np.int64(small != big)


@inner
def _draw_columns(small, big, seeds, limits, constraints, scratch):
    """Columns to search, where these differ from node to node."""
    permitted, drawn = scratch.permitted, scratch.drawn
    if limits.columns_per_node > 0:
        draw_columns(permitted, limits.columns_per_node, seeds[small], drawn[0])
        draw_columns(permitted, limits.columns_per_node, seeds[big], drawn[1])
    elif constraints is not None:
        for f in range(permitted.shape[0]):
            drawn[0, f], drawn[1, f] = permitted[f], permitted[f]


@inner
def _open(growth):
    """Open the children of the node that was divided, or the root; note what is to be searched."""
    keep_apart()
    nodes, limits = growth.nodes, growth.limits
    fields, control = nodes.fields, nodes.control
    node = control[NODE]
    small = big = control[N_NODES] - 1  # the root alone in the first turn
    if node >= 0:
        open_children(nodes)
        inherit(node, growth, growth.scratch.permitted)
        small, big = fields[node, LEFT], fields[node, RIGHT]
        if fields[big, N_ROWS] < fields[small, N_ROWS]:
            small, big = big, small
    control[SMALL], control[BIG] = small, big
    control[SEARCHED] = (
        (control[N_NODES] + 1) // 2 < limits.max_leaves
        and fields[small, DEPTH] < limits.max_depth
        and fields[big, N_ROWS] >= limits.min_rows
    )
    if control[SEARCHED] == 0 and node >= 0 and fields[small, N_ROWS] <= control[SPARE]:
        control[SEARCHED] = ONLY_SUMMED
        control[SPARE] -= fields[small, N_ROWS]
    if control[SEARCHED]:
        _take_slots(node, nodes, growth.histograms.slots.shape[0] >= limits.max_leaves)
        _draw_columns(small, big, nodes.seeds, limits, growth.constraints, growth.scratch)


@inner
def _n_awaited(control, n_slots, max_leaves):
    """How many histograms are to be filled: of the smaller child, then of the larger one.

    The larger one is found by subtraction where its parent's was kept: where there is a slot for
    every leaf.
    """
    if control[SEARCHED] == 0:
        return 0
    if control[SMALL] == control[BIG]:
        return 1 - control[ROOT_GIVEN]
    return 1 if n_slots >= max_leaves else 2


@inner
def sum_step(threads, growth):
    """Open the children of the node that was divided, and sum their rows if they are searched."""
    if threads.number == 0:
        _open(growth)
    barrier(threads)
    nodes, n_slots = growth.nodes, growth.histograms.slots.shape[0]
    n_awaited = _n_awaited(nodes.control, n_slots, growth.limits.max_leaves)
    for child in range(n_awaited):
        node = nodes.control[SMALL] if child == 0 else nodes.control[BIG]
        if child > 0:
            barrier(threads)
        fill_histogram(threads, growth, growth.packed, growth.joint, node)


@inner
def _bounds_of(node, constraints):
    """Least and greatest value below a node, or ``None``."""
    if constraints is None:
        return None
    return constraints.bounds[node]


@inner
def search_node(threads, child, node, drawn, growth):
    """Search a thread's share of the drawn columns for the best split of a node."""
    fields, rules, scratch = growth.nodes.fields, growth.rules, growth.scratch
    gain, column, cut, left = NO_GAIN, np.int64(0), np.int64(0), np.int64(0)
    if fields[node, N_ROWS] >= growth.limits.min_rows:
        first, last = share(rules.n_values.shape[0], threads.number, threads.n_threads)
        gain, column, cut, left = search_columns(
            first,
            last,
            growth.histograms.slots[fields[node, SLOT]],
            drawn,
            growth.sums.totals[node],
            _bounds_of(node, growth.constraints),
            rules,
            scan_scratch(scratch, threads.number),
        )
    split = scratch.splits[threads.number, child]
    scratch.gains[threads.number, child, 0] = gain
    split[0], split[1], split[2] = column, cut, left


@inner
def settle_node(child, node, growth):
    """Settle the best split of a node that any thread has found."""
    scratch = growth.scratch
    settle_split(
        node,
        best_of_threads(scratch.gains[:, child], scratch.splits[:, child]),
        growth.histograms.slots[growth.nodes.fields[node, SLOT]],
        growth.nodes,
        growth.sums,
        growth.categories,
        growth.rules,
        scan_scratch(scratch, np.int64(0)),
    )


@inner
def _keep_root(threads, growth):
    """Copy the histogram of the root for the next tree, if it is needed there."""
    histograms = growth.histograms
    if histograms.kept.shape[0] > 0 and growth.nodes.control[ROOT_GIVEN] == 0:
        begin, end = own_cells(threads, growth.table, n_channels_of(growth))
        for i in range(begin, end):
            histograms.kept[uint64(i)] = histograms.slots[0, uint64(i)]


@inner
def decide_step(threads, growth):
    """Find the best splits of the nodes that were summed, and choose the node to split next."""
    nodes, limits, slots = growth.nodes, growth.limits, growth.histograms.slots
    fields, control = nodes.fields, nodes.control
    small, big = control[SMALL], control[BIG]
    n_children = 0 if control[SEARCHED] == 0 else (1 if small == big else 2)
    if n_children == 1:
        _keep_root(threads, growth)
    if n_children > 0:
        histogram = slots[fields[small, SLOT]]
        if n_children == 2 and _n_awaited(control, slots.shape[0], limits.max_leaves) == 1:
            sums = slots[fields[big, SLOT]]
            subtract_sibling(threads, growth, growth.packed, sums, histogram)
        if control[SEARCHED] == ONLY_SUMMED:
            n_children = 0
        for child in range(n_children):
            drawn = growth.scratch.drawn[child]
            search_node(threads, child, small if child == 0 else big, drawn, growth)
        barrier(threads)
    if threads.number == 0:
        for child in range(n_children):
            settle_node(child, small if child == 0 else big, growth)
        control[NODE] = choose_node(nodes, limits.max_leaves, limits.in_turn)
    barrier(threads)


@compiled
def grow(threads, growth):
    """Grow one tree.

    threads : Threads, growth : Growth

    Notes
    -----
    Cost O(m d log(leaves)) for balanced trees, the smaller child of each split only.
    """
    control = growth.nodes.control
    while True:
        divide_step(threads, growth)
        sum_step(threads, growth)
        decide_step(threads, growth)
        if control[NODE] < 0 or threads.sync[ABORT] != 0:
            return
