"""Best-first growth of one tree: one compiled call that a team of threads runs together.

Every thread executes the whole function.  Between barriers each does its share: a range of rows
(partition, histograms of large nodes), of words (histograms of small nodes) or of columns (search);
thread 0 alone takes decisions.  Integer histograms and fixed tie rules make the tree the same for
any number of threads.  Nothing is allocated here: an exception in one thread would leave the others
waiting at a barrier.
"""

from hilboost.backends.compiled import compiled
from hilboost.backends.constraints import bound_children, permit_columns
from hilboost.backends.draws import draw_columns
from hilboost.backends.histogram import (
    STRIDE,
    accumulate,
    accumulate_channels,
    global_histogram,
    merge,
    subtract,
)
from hilboost.backends.levels import flag_level_rows
from hilboost.backends.nodes import (
    BEGIN,
    BIN,
    BUFFER,
    COLUMN,
    DEPTH,
    END,
    LEFT,
    MISSING_LEFT,
    N_NODES,
    NODE,
    RIGHT,
    SLOT,
    choose_node,
    open_children,
)
from hilboost.backends.partition import flag_rows, move_rows
from hilboost.backends.search import search_columns, settle_split
from hilboost.backends.split import L2, NO_GAIN
from hilboost.backends.sync import ABORT, barrier

# Entries of ``limits_int``.
MAX_LEAVES, MAX_DEPTH, MIN_ROWS, COLUMNS_PER_NODE, SEED = range(5)

_ROWS_WORTH_SHARING = 4096


@compiled
def _share(n, part, n_parts):
    return n * part // n_parts, n * (part + 1) // n_parts


@compiled
def _fill_histogram(
    thread,
    n_threads,
    words,
    n_columns,
    n_bins,
    rows,
    ordered,
    packed,
    begin,
    end,
    histogram,
    private,
):
    """Fill one thread's part of a node's histogram; returns how many parts are to be merged."""
    n_words = words.shape[0]
    first_word, last_word, target = 0, n_words, histogram
    n_parts = 1
    if n_threads > 1 and end - begin >= _ROWS_WORTH_SHARING * n_threads:
        n_parts = n_threads
        low, high = _share(end - begin, thread, n_threads)
        begin, end = begin + low, begin + high
        if thread > 0:
            target = private[thread]
    elif n_threads > 1:
        first_word, last_word = _share(n_words, thread, n_threads)
    if packed.shape[1] == 1:
        accumulate(words, first_word, last_word, n_columns, rows, ordered, begin, end, target)
    else:
        accumulate_channels(
            words, first_word, last_word, n_columns, n_bins, rows, packed, begin, end, target
        )
    return n_parts


@compiled
def _partition(
    thread,
    n_threads,
    sync,
    bins,
    n,
    n_bins,
    node,
    nodes,
    levels,
    left_sets,
    rows,
    ordered,
    flags,
    counts,
):
    """Divide a node's rows; returns, in the threads that took part, how many go left.

    The caller has the threads meet before the rows are read.
    """
    begin, end, source = nodes[node, BEGIN], nodes[node, END], nodes[node, BUFFER]
    n_parts = n_threads if end - begin >= _ROWS_WORTH_SHARING * n_threads else 1
    low, high = 0, 0
    if thread < n_parts:
        low, high = _share(end - begin, thread, n_parts)
        low, high = begin + low, begin + high
        column = nodes[node, COLUMN]
        if levels.shape[0] > 0 and levels[column]:
            counts[8 * thread] = flag_level_rows(
                bins,
                n,
                column,
                left_sets[node],
                n_bins - 1,
                nodes[node, MISSING_LEFT],
                rows[source],
                low,
                high,
                flags,
            )
        else:
            counts[8 * thread] = flag_rows(
                bins,
                n,
                column,
                nodes[node, BIN],
                n_bins - 1,
                nodes[node, MISSING_LEFT],
                rows[source],
                low,
                high,
                flags,
            )
    if n_parts > 1:
        barrier(sync, n_threads)
    n_left, before = 0, 0
    if thread < n_parts:
        for t in range(n_parts):
            n_left += counts[8 * t]
            if t < thread:
                before += counts[8 * t]
        move_rows(
            flags,
            rows[source],
            ordered[source],
            rows[1 - source],
            ordered[1 - source],
            low,
            high,
            begin + before,
            begin + n_left + (low - begin - before),
        )
    return n_left


