"""Symmetric growth: all nodes of a level are split on the same column at the same cut.

The cut of a level maximizes the sum of the gains of its nodes.  A node in which the cut is not
allowed adds nothing to the sum and stays a leaf, which the next level may still split::

    level 1            x3 <= 5
    level 2       x1 <= 2    x1 <= 2         here one cut of x1 for both
    level 3     x7 <= 0 ...

There is a histogram for every leaf, and room for the nodes of a level in ``batch.divided``, which
holds the nodes that are searched, too.  A growth has no directions, groups and categories.
"""

import numpy as np

from hilboost.backends.compiled import inner
from hilboost.backends.intrinsics import keep_apart, keep_inside
from hilboost.backends.references import by_reference
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    DONE,
    FLAG,
    MOVE,
    N_DIVIDED,
    N_LEVELS,
    N_PAIRS,
    N_SUMMED,
    SEARCH,
    STEP,
    WORK,
    n_tasks_of,
)
from hilboost.engine.ops.cpu.column_splits import NO_GAIN, Cuts, find_gains, is_empty
from hilboost.engine.ops.cpu.growth import begin_with_root, cut_columns, open_batch
from hilboost.engine.ops.cpu.node_histogram import complete_columns, cut_sums
from hilboost.engine.ops.cpu.nodes import (
    BIN,
    COLUMN,
    LEFT,
    MISSING_LEFT,
    N_NODES,
    N_ROWS,
    SLOT,
    draw_columns,
)
from hilboost.engine.ops.cpu.packing import count_bits
from hilboost.engine.ops.cpu.partition import count_left, cut_rows
from hilboost.engine.ops.cpu.split_search import best_of_parts, column_of, scan_scratch, sum_left
from hilboost.engine.ops.cpu.sync import share


@inner
def _note_open(nodes, batch, limits):
    """Note the leaves that have a histogram and enough rows."""
    fields, n_open = nodes.fields, 0
    for node in range(nodes.control[N_NODES]):
        is_large = fields[node, N_ROWS] >= limits.min_rows
        if fields[node, LEFT] < 0 and fields[node, SLOT] >= 0 and is_large:
            batch.divided[n_open] = node
            n_open += 1
    batch.state[N_DIVIDED] = n_open


@inner
def _add_gains(column, n_channels, cuts, scratch, summed):
    """Add the gains of a node to the gains of all cuts, each from its place to the next one."""
    cut = cuts.missing_left - 1
    for b in range(cuts.last):
        cut += np.int64(not is_empty(column.histogram, (column.base + b) * n_channels, n_channels))
        if cut >= 0 and scratch.gains[cut] > NO_GAIN:
            summed[b] += scratch.gains[cut]


@inner
def _best_cut(summed, last, beyond):
    """The largest sum of gains and its cut: of equal neighbors the middle one.

    ``beyond`` is whether the last cut divides the missing values from all others; it is taken if
    it equals the best one.
    """
    best, cut = NO_GAIN, np.int64(0)
    for b in range(last):
        if summed[b] > best:
            best, cut = summed[b], b
    end = cut
    while end + 1 < last and summed[end + 1] == best:
        end += 1
    return best, end if beyond and end == last - 1 else (cut + end) // 2


@inner
def _has_missing(number, growth):
    """Whether any open node has missing values in a column."""
    found = False
    n_channels = growth.sums.totals.shape[1]
    for i in range(growth.batch.state[N_DIVIDED]):
        column = column_of(growth.batch.divided[i], number, growth)
        last = (column.base + column.n_bins - 1) * n_channels
        found |= not is_empty(column.histogram, last, n_channels)
    return found


@inner
def _search_column(number, growth, scratch, summed):
    """The best cut of a column for all open nodes together: gain, cut, side of missing values."""
    keep_inside()
    batch, rules = growth.batch, by_reference(growth.rules)
    n_values = rules.n_values[number]
    best, best_cut, best_left = NO_GAIN, np.int64(0), np.int64(0)
    directions = 2 if _has_missing(number, growth) else 1
    for missing_left in range(directions):
        beyond = directions == 2 and missing_left == 0
        last = n_values if beyond else n_values - 1
        cuts = Cuts(np.int64(missing_left), np.int64(last), beyond, np.int64(0))
        for b in range(last):
            summed[b] = 0.0
        for i in range(batch.state[N_DIVIDED]):
            node = batch.divided[i]
            column, totals = column_of(node, number, growth), growth.sums.totals[node]
            find_gains(column, totals, rules.n_outputs, None, rules, cuts, scratch)
            _add_gains(column, totals.shape[0], cuts, scratch, summed)
        gain, cut = _best_cut(summed, last, beyond)
        if gain > best:
            best, best_cut, best_left = gain, cut, np.int64(missing_left)
    return best, best_cut, best_left


