"""Growth of one tree with vector leaves by squared error: exact sums, no histograms.

A histogram of ``r`` outputs holds ``bins x r`` sums a column, which few rows never fill.  Here the
rows of a node are sorted by bin, one column at a time, and one running sum of ``r`` numbers passes
over them; for randomised trees one pass a drawn cut is enough.  The node of largest total variance
is split next (G2007, section 2.4.2).

Every thread executes the whole function; between barriers the candidate columns are shared out,
and thread 0 alone takes decisions, so that the tree is the same on any number of threads.
"""

import numpy as np
from numba import int64, uint32, uint64

from hilboost.backends.compiled import compiled, reordered
from hilboost.backends.draws import mix
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
)
from hilboost.backends.partition import flag_rows, move_rows
from hilboost.backends.split import NO_GAIN
from hilboost.backends.sync import ABORT, barrier, keep_apart, prefetch

# ``limits`` (float64): smallest weight of a leaf; share of the root's variance within which gains
# are equal; total variance up to which a node counts as pure.
MIN_WEIGHT, TIE, PURE = 0, 1, 2
# ``limits_int`` (int64)
MAX_LEAVES, MAX_DEPTH, N_COLUMNS_DRAWN, RANDOM_CUTS = range(4)
# Rows of ``found`` (FOUND_SIZE, d) float64: what was found out about each candidate column.
GAIN, CUT, SIDE, VALUE = range(4)
FOUND_SIZE = 4
N_CANDIDATES = 2
CONTROL_SIZE = 3
# Columns of ``masses`` (n_nodes, 3) float64: weight, sum of squares, total variance.
WEIGHT, SQUARES, VARIANCE = range(3)

_AHEAD = 8


@reordered
def _squares(sums, totals):
    """``|S|²`` and ``|T - S|²``."""
    left, right = 0.0, 0.0
    for j in range(sums.shape[0]):
        s = sums[j]
        t = totals[j] - s
        left += s * s
        right += t * t
    return left, right


@compiled
def _add_row(sums, gradients, row):
    for j in range(sums.shape[0]):
        sums[j] += gradients[row, j]


