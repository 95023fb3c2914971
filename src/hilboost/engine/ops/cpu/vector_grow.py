"""Growth of one tree with vector leaves by squared error.

The node of largest total variance is split next (G2007, section 2.4.2).  Every thread executes the
whole function; between barriers the candidate columns are shared out, and thread 0 alone takes
decisions, so that the tree is the same on any number of threads.
"""

from numba import int64

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.nodes import (
    BEGIN,
    BIN,
    COLUMN,
    DEPTH,
    END,
    LEFT,
    MISSING_LEFT,
    N_LEFT,
    N_LEFT_HERE,
    NODE,
    RIGHT,
    choose_node,
    open_children,
)
from hilboost.engine.ops.cpu.partition import divide_rows
from hilboost.engine.ops.cpu.sync import ABORT, barrier
from hilboost.engine.ops.cpu.vector_candidates import (
    CUT,
    GAIN,
    SIDE,
    VALUE,
    best_candidate,
    draw_candidates,
)
from hilboost.engine.ops.cpu.vector_cuts import (
    ALMOST,
    CutScratch,
    NodeRows,
    add_row,
    bin_of,
    scan_cuts,
    score_cut,
    squares,
)
from hilboost.engine.ops.cpu.vector_levels import (
    LevelScratch,
    scan_subsets,
    score_subset,
    settle_subset,
)
from hilboost.engine.ops.cpu.vector_state import SQUARES, VARIANCE, WEIGHT


@inner
def _rows_of(node, growth):
    fields, sums = growth.nodes.fields, growth.sums
    rows = growth.buffers.rows
    weight = sums.masses[node, WEIGHT]
    return NodeRows(rows, fields[node, BEGIN], fields[node, END], sums.totals[node], weight)


@inner
def _tie(node, growth):
    """Gains of a node that differ by no more are equal."""
    masses = growth.sums.masses
    return growth.limits.tie * masses[0, VARIANCE] / masses[0, WEIGHT] * masses[node, WEIGHT]


@compiled
def weigh(node, growth):
    """Sums over a node's rows: gradients, weight, squares, total variance; and its priority."""
    keep_apart()
    fields, limits, gradients = growth.nodes.fields, growth.limits, growth.gradients
    rows, masses = growth.buffers.rows, growth.sums.masses
    n_rows = fields[node, END] - fields[node, BEGIN]
    weighted = gradients.weights.shape[0] > 0
    totals = growth.sums.totals[node]
    totals[:] = 0.0
    weight, total_squares = 0.0, 0.0
    for i in range(fields[node, BEGIN], fields[node, END]):
        row = rows[i]
        add_row(totals, gradients.values, row)
        weight += gradients.weights[row] if weighted else 1.0
        total_squares += gradients.squares[row]
    middle, _ = squares(totals, totals)
    variance = total_squares - middle / weight if weight > 0.0 else 0.0
    masses[node, WEIGHT], masses[node, SQUARES] = weight, total_squares
    masses[node, VARIANCE] = variance
    done = (
        n_rows < 2
        or variance <= limits.pure
        or fields[node, DEPTH] >= limits.max_depth
        or weight < 2 * limits.min_weight
    )
    growth.nodes.priority[node] = NO_GAIN if done else variance


@inner
def _choose(growth):
    """Choose the node to split next, and the candidates for its split."""
    nodes, limits = growth.nodes, growth.limits
    node = choose_node(nodes, limits.max_leaves, limits.in_turn)
    nodes.control[NODE] = node
    if node >= 0:
        draw_candidates(
            growth.table,
            growth.ranges,
            growth.categories.is_category,
            _rows_of(node, growth),
            nodes.seeds[node],
            limits.n_columns,
            limits.random_cuts,
            growth.candidates,
        )


@inner
def _levels_of(levels, thread):
    """The memory of one thread."""
    return LevelScratch(
        levels.bins[thread],
        levels.order[thread],
        levels.weights[thread],
        levels.sums[thread],
        levels.gram[thread],
        levels.steps[thread],
        levels.subsets[thread],
    )


@inner
def _try_levels(table, column, here, gradients, limits, tie, own, levels, found, left_set):
    """Find the best subset of the levels of a column, or score the drawn one."""
    min_weight = limits.min_weight
    if limits.random_cuts:
        side = int64(found[SIDE])
        found[GAIN] = score_subset(
            table, column, here, gradients, min_weight, left_set, side, own.sums
        )
    else:
        found[CUT] = 0.0
        found[GAIN], found[SIDE] = scan_subsets(
            table, column, here, gradients, min_weight, tie, own, levels, left_set
        )