@inner
def search_levels(task, threads, growth, summed):
    """Search some columns for the best cut of a level."""
    keep_apart()
    rules, scratch, batch = growth.rules, growth.scratch, growth.batch
    own = scan_scratch(scratch, threads.number)
    best, best_column, best_cut, best_left = NO_GAIN, np.int64(0), np.int64(0), np.int64(0)
    first, last = share(rules.n_values.shape[0], task, n_tasks_of(batch))
    for item in range(batch.state[N_PAIRS]):
        complete_columns(first, last, item, growth, growth.packed)
    for number in range(first, last):
        if scratch.drawn[0, 0, number] and rules.n_values[number] > 0:
            gain, cut, left = _search_column(number, growth, own, summed[threads.number])
            if gain > best:
                best, best_column, best_cut, best_left = gain, np.int64(number), cut, left
    split = batch.splits[task, 0]
    batch.gains[task, 0] = best
    split[0], split[1], split[2] = best_column, best_cut, best_left


@inner
def settle_level(growth):
    """Note the split of every open node of the level, if the best cut is good enough."""
    keep_apart()
    nodes, sums, batch = growth.nodes, growth.sums, growth.batch
    rules = by_reference(growth.rules)
    scratch, n_tasks = scan_scratch(growth.scratch, 0), n_tasks_of(batch)
    gain, number, cut, missing_left = best_of_parts(
        batch.gains[:n_tasks, 0], batch.splits[:n_tasks, 0]
    )
    accepted = gain > 0.0 and gain >= rules.limits.min_gain
    on_left, on_both = 0, 0
    if accepted:
        for i in range(batch.state[N_DIVIDED]):
            node = batch.divided[i]
            column = column_of(node, number, growth)
            sum_left(column, cut, missing_left, sums.left_totals[node])
            on_left += count_bits(sums.left_totals[node], rules.packing)
            on_both += count_bits(sums.totals[node], rules.packing)
        if not _has_missing(number, growth):
            missing_left = np.int64(2 * on_left >= on_both)
    cuts = Cuts(missing_left, cut + 1, False, np.int64(0))
    for i in range(batch.state[N_DIVIDED]):
        node, own = batch.divided[i], NO_GAIN
        if accepted:
            column, totals = column_of(node, number, growth), sums.totals[node]
            n_cuts = find_gains(column, totals, rules.n_outputs, None, rules, cuts, scratch)
            own = scratch.gains[n_cuts - 1] if n_cuts > 0 else NO_GAIN
        nodes.gains[node] = max(own, 0.0) if own > NO_GAIN else NO_GAIN
        if own > NO_GAIN:
            nodes.fields[node, COLUMN], nodes.fields[node, BIN] = number, cut
            nodes.fields[node, MISSING_LEFT] = missing_left


@inner
def _choose_level(nodes, batch):
    """Choose the open nodes that are split."""
    n_divided = 0
    for i in range(batch.state[N_DIVIDED]):
        node = batch.divided[i]
        if nodes.gains[node] > NO_GAIN:
            batch.divided[n_divided] = node
            n_divided += 1
    batch.state[N_DIVIDED] = n_divided


@inner
def _draw_level(nodes, limits, scratch):
    """Draw the columns of a level, where these differ from level to level."""
    if limits.columns_per_node > 0:
        seed = nodes.seeds[nodes.control[N_NODES] - 1]
        draw_columns(scratch.permitted, limits.columns_per_node, seed, scratch.drawn[0, 0])


@inner
def cut_level(growth):
    """Cut the columns of all open nodes into tasks."""
    cut_columns(1, SEARCH, growth)
    growth.batch.state[WORK] *= growth.batch.state[N_DIVIDED]


@inner
def next_level(n_threads, growth):
    """Decide what follows a step, when all of its tasks are done."""
    keep_apart()
    nodes, batch, limits = growth.nodes, growth.batch, growth.limits
    step, state = batch.state[STEP], batch.state
    if step == FLAG and count_left(batch):
        return
    if step == BEGIN_TREE:
        begin_with_root(growth)
    elif step in (FLAG, MOVE):
        open_batch(growth)
    if step == SEARCH:
        settle_level(growth)
    if step >= SEARCH:
        _choose_level(nodes, batch)
        if state[N_DIVIDED] > 0:
            cut_rows(n_threads, nodes, batch)
            return
    elif state[N_LEVELS] < limits.max_depth:
        if state[N_SUMMED] > 0:
            cut_sums(n_threads, growth)
            state[N_SUMMED] = 0
            return
        state[N_LEVELS] += 1
        _draw_level(nodes, limits, growth.scratch)
        _note_open(nodes, batch, limits)
        cut_level(growth)
        return
    state[STEP] = DONE