@compiled
def _offset(column, n):
    """Where the bins of a column begin in the flat table; rows are 8 bytes apart."""
    return uint64((column // 8) * n * 8 + column % 8)


@compiled
def _sort_by_bin(bins, offset, rows, begin, end, n_bins, starts, order):
    """Rows of a node by bin, stably; ``starts[b]`` is where those of bin ``b`` begin."""
    for b in range(n_bins + 1):
        starts[b] = 0
    for i in range(begin, end):
        starts[int64(bins[offset + uint64(8) * uint64(rows[i])]) + 1] += 1
    for b in range(n_bins):
        starts[b + 1] += starts[b]
    for i in range(begin, end):
        b = int64(bins[offset + uint64(8) * uint64(rows[i])])
        order[starts[b]] = rows[i]
        starts[b] += 1
    for b in range(n_bins, 0, -1):
        starts[b] = starts[b - 1]
    starts[0] = 0


@compiled
def scan_cuts(
    bins,
    column,
    n,
    n_bins,
    rows,
    begin,
    end,
    gradients,
    weights,
    totals,
    weight,
    min_weight,
    tie,
    starts,
    order,
    sums,
):
    """Best cut of one column over the rows ``[begin, end)`` of a node.

    Parameters
    ----------
    bins : flat uint8
    gradients : (n, k) float64, multiplied by the weights
    weights : (n,) float64 or (0,)
    totals : (k,) float64, their sum over the node; ``weight`` the sum of weights
    starts : (n_bins + 1,) int64, order : (m,) uint32, sums : (k,) float64; scratch

    Returns
    -------
    score, bin, missing_left
        Score ``|S_l|²/W_l + |S_r|²/W_r``; the first of nearly equal cuts wins.
    """
    keep_apart()
    _sort_by_bin(bins, _offset(column, n), rows, begin, end, n_bins, starts, order)
    weighted = weights.shape[0] > 0
    best, best_bin, best_left = NO_GAIN, 0, 0
    missing = n_bins - 1
    directions = 2 if starts[n_bins] > starts[missing] else 1
    for missing_left in range(directions):
        sums[:] = 0.0
        left = 0.0
        if missing_left:
            for i in range(starts[missing], starts[n_bins]):
                _add_row(sums, gradients, order[i])
                left += weights[order[i]] if weighted else 1.0
        for b in range(missing):
            if starts[b + 1] == starts[b]:
                continue
            for i in range(starts[b], starts[b + 1]):
                if i + _AHEAD < end - begin:
                    prefetch(gradients, int64(order[i + _AHEAD]) * gradients.shape[1])
                _add_row(sums, gradients, order[i])
                left += weights[order[i]] if weighted else 1.0
            if starts[b + 1] == starts[missing] and (directions == 1 or missing_left):
                break
            right = weight - left
            if left < min_weight:
                continue
            if right < min_weight or right <= 0.0:
                break
            a, c = _squares(sums, totals)
            score = a / left + c / right
            if score > best + tie:
                best, best_bin, best_left = score, b, missing_left
    return best, best_bin, best_left


@compiled
def score_cut(
    bins,
    column,
    n,
    missing_bin,
    rows,
    begin,
    end,
    gradients,
    weights,
    totals,
    weight,
    min_weight,
    cut,
    missing_left,
    sums,
):
    """Score of one cut, ``NO_GAIN`` where a side would be too light.

    The side with fewer rows is summed; the other one is what it lacks of the whole.
    """
    keep_apart()
    offset = _offset(column, n)
    weighted = weights.shape[0] > 0
    n_left = 0
    for i in range(begin, end):
        b = int64(bins[offset + uint64(8) * uint64(rows[i])])
        n_left += b <= cut or (missing_left and b == missing_bin)
    summed = 2 * n_left <= end - begin  # whether the left side is
    sums[:] = 0.0
    part = 0.0
    for i in range(begin, end):
        row = rows[i]
        b = int64(bins[offset + uint64(8) * uint64(row)])
        if (b <= cut or (missing_left and b == missing_bin)) == summed:
            _add_row(sums, gradients, row)
            part += weights[row] if weighted else 1.0
    rest = weight - part
    if part < min_weight or rest < min_weight or part <= 0.0 or rest <= 0.0:
        return NO_GAIN
    a, c = _squares(sums, totals)
    return a / part + c / rest


@compiled
def _draw_number(state):
    """The next state of the generator and a number in [0, 1)."""
    state = mix(state)
    return state, (state >> uint64(11)) * 1.1102230246251565e-16


@compiled
def _draw_cut(bins, column, n, n_bins, rows, begin, end, low, high, number, found, c):
    """A cut uniform between the node's least and greatest value; False where these are equal."""
    keep_apart()
    offset = _offset(column, n)
    first, last, any_missing = n_bins, -1, False
    for i in range(begin, end):
        b = int64(bins[offset + uint64(8) * uint64(rows[i])])
        if b == n_bins - 1:
            any_missing = True
        else:
            first, last = min(first, b), max(last, b)
    if last < 0 or (first == last and not any_missing):
        return False
    if first == last:  # values against missing ones
        found[CUT, c], found[SIDE, c], found[VALUE, c] = last, 0, high[column, last]
        return True
    value = low[column, first] + number * (high[column, last] - low[column, first])
    cut = first
    while cut + 1 < last and low[column, cut + 1] <= value:
        cut += 1
    # Between the values of the bins on both sides, so that rows and bins agree.
    value = max(value, high[column, cut])
    if value >= low[column, cut + 1]:
        value = high[column, cut]
    found[CUT, c], found[VALUE, c] = cut, value
    found[SIDE, c] = 0
    return True


@compiled
def _draw_candidates(
    node, bins, n, n_bins, rows, nodes, seeds, low, high, limits_int, columns, found, control
):
    """Columns, and cuts where these are random, that a node may be split by.

    With random cuts, columns without two values in the node do not count among those drawn.
    """
    keep_apart()
    d = columns.shape[0]
    wanted = limits_int[N_COLUMNS_DRAWN]
    random_cuts = limits_int[RANDOM_CUTS] != 0
    for f in range(d):
        columns[f] = f
    n_found = 0
    if wanted >= d and not random_cuts:
        control[N_CANDIDATES] = d
        return
    state = seeds[node]
    begin, end = nodes[node, BEGIN], nodes[node, END]
    left = d
    while left > 0 and n_found < wanted:
        state, number = _draw_number(state)
        chosen = n_found + int64(number * left)
        left -= 1
        column = columns[chosen]
        state, number = _draw_number(state)
        usable = True
        if random_cuts:
            usable = _draw_cut(
                bins, column, n, n_bins, rows, begin, end, low, high, number, found, n_found
            )
        if usable:
            columns[chosen] = columns[n_found]
            columns[n_found] = column
            n_found += 1
        else:  # out of the way, behind those that are left
            columns[chosen] = columns[n_found + left]
            columns[n_found + left] = column
    control[N_CANDIDATES] = n_found


@compiled
def _settle(
    node, rows, nodes, gains, values, weights, totals, masses, bins, n, n_bins, low, high, limits,
    limits_int, columns, found, control
):  # fmt: skip
    """Choose among the candidates and note the split; False where there is none."""
    keep_apart()
    tie = limits[TIE] * masses[0, VARIANCE] / masses[0, WEIGHT] * masses[node, WEIGHT]
    best = -1
    for c in range(control[N_CANDIDATES]):
        if found[GAIN, c] > NO_GAIN and (best < 0 or found[GAIN, c] > found[GAIN, best] + tie):
            best = c
    if best < 0:
        return False
    column, cut = columns[best], int64(found[CUT, best])
    offset = _offset(column, n)
    weighted = weights.shape[0] > 0
    following, left, n_missing = n_bins, 0.0, 0
    for i in range(nodes[node, BEGIN], nodes[node, END]):
        b = int64(bins[offset + uint64(8) * uint64(rows[i])])
        n_missing += b == n_bins - 1
        if b <= cut:
            left += weights[rows[i]] if weighted else 1.0
        if cut < b < n_bins - 1:
            following = min(following, b)
    missing_left = int64(found[SIDE, best])
    if n_missing == 0:  # rows without a value follow the heavier part where none was seen
        missing_left = int64(2 * left >= masses[node, WEIGHT])
    value = found[VALUE, best]
    if limits_int[RANDOM_CUTS] == 0:
        value = high[column, cut]
        if following < n_bins:
            middle = value + (0.5 * low[column, following] - 0.5 * value)
            if value <= middle < low[column, following]:
                value = middle
    nodes[node, COLUMN], nodes[node, BIN], nodes[node, MISSING_LEFT] = column, cut, missing_left
    values[node] = value
    squares = 0.0
    for j in range(totals.shape[1]):
        squares += totals[node, j] * totals[node, j]
    gains[node] = max(found[GAIN, best] - squares / masses[node, WEIGHT], 0.0)
    return True


@compiled
def weigh(node, rows, nodes, gradients, weights, row_squares, totals, masses):
    """Sums over a node's rows: gradients, weight, squares, total variance."""
    keep_apart()
    weighted = weights.shape[0] > 0
    sums = totals[node]
    sums[:] = 0.0
    weight, squares = 0.0, 0.0
    for i in range(nodes[node, BEGIN], nodes[node, END]):
        row = rows[i]
        _add_row(sums, gradients, row)
        weight += weights[row] if weighted else 1.0
        squares += row_squares[row]
    middle, _ = _squares(sums, sums)
    masses[node, WEIGHT], masses[node, SQUARES] = weight, squares
    masses[node, VARIANCE] = squares - middle / weight if weight > 0.0 else 0.0


@compiled
def _open_children(node, n_left, nodes, seeds, gains, control):
    """A child's draws follow from its parent's seed, whatever the order of growth."""
    left = control[N_NODES]
    seeds[left] = mix(seeds[node] ^ uint64(0xD1342543DE82EF95))
    seeds[left + 1] = mix(seeds[node] ^ uint64(0x9FB21C651E98DF25))
    begin, end = nodes[node, BEGIN], nodes[node, END]
    for child in (left, left + 1):
        nodes[child, BUFFER] = 1 - nodes[node, BUFFER]
        nodes[child, DEPTH] = nodes[node, DEPTH] + 1
        nodes[child, SLOT] = 0
        nodes[child, LEFT] = -1
        nodes[child, RIGHT] = -1
        gains[child] = NO_GAIN
    nodes[left, BEGIN], nodes[left, END] = begin, begin + n_left
    nodes[left + 1, BEGIN], nodes[left + 1, END] = begin + n_left, end
    nodes[node, LEFT], nodes[node, RIGHT] = left, left + 1
    control[N_NODES] = left + 2


@compiled
def _next_node(nodes, masses, control, limits, limits_int):
    """The open node of largest total variance, the first of equals; -1 where growth ends.

    ``SLOT`` is 1 for nodes that cannot be split.  A tree that may have a leaf for every row is the
    same in any order of growth, and takes its nodes as they come.
    """
    n_nodes = control[N_NODES]
    n_rows = nodes[0, END] - nodes[0, BEGIN]
    if (n_nodes + 1) // 2 >= limits_int[MAX_LEAVES]:
        return -1
    in_turn = limits_int[MAX_LEAVES] >= n_rows
    first = max(control[NODE], 0) if in_turn else 0
    chosen = -1
    for i in range(first, n_nodes):
        if nodes[i, LEFT] >= 0 or nodes[i, SLOT] != 0:
            continue
        if (
            nodes[i, END] - nodes[i, BEGIN] < 2
            or masses[i, VARIANCE] <= limits[PURE]
            or nodes[i, DEPTH] >= limits_int[MAX_DEPTH]
            or masses[i, WEIGHT] < 2 * limits[MIN_WEIGHT]
        ):
            nodes[i, SLOT] = 1
            continue
        if in_turn:
            return i
        if chosen < 0 or masses[i, VARIANCE] > masses[chosen, VARIANCE]:
            chosen = i
    return chosen


@compiled
def grow_vector(
    thread,
    n_threads,
    sync,
    bins,
    n,
    n_bins,
    low,
    high,
    gradients,
    weights,
    row_squares,
    rows,
    flags,
    nodes,
    seeds,
    gains,
    values,
    totals,
    masses,
    columns,
    found,
    starts,
    order,
    sums,
    control,
    limits,
    limits_int,
):
    """Grow one tree.

    Parameters
    ----------
    thread, n_threads : int
    sync : (SYNC_SIZE,) int64, zero
    bins : flat uint8, the binned table
    n, n_bins : int, rows of the table and bins of a column with the last one for missing values
    low, high : (d, n_bins) float64, least and greatest value in every bin
    gradients : (n, k) float64, multiplied by the weights
    weights : (n,) float64 or (0,)
    row_squares : (n,) float64, weight times squared length of each row's gradient
    rows : (2, m) uint32, the rows to learn from in ``rows[0]``
    flags : (m,) uint8
    nodes : (2 * MAX_LEAVES - 1, N_NODE_FIELDS) int64, node 0 filled
    seeds : (n_nodes,) uint64, that of node 0 filled
    gains, values : (n_nodes,) float64, of the splits
    totals : (n_nodes, k) float64, masses : (n_nodes, 3) float64
    columns : (d,) int64, found : (FOUND_SIZE, d) float64
    starts : (n_threads, n_bins + 1) int64, order : (n_threads, m) uint32
    sums : (n_threads, k) float64
    control : (CONTROL_SIZE,) int64, ``control[NODE] = -1`` and ``control[N_NODES] = 1``
    limits, limits_int : see above

    Notes
    -----
    Cost O(m d k log(leaves)) for balanced trees, with the number of columns drawn in place of ``d``
    where these are.
    """
    unordered = np.empty((2, 0), np.int64)
    if thread == 0:
        weigh(0, rows[0], nodes, gradients, weights, row_squares, totals, masses)
    while True:
        if thread == 0:
            node = _next_node(nodes, masses, control, limits, limits_int)
            control[NODE] = node
            if node >= 0:
                _draw_candidates(
                    node,
                    bins,
                    n,
                    n_bins,
                    rows[nodes[node, BUFFER]],
                    nodes,
                    seeds,
                    low,
                    high,
                    limits_int,
                    columns,
                    found,
                    control,
                )
        barrier(sync, n_threads)
        node = control[NODE]
        if node < 0 or sync[ABORT] != 0:
            return
        here = rows[nodes[node, BUFFER]]
        begin, end = nodes[node, BEGIN], nodes[node, END]
        tie = limits[TIE] * masses[0, VARIANCE] / masses[0, WEIGHT] * masses[node, WEIGHT]
        for c in range(thread, control[N_CANDIDATES], n_threads):
            if limits_int[RANDOM_CUTS] != 0:
                found[GAIN, c] = score_cut(
                    bins,
                    columns[c],
                    n,
                    n_bins - 1,
                    here,
                    begin,
                    end,
                    gradients,
                    weights,
                    totals[node],
                    masses[node, WEIGHT],
                    limits[MIN_WEIGHT],
                    int64(found[CUT, c]),
                    int64(found[SIDE, c]),
                    sums[thread],
                )
            else:
                score, cut, side = scan_cuts(
                    bins,
                    columns[c],
                    n,
                    n_bins,
                    here,
                    begin,
                    end,
                    gradients,
                    weights,
                    totals[node],
                    masses[node, WEIGHT],
                    limits[MIN_WEIGHT],
                    tie,
                    starts[thread],
                    order[thread],
                    sums[thread],
                )
                found[GAIN, c], found[CUT, c], found[SIDE, c] = score, cut, side
        barrier(sync, n_threads)
        if thread == 0:
            if _settle(
                node,
                here,
                nodes,
                gains,
                values,
                weights,
                totals,
                masses,
                bins,
                n,
                n_bins,
                low,
                high,
                limits,
                limits_int,
                columns,
                found,
                control,
            ):
                source = nodes[node, BUFFER]
                n_left = flag_rows(
                    bins,
                    n,
                    nodes[node, COLUMN],
                    nodes[node, BIN],
                    n_bins - 1,
                    nodes[node, MISSING_LEFT],
                    here,
                    begin,
                    end,
                    flags,
                )
                move_rows(
                    flags,
                    here,
                    unordered[0],
                    rows[1 - source],
                    unordered[1],
                    begin,
                    end,
                    begin,
                    begin + n_left,
                )
                _open_children(node, n_left, nodes, seeds, gains, control)
                for child in (nodes[node, LEFT], nodes[node, RIGHT]):
                    weigh(
                        child,
                        rows[1 - source],
                        nodes,
                        gradients,
                        weights,
                        row_squares,
                        totals,
                        masses,
                    )
            else:
                nodes[node, SLOT] = 1
                gains[node] = NO_GAIN


@compiled
def value_ranges(bins, n, d, n_bins, X, low, high):
    """Least and greatest value of every bin of every column, (d, n_bins).

    X : (n, d); ``low`` filled with inf, ``high`` with -inf
    """
    for column in range(d):
        offset = _offset(column, n)
        for i in range(n):
            b = int64(bins[offset + uint64(8) * uint64(uint32(i))])
            if b < n_bins - 1:
                x = X[i, column]
                low[column, b] = min(low[column, b], x)
                high[column, b] = max(high[column, b], x)
