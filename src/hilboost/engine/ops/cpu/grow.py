"""Best-first growth of one tree, in steps whose tasks a team of threads shares.

Nodes are taken in batches.  Each step takes all nodes of a batch::

    flag, move    which rows of the nodes go left; divide them
    sum           histograms of the smaller children, or of the root
    search        best splits of both children, by columns

Whoever completes the last task of a step decides alone what follows: opens the children, settles
their splits, chooses the next batch.  With one thread, or where a step is short, this thread
executes it, too.  Integer histograms and fixed tie rules make the tree the same for any number of
threads.  Nothing is allocated here: an exception in one thread would leave the others waiting.

The nodes of a batch are the open ones of the largest gains.  One of them may turn out not to be
among the first splits of the tree; then it is a leaf, so that the size of the batches changes no
tree (see :mod:`hilboost.engine.driver`).

Inputs that few trees need are ``None`` in all others: ``constraints``, ``categories``, and
``packed`` where there is one channel.  The compiler then leaves out the code that reads them, which
shortens the first fit.
"""

from typing import NamedTuple

import numpy as np
from numba import int64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    DONE,
    FLAG,
    MOVE,
    N_DIVIDED,
    N_PAIRS,
    N_SPLITS,
    N_SUMMED,
    N_TREE,
    ONLY_SUMMED,
    SEARCH,
    SEARCHED,
    STEP,
    SUM,
    UNSEARCHED,
    Batch,
    item_of,
    n_tasks_of,
    n_threads_worth,
    start_step,
)
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.draws import draw_columns
from hilboost.engine.ops.cpu.histogram import Histograms, add
from hilboost.engine.ops.cpu.joint_columns import JointColumns
from hilboost.engine.ops.cpu.node_histogram import complete_columns, cut_sums, sum_part
from hilboost.engine.ops.cpu.nodes import (
    BIN,
    COLUMN,
    DEPTH,
    LEFT,
    N_LEFT,
    N_LEFT_HERE,
    N_NODES,
    N_ROWS,
    NODE,
    RIGHT,
    ROOT_GIVEN,
    SLOT,
    SPARE,
    NodeStore,
    open_children,
)
from hilboost.engine.ops.cpu.partition import (
    RowBuffers,
    count_left,
    cut_rows,
    flag_part,
    move_part,
)
from hilboost.engine.ops.cpu.split_constraints import (
    SplitConstraints,
    bound_children,
    permit_columns,
)
from hilboost.engine.ops.cpu.split_search import (
    NodeSums,
    SearchScratch,
    SplitRules,
    best_of_parts,
    scan_scratch,
    search_columns,
    settle_split,
)
from hilboost.engine.ops.cpu.sync import claim, finish, is_last, publish, share

_NANOSECONDS_PER_CELL = 3
"""That the search of a bin of both children takes, roughly."""


class GrowthLimits(NamedTuple):
    """Where growth ends."""

    max_leaves: int
    max_depth: int
    min_rows: int  # A node of fewer rows cannot be split
    columns_per_node: int  # so many are drawn for every node; 0 where all are searched
    batch_size: int  # so many nodes are divided together


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
    categories: CategorySplits | None  # ``None`` where all columns are numbers
    buffers: RowBuffers  # ``rows[0]``, and ``ordered[0]`` if there, filled
    histograms: Histograms
    scratch: SearchScratch  # ``permitted`` and ``drawn`` filled with the allowed columns
    joint: JointColumns | None  # ``None`` where columns have many values, and with several channels
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
    if fields[small, DEPTH] > 0 or growth.nodes.control[ROOT_GIVEN] == 0:
        batch.summed[n_summed] = small
        n_summed += 1
        if small != big and not keeps_parents(growth):
            batch.summed[n_summed] = big
            n_summed += 1
    batch.first_sum[pair + 1] = n_summed
    batch.state[N_PAIRS], batch.state[N_SUMMED] = pair + 1, n_summed


@inner
def _draw(pair, small, big, seeds, limits, constraints, scratch):
    """Columns to search, where these differ from node to node."""
    permitted, drawn = scratch.permitted, scratch.drawn[pair]
    if limits.columns_per_node > 0:
        draw_columns(permitted, limits.columns_per_node, seeds[small], drawn[0])
        draw_columns(permitted, limits.columns_per_node, seeds[big], drawn[1])
    elif constraints is not None:
        for f in range(permitted.shape[0]):
            drawn[0, f], drawn[1, f] = permitted[f], permitted[f]


@inner
def open_root_alone(growth):
    """Begin with the root, which is summed if it may be split."""
    batch, limits, fields = growth.batch, growth.limits, growth.nodes.fields
    for i in range(batch.is_split.shape[0]):
        batch.is_split[i] = 0
    batch.used[:] = 0
    batch.state[:] = 0
    batch.state[N_TREE], batch.tree[0] = 1, 0
    if limits.max_leaves > 1 and limits.max_depth > 0 and fields[0, N_ROWS] >= limits.min_rows:
        fields[0, SLOT] = 0
        _add_pair(int64(0), int64(0), SEARCHED, growth)
        _draw(0, int64(0), int64(0), growth.nodes.seeds, limits, growth.constraints, growth.scratch)