@inner
def _try_candidates(threads, node, growth):
    """Find the best splits, or score the drawn ones, of a thread's share of the candidates."""
    table, gradients, limits = growth.table, growth.gradients, growth.limits
    candidates, scratch, thread = growth.candidates, growth.scratch, threads.number
    is_category = growth.categories.is_category
    here, tie = _rows_of(node, growth), _tie(node, growth)
    own = CutScratch(scratch.starts[thread], scratch.order[thread], scratch.sums[thread])
    levels = _levels_of(scratch.levels, thread)
    for c in range(thread, candidates.number[0], threads.n_threads):
        column, found = candidates.columns[c], candidates.found[:, c]
        if is_category.shape[0] > 0 and is_category[column]:
            _try_levels(
                table, column, here, gradients, limits, tie, own, levels,
                found, candidates.left_sets[c],
            )  # fmt: skip
        elif limits.random_cuts:
            cut, side = int64(found[CUT]), int64(found[SIDE])
            found[GAIN] = score_cut(
                table, column, here, gradients, limits.min_weight, cut, side, own.sums
            )
        else:
            found[GAIN], found[CUT], found[SIDE] = scan_cuts(
                table, column, here, gradients, limits.min_weight, tie, own
            )


@inner
def _around_cut(table, column, cut, here, weights):
    """The weight below a cut, the next bin above it that holds rows, and how many lack a value."""
    offset, missing = offset_of(table, column), table.n_bins - 1
    following, left, n_missing = table.n_bins, 0.0, 0
    for i in range(here.begin, here.end):
        b = bin_of(table, offset, here.rows[i])
        n_missing += int64(b == missing)
        if b <= cut:
            left += weights[here.rows[i]] if weights.shape[0] > 0 else 1.0
        if cut < b < missing:
            following = min(following, b)
    return left, following, n_missing


@inner
def _middle(low, high, cut, following):
    """The value halfway between two bins, the lower one where there is none between them."""
    value = high[cut]
    if following < low.shape[0]:
        middle = value + (0.5 * low[following] - 0.5 * value)
        if value <= middle < low[following]:
            value = middle
    return value


@inner
def _settle_cut(best, here, growth):
    """Where missing values go, and the value of the cut."""
    ranges, found = growth.ranges, growth.candidates.found
    column, cut = growth.candidates.columns[best], int64(found[CUT, best])
    missing_left, value = int64(found[SIDE, best]), found[VALUE, best]
    left, following, n_missing = _around_cut(
        growth.table, column, cut, here, growth.gradients.weights
    )
    if n_missing == 0:  # rows without a value follow the heavier part where none was seen
        missing_left = int64(2 * left >= ALMOST * here.weight)
    if not growth.limits.random_cuts:
        value = _middle(ranges.low[column], ranges.high[column], cut, following)
    return missing_left, value


@inner
def _settle_levels(node, best, here, growth):
    """Note which levels go left; returns where missing values go."""
    candidates, left_set = growth.candidates, growth.categories.left_sets[node]
    column, missing_left = candidates.columns[best], int64(candidates.found[SIDE, best])
    for w in range(left_set.shape[0]):
        left_set[w] = candidates.left_sets[best, w]
    weights, present = growth.gradients.weights, candidates.present
    return settle_subset(growth.table, column, here, weights, missing_left, present, left_set)


@inner
def _settle(node, growth):
    """Choose among the candidates and note the split; a node without any is not to be split."""
    keep_apart()
    nodes, sums, found = growth.nodes, growth.sums, growth.candidates.found
    best = best_candidate(growth.candidates, _tie(node, growth))
    if best < 0:
        nodes.priority[node] = NO_GAIN
        return
    column, cut = growth.candidates.columns[best], int64(found[CUT, best])
    here, categories = _rows_of(node, growth), growth.categories
    if categories.is_category.shape[0] > 0 and categories.is_category[column]:
        missing_left, value = _settle_levels(node, best, here, growth), 0.0
    else:
        missing_left, value = _settle_cut(best, here, growth)
    fields = nodes.fields
    fields[node, COLUMN], fields[node, BIN], fields[node, MISSING_LEFT] = column, cut, missing_left
    sums.values[node] = value
    total_squares = 0.0
    for j in range(here.totals.shape[0]):
        total_squares += here.totals[j] * here.totals[j]
    nodes.gains[node] = max(found[GAIN, best] - total_squares / here.weight, 0.0)


@inner
def _open(node, growth):
    """Open the children of a node that was divided, and weigh them."""
    control = growth.nodes.control
    control[N_LEFT] = control[N_LEFT_HERE]
    open_children(growth.nodes)
    left, right = growth.nodes.fields[node, LEFT], growth.nodes.fields[node, RIGHT]
    weigh(left, growth)
    weigh(right, growth)


@compiled
def grow_vector(threads, growth):
    """Grow one tree.

    threads : Threads, growth : VectorGrowth

    Notes
    -----
    Cost O(m d k log(leaves)) for balanced trees, with the number of columns drawn in place of ``d``
    where these are.
    """
    nodes = growth.nodes
    if threads.number == 0:
        weigh(nodes.control[NODE] + 1, growth)  # the root; a literal 0 would be a type of its own
    while True:
        if threads.number == 0:
            _choose(growth)
        barrier(threads)
        node = nodes.control[NODE]
        if node < 0 or threads.sync[ABORT] != 0:
            return
        _try_candidates(threads, node, growth)
        barrier(threads)
        if threads.number == 0:
            _settle(node, growth)
        barrier(threads)
        if nodes.priority[node] > NO_GAIN:
            divide_rows(threads, node, growth.table, nodes, growth.categories, growth.buffers)
            barrier(threads)
            if threads.number == 0:
                _open(node, growth)
