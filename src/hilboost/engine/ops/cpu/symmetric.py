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
from hilboost.engine.ops.cpu.column_splits import (
    NO_GAIN,
    fill_gains,
    is_empty,
    move_left,
    score_channels,
    sum_bins,
    sum_pairs,
)
from hilboost.engine.ops.cpu.criterion import split_gain
from hilboost.engine.ops.cpu.growth import begin_with_root, cut_columns, open_batch
from hilboost.engine.ops.cpu.histogram import STRIDE
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
def _number_of(n_outputs):
    """The number of outputs, which the rules of trees with one channel leave out."""
    if n_outputs is None:
        return np.int64(1)
    return n_outputs


@inner
def _gain_of_channels(left, right, totals, rules):
    """Gain of one cut of a node with several channels, ``NO_GAIN`` if it is not allowed."""
    n_outputs, packing, limits = _number_of(rules.n_outputs), rules.packing, rules.limits
    parent, _, _ = score_channels(totals, n_outputs, packing, limits.l2)
    on_left, left_hessian, left_weight = score_channels(left, n_outputs, packing, limits.l2)
    on_right, right_hessian, right_weight = score_channels(right, n_outputs, packing, limits.l2)
    smallest = min(left_weight, right_weight)
    if smallest < limits.min_count or smallest <= 0.0:
        return NO_GAIN
    if min(left_hessian, right_hessian) < limits.min_hessian:
        return NO_GAIN
    return split_gain(on_left + on_right, parent, left_weight, right_weight)


@inner
def _fill_gains(n_cuts, totals, rules, scratch):
    """Gains of cuts of a node with one output, by the sums of their left sides in ``scratch``."""
    if totals.shape[0] == 1:
        fill_gains(None, n_cuts, totals[0], np.int64(0), rules, scratch)
    else:
        fill_gains(scratch.sums[STRIDE:], n_cuts, totals[0], totals[1], rules, scratch)


@inner
def _find_gains(column, totals, missing_left, last, rules, scratch):
    """Gains of the cuts of a node that differ: one before all bins, and one at each with rows."""
    keep_inside()
    n_channels, first, left = totals.shape[0], column.base * totals.shape[0], scratch.left
    cells = column.histogram[first : first + column.n_bins * n_channels]
    for c in range(n_channels):
        left[c] = cells[(column.n_bins - 1) * n_channels + c] if missing_left else 0
        scratch.right[c] = totals[c] - left[c]
    if _number_of(rules.n_outputs) == 1:
        sums, counts = scratch.sums, scratch.sums[STRIDE:]
        sums[0] = sums[1] = left[0]
        if n_channels == 1:
            n_cuts = sum_bins(cells, last, left[0], sums[1:])
        else:
            counts[0] = counts[1] = left[1]
            n_cuts = sum_pairs(cells, last, sums[1:], counts[1:])
        _fill_gains(n_cuts + 1, totals, rules, scratch)
        return
    n_cuts = np.int64(0)
    for b in range(-1, last):
        if b < 0 or move_left(cells, b * n_channels, totals, left, scratch.right):
            scratch.gains[n_cuts] = _gain_of_channels(left, scratch.right, totals, rules)
            n_cuts += 1


@inner
def _add_gains(column, n_channels, last, scratch, summed):
    """Add the gains of a node to the gains of all cuts, each from its place to the next one."""
    cut = np.int64(0)
    for b in range(last):
        cut += np.int64(not is_empty(column.histogram, (column.base + b) * n_channels, n_channels))
        if scratch.gains[cut] > NO_GAIN:
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
        for b in range(last):
            summed[b] = 0.0
        for i in range(batch.state[N_DIVIDED]):
            node = batch.divided[i]
            column, totals = column_of(node, number, growth), growth.sums.totals[node]
            _find_gains(column, totals, missing_left, last, rules, scratch)
            _add_gains(column, totals.shape[0], last, scratch, summed)
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
def _gain_of_cut(node, growth, scratch):
    """Gain of the cut of which the left sums of a node have been found."""
    totals, left = growth.sums.totals[node], growth.sums.left_totals[node]
    rules = by_reference(growth.rules)
    if _number_of(rules.n_outputs) == 1:
        scratch.sums[0], scratch.sums[STRIDE] = left[0], left[left.shape[0] - 1]
        _fill_gains(1, totals, rules, scratch)
        return scratch.gains[0]
    for c in range(totals.shape[0]):
        scratch.right[c] = totals[c] - left[c]
    return _gain_of_channels(left, scratch.right, totals, rules)


@inner
def settle_level(growth):
    """Note the split of every open node of the level, if the best cut is good enough."""
    keep_apart()
    nodes, sums, rules, batch = growth.nodes, growth.sums, growth.rules, growth.batch
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
    for i in range(batch.state[N_DIVIDED]):
        node, own = batch.divided[i], NO_GAIN
        if accepted:
            own = _gain_of_cut(node, growth, scratch)
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