@inner
def _mode_of(small, big, growth):
    """What is done with the children of a split."""
    fields, limits, control = growth.nodes.fields, growth.limits, growth.nodes.control
    if (
        growth.batch.state[N_SPLITS] + 2 < limits.max_leaves
        and fields[small, DEPTH] < limits.max_depth
        and fields[big, N_ROWS] >= limits.min_rows
    ):
        return SEARCHED
    if fields[small, N_ROWS] <= control[SPARE]:
        control[SPARE] -= fields[small, N_ROWS]
        return ONLY_SUMMED
    return UNSEARCHED


@inner
def open_batch(growth):
    """Open the children of the nodes that were divided; note which are summed and searched."""
    keep_apart()
    nodes, batch, limits = growth.nodes, growth.batch, growth.limits
    fields, control = nodes.fields, nodes.control
    batch.state[N_PAIRS] = batch.state[N_SUMMED] = 0
    for i in range(batch.state[N_DIVIDED]):
        node = batch.divided[i]
        control[NODE], control[N_LEFT_HERE], control[N_LEFT] = (
            node,
            batch.n_left[i],
            batch.n_left[i],
        )
        open_children(nodes)
        inherit(node, growth, growth.scratch.permitted)
        small, big = fields[node, LEFT], fields[node, RIGHT]
        if fields[big, N_ROWS] < fields[small, N_ROWS]:
            small, big = big, small
        mode, pair = _mode_of(small, big, growth), batch.state[N_PAIRS]
        if mode == UNSEARCHED:
            continue
        if keeps_parents(growth):
            fields[small, SLOT] = (control[N_NODES] - 1) // 2
            fields[big, SLOT] = fields[node, SLOT]
        else:
            fields[small, SLOT], fields[big, SLOT] = 0, 1
        _add_pair(small, big, mode, growth)
        _draw(pair, small, big, nodes.seeds, limits, growth.constraints, growth.scratch)


@inner
def _bounds_of(node, constraints):
    """Least and greatest value below a node, or ``None``."""
    if constraints is None:
        return None
    return constraints.bounds[node]


@inner
def cut_columns(n_groups, n_pairs, step, growth):
    """Cut the columns of the nodes that are searched into tasks."""
    batch = growth.batch
    for i in range(n_pairs):
        batch.first_task[i + 1] = (i + 1) * n_groups
    n_cells = growth.histograms.slots.shape[1]
    start_step(step, n_pairs, _NANOSECONDS_PER_CELL * n_cells * n_pairs, batch)


@inner
def search_part(task, threads, growth):
    """Search some columns for the best splits of the children of a split, or of the root."""
    keep_apart()
    batch, fields, scratch = growth.batch, growth.nodes.fields, growth.scratch
    item = item_of(task, batch)
    n_groups = batch.first_task[item + 1] - batch.first_task[item]
    n_columns, group = growth.rules.n_values.shape[0], task - batch.first_task[item]
    first, last = share(n_columns, group, n_groups)
    complete_columns(first, last, item, growth, growth.packed, growth.joint)
    if batch.modes[item] == ONLY_SUMMED:
        return
    small, big = batch.pairs[item, 0], batch.pairs[item, 1]
    for child in range(1 if small == big else 2):
        node = small if child == 0 else big
        gain, column, cut, left = NO_GAIN, int64(0), int64(0), int64(0)
        if fields[node, N_ROWS] >= growth.limits.min_rows:
            gain, column, cut, left = search_columns(
                first,
                last,
                growth.histograms.slots[fields[node, SLOT]],
                scratch.drawn[item, child],
                growth.sums.totals[node],
                _bounds_of(node, growth.constraints),
                growth.rules,
                scan_scratch(scratch, threads.number),
            )
        split = batch.splits[task, child]
        batch.gains[task, child] = gain
        split[0], split[1], split[2] = column, cut, left


@inner
def settle_batch(growth):
    """Settle the best splits that were found."""
    keep_apart()
    batch, fields, scratch = growth.batch, growth.nodes.fields, growth.scratch
    for item in range(batch.state[N_PAIRS]):
        if batch.modes[item] == ONLY_SUMMED:
            continue
        first, last = batch.first_task[item], batch.first_task[item + 1]
        small, big = batch.pairs[item, 0], batch.pairs[item, 1]
        for child in range(1 if small == big else 2):
            node = small if child == 0 else big
            settle_split(
                node,
                best_of_parts(batch.gains[first:last, child], batch.splits[first:last, child]),
                growth.histograms.slots[fields[node, SLOT]],
                growth.nodes,
                growth.sums,
                growth.categories,
                growth.rules,
                scan_scratch(scratch, int64(0)),
            )


@inner
def _best_open(batch, nodes, is_new):
    """The node of the largest priority, the first of equals, or -1; ``is_new``: not yet divided."""
    chosen = int64(-1)
    for k in range(batch.state[N_TREE]):
        node = batch.tree[k]
        if batch.is_split[node] == 0 and nodes.priority[node] > NO_GAIN:
            is_better = chosen < 0 or nodes.priority[node] > nodes.priority[chosen]
            if is_better and not (is_new and nodes.fields[node, LEFT] >= 0):
                chosen = node
    return chosen