@compiled
def grow(
    thread,
    n_threads,
    sync,
    words,
    bins,
    n_bins,
    n_values,
    allowed,
    packed,
    n_outputs,
    rows,
    ordered,
    flags,
    histograms,
    private,
    nodes,
    gains,
    totals,
    left_totals,
    best_gain,
    best_split,
    drawn,
    scratch,
    scan_sums,
    scan_gains,
    counts,
    control,
    layout,
    scales,
    limits,
    limits_int,
    monotonic,
    bounds,
    group_start,
    group_columns,
    used,
    permitted,
    levels,
    left_sets,
):
    """Grow one tree, best first.

    Parameters
    ----------
    thread, n_threads : int
    sync : (SYNC_SIZE,) int64, zero
    words : (n_words, n) uint64, binned table; ``bins`` the same memory as flat uint8
    n_bins : int, bins of a column including the last one for missing values
    n_values : (d,) int64, bins of each column without that one
    allowed : (d,) uint8, columns this tree may use
    packed : (n, n_channels) int64, fixed-point gradients in the table's row order
    n_outputs : int
    rows : (2, m) uint32, the rows to learn from in ``rows[0]``
    ordered : (2, m) int64 with one channel (``packed`` in the order of ``rows``), else (2, 0)
    flags : (m,) uint8
    histograms : (n_slots, d * stride * n_channels) int64, a stride of 256 with one channel and
        ``n_bins`` with more; ``n_slots >= MAX_LEAVES`` keeps parents
        for subtraction, two slots do without
    private : (n_threads, d * stride * n_channels) int64
    nodes : (2 * MAX_LEAVES - 1, N_NODE_FIELDS) int64, node 0 filled
    gains : (n_nodes,) float64
    totals, left_totals : (n_nodes, n_channels) int64, ``totals[0]`` filled
    best_gain, best_split : (n_threads, 2, 8) float64, int64; one row a thread and child
    drawn : (2, d) uint8, filled with ``allowed`` where nodes do not draw columns
    scratch : (n_threads, 2, n_channels) int64
    scan_sums : (n_threads, 2, 512) int64, scan_gains : (n_threads, 512) float64
    counts : (8 * n_threads,) int64
    control : (CONTROL_SIZE,) int64, ``control[NODE] = -1`` and ``control[N_NODES] = 1``
    layout, scales, limits : see :mod:`hilboost.backends.split`
    limits_int : (5,) int64
    monotonic : (d,) int64, the direction 1 or -1 of a column and 0 for none; (0,) without any
    bounds : (n_nodes, 2, n_outputs) float64, least and greatest value below a node, ``bounds[0]``
        filled; (n_nodes, 0, 0) without directions
    group_start, group_columns : (n_groups + 1,), flat, int64: columns that may meet on a path from
        the root; (0,) where all may
    used : (n_nodes, d) uint8, columns split on above a node, ``used[0]`` zero; (0, d) where all may
    permitted : (d,) uint8, filled with ``allowed``
    levels : (d,) uint8, 1 at columns of categories, for one output; (0,) without any
    left_sets : (n_nodes, SET_WORDS) uint64, written at nodes that such a column splits; (0,
        SET_WORDS) without any

    Notes
    -----
    Cost O(m d log(leaves)) for balanced trees, the smaller child of each split only.
    """
    n = words.shape[1]
    n_columns = n_values.shape[0]
    n_channels = packed.shape[1]
    keep_parents = histograms.shape[0] >= limits_int[MAX_LEAVES]
    first, last = _share(n_columns, thread, n_threads)
    stride = STRIDE if n_channels == 1 else n_bins
    low, high = first * stride * n_channels, last * stride * n_channels
    children = 1  # the root alone in the first turn
    # From arrays, not literals: a literal would be a type of its own and compile its callees twice.
    node = control[NODE]
    small = big = control[N_NODES] - 1
    while True:
        if node >= 0:
            n_left = _partition(
                thread,
                n_threads,
                sync,
                bins,
                n,
                n_bins,
                node,
                nodes,
                levels,
                left_sets,
                rows,
                ordered,
                flags,
                counts,
            )
            if thread == 0:
                open_children(node, n_left, nodes, gains, totals, left_totals, control)
                if monotonic.shape[0] > 0:
                    column = nodes[node, COLUMN]
                    direction = monotonic[column]
                    if nodes[node, BIN] == n_values[column] - 1:
                        direction = 0  # missing values have no place in the order
                    bound_children(
                        node,
                        direction,
                        n_outputs,
                        nodes,
                        totals,
                        layout,
                        scales,
                        limits[L2],
                        bounds,
                    )
                if group_start.shape[0] > 0:
                    permit_columns(
                        node, nodes, allowed, group_start, group_columns, used, permitted
                    )
            barrier(sync, n_threads)
            children = 2
            small, big = nodes[node, LEFT], nodes[node, RIGHT]
            if nodes[big, END] - nodes[big, BEGIN] < nodes[small, END] - nodes[small, BEGIN]:
                small, big = big, small
        splittable = (
            (control[N_NODES] + 1) // 2 < limits_int[MAX_LEAVES]
            and nodes[small, DEPTH] < limits_int[MAX_DEPTH]
            and nodes[big, END] - nodes[big, BEGIN] >= limits_int[MIN_ROWS]
        )
        if splittable:
            if keep_parents:
                small_slot = (control[N_NODES] - 1) // 2
                big_slot = nodes[node, SLOT] if children == 2 else small_slot
            else:
                small_slot, big_slot = 0, 1
            n_parts = _fill_histogram(
                thread,
                n_threads,
                words,
                n_columns,
                n_bins,
                rows[nodes[small, BUFFER]],
                ordered[nodes[small, BUFFER]],
                packed,
                nodes[small, BEGIN],
                nodes[small, END],
                histograms[small_slot],
                private,
            )
            if thread == 0:
                nodes[small, SLOT], nodes[big, SLOT] = small_slot, big_slot
                if limits_int[COLUMNS_PER_NODE] > 0:
                    seed = limits_int[SEED]
                    draw_columns(permitted, limits_int[COLUMNS_PER_NODE], seed, small, drawn[0])
                    draw_columns(permitted, limits_int[COLUMNS_PER_NODE], seed, big, drawn[1])
                elif group_start.shape[0] > 0:
                    for f in range(n_columns):
                        drawn[0, f], drawn[1, f] = permitted[f], permitted[f]
            barrier(sync, n_threads)
            merge(histograms[small_slot], private, n_parts, low, high)
            histogram = global_histogram(histograms[small_slot])
            if children == 2 and keep_parents:
                subtract(histograms[big_slot], histogram, low, high)
            elif children == 2:
                barrier(sync, n_threads)
                n_parts = _fill_histogram(
                    thread,
                    n_threads,
                    words,
                    n_columns,
                    n_bins,
                    rows[nodes[big, BUFFER]],
                    ordered[nodes[big, BUFFER]],
                    packed,
                    nodes[big, BEGIN],
                    nodes[big, END],
                    histograms[big_slot],
                    private,
                )
                barrier(sync, n_threads)
                merge(histograms[big_slot], private, n_parts, low, high)
                global_histogram(histograms[big_slot])
            for child in range(children):
                which = small if child == 0 else big
                best_gain[thread, child, 0] = NO_GAIN
                if nodes[which, END] - nodes[which, BEGIN] < limits_int[MIN_ROWS]:
                    continue
                search_columns(
                    first,
                    last,
                    histograms[small_slot if child == 0 else big_slot],
                    n_bins,
                    n_values,
                    drawn[child],
                    totals[which],
                    n_outputs,
                    layout,
                    scales,
                    limits,
                    monotonic,
                    bounds[which],
                    levels,
                    scratch[thread],
                    scan_sums[thread],
                    scan_gains[thread],
                    best_gain[thread, child],
                    best_split[thread, child],
                )
            barrier(sync, n_threads)
            if thread == 0:
                for child in range(children):
                    which = small if child == 0 else big
                    settle_split(
                        which,
                        histograms[small_slot if child == 0 else big_slot],
                        n_bins,
                        n_values,
                        nodes,
                        gains,
                        totals,
                        left_totals,
                        best_gain[:, child],
                        best_split[:, child],
                        layout,
                        scales,
                        limits,
                        levels,
                        left_sets,
                        scan_sums[0],
                        scan_gains[0],
                    )
        if thread == 0:
            control[NODE] = choose_node(nodes, gains, control[N_NODES], limits_int[MAX_LEAVES])
        barrier(sync, n_threads)
        node = control[NODE]
        if node < 0 or sync[ABORT] != 0:
            return