@inner
def _accept_splits(n_splits, batch, nodes):
    """Take divided nodes into the tree, as long as they have the largest priority."""
    state, fields = batch.state, nodes.fields
    while state[N_SPLITS] < n_splits:
        node = _best_open(batch, nodes, False)
        if node < 0 or fields[node, LEFT] < 0:
            return node
        batch.is_split[node] = 1
        batch.tree[state[N_TREE]], batch.tree[state[N_TREE] + 1] = (
            fields[node, LEFT],
            fields[node, RIGHT],
        )
        state[N_TREE] += 2
        state[N_SPLITS] += 1
    return int64(-1)


@inner
def choose_batch(growth):
    """Choose the nodes to divide next."""
    keep_apart()
    nodes, batch, limits = growth.nodes, growth.batch, growth.limits
    state = batch.state
    state[N_DIVIDED] = 0
    if _accept_splits(limits.max_leaves - 1, batch, nodes) < 0:
        return
    # Others than the first one may be divided in vain, for which there is not always room.
    n_left, n_divided = limits.max_leaves - 1 - state[N_SPLITS], nodes.control[N_NODES] // 2
    room = n_divided + n_left
    if keeps_parents(growth):
        room = min(nodes.fields.shape[0] // 2, growth.histograms.slots.shape[0] - 1)
    most = min(limits.batch_size, n_left, 1 + room - n_divided - n_left)
    for i in range(most):
        node = _best_open(batch, nodes, True)
        if node < 0:
            break
        batch.divided[i], batch.is_split[node] = node, 1
        state[N_DIVIDED] = i + 1
    for i in range(state[N_DIVIDED]):
        batch.is_split[batch.divided[i]] = 0


@inner
def _undo(growth):
    """Make leaves of the nodes whose splits are not part of the tree."""
    nodes, batch, slots = growth.nodes, growth.batch, growth.histograms.slots
    fields = nodes.fields
    for k in range(batch.state[N_TREE]):
        node = batch.tree[k]
        left, right = fields[node, LEFT], fields[node, RIGHT]
        if left < 0 or batch.is_split[node] != 0:
            continue
        fields[node, LEFT] = fields[node, RIGHT] = -1
        if keeps_parents(growth) and fields[left, SLOT] >= 0:  # that of a child was its own
            other = left if fields[right, SLOT] == fields[node, SLOT] else right
            sums = slots[fields[node, SLOT]]
            add(sums, slots[fields[other, SLOT]], 0, sums.shape[0])


@inner
def next_step(n_threads, n_groups, growth):
    """Decide what follows a step, when all of its tasks are done."""
    keep_apart()
    batch = growth.batch
    step = batch.state[STEP]
    if step == FLAG and count_left(batch):
        return
    if step == BEGIN_TREE:
        open_root_alone(growth)
    elif step in (FLAG, MOVE):
        open_batch(growth)
    if step != SUM and step != SEARCH and batch.state[N_SUMMED] > 0:
        cut_sums(n_threads, growth, growth.joint)
        return
    if step != SEARCH and batch.state[N_PAIRS] > 0:
        cut_columns(n_groups, batch.state[N_PAIRS], SEARCH, growth)
        return
    if step == SEARCH:
        settle_batch(growth)
    choose_batch(growth)
    if batch.state[N_DIVIDED] > 0:
        cut_rows(n_threads, growth.nodes, batch)
        return
    _undo(growth)
    batch.state[STEP] = DONE


@inner
def do_task(task, threads, growth):
    """Do a task of the current step."""
    keep_apart()
    step, batch = growth.batch.state[STEP], growth.batch
    if step == FLAG:
        flag_part(task, growth.table, growth.nodes, growth.categories, growth.buffers, batch)
    elif step == MOVE:
        move_part(task, growth.nodes, growth.buffers, batch)
    elif step == SUM:
        sum_part(task, threads, growth, growth.packed, growth.joint)
    elif step == SEARCH:
        search_part(task, threads, growth)


@inner
def take_steps(threads, growth):
    """Decide on the next steps and execute them, up to one that is worth sharing."""
    batch = growth.batch
    n_groups = batch.gains.shape[0] // batch.pairs.shape[0]
    while True:
        next_step(threads.n_threads, n_groups, growth)
        if batch.state[STEP] == DONE:
            finish(threads)
            return
        n_threads, n_waked = n_threads_worth(batch, threads.n_threads)
        if n_threads > 1:
            publish(threads, n_tasks_of(batch), n_waked)
            return
        for task in range(n_tasks_of(batch)):
            do_task(task, threads, growth)


@compiled
def grow(threads, growth):
    """Grow one tree; ``batch.tree`` lists its nodes in the order in which they were split.

    threads : Threads, growth : Growth

    Notes
    -----
    Cost O(m d log(leaves)) for balanced trees, the smaller child of each split only.
    """
    task = claim(threads)
    while task >= 0:
        do_task(task, threads, growth)
        if is_last(threads):
            take_steps(threads, growth)
        task = claim(threads)
