"""Growth of one tree with vector leaves by squared error.

The node of largest total variance is split next (G2007, section 2.4.2).  Threads share the
candidate columns and the rows that are divided; whoever completes a step decides alone what
follows, so that the tree is the same on any number of threads.
"""

from numba import int64, uint64

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.references import by_reference
from hilboost.backends.sums_in_eights import squares
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    CANDIDATES,
    DONE,
    FLAG,
    MOVE,
    N_DIVIDED,
    STEP,
    n_tasks_of,
    n_threads_worth,
    start_step,
)
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.nodes import (
    ARRAY,
    BEGIN,
    BIN,
    COLUMN,
    DEPTH,
    END,
    LEFT,
    MISSING_LEFT,
    N_ROWS,
    NODE,
    RIGHT,
    choose_node,
    open_children,
)
from hilboost.engine.ops.cpu.partition import count_left, cut_rows, flag_part, move_part
from hilboost.engine.ops.cpu.sync import claim, finish, is_last, publish
from hilboost.engine.ops.cpu.vector_candidates import (
    CUT,
    GAIN,
    SIDE,
    VALUE,
    best_candidate,
    draw_candidates,
    find_present,
)
from hilboost.engine.ops.cpu.vector_cuts import (
    ALMOST,
    CutScratch,
    NodeColumn,
    NodeRows,
    add_row,
    bin_of,
    holds,
    put_cut,
    scan_cuts,
    score_split,
)
from hilboost.engine.ops.cpu.vector_levels import (
    LevelScratch,
    scan_subsets,
)
from hilboost.engine.ops.cpu.vector_state import SQUARES, VARIANCE, WEIGHT

_NANOSECONDS_PER_NUMBER = 1
"""That a candidate needs for each output of a row, roughly."""


@inner
def rows_of(node, growth):
    """The rows of a node, and their sums."""
    fields, sums = growth.nodes.fields, growth.sums
    rows = growth.buffers.rows[fields[node, ARRAY]]
    weight = sums.masses[node, WEIGHT]
    return NodeRows(rows, fields[node, BEGIN], fields[node, END], sums.totals[node], weight)


@inner
def _column_of(c, node, growth):
    """The column of a candidate, with the rows of a node."""
    number = growth.candidates.columns[c]
    return NodeColumn(growth.table, number, rows_of(node, growth), growth.gradients)


@inner
def tie_of(weight, growth):
    """Gains of a node of this weight that differ by no more are equal."""
    masses = growth.sums.masses
    return growth.limits.tie * masses[0, VARIANCE] / masses[0, WEIGHT] * weight


@compiled
def sum_rows(node, growth):
    """Sum the gradients, weights and squares of a node's rows."""
    keep_apart()
    fields, gradients = growth.nodes.fields, growth.gradients
    rows, masses = growth.buffers.rows[fields[node, ARRAY]], growth.sums.masses
    weighted = gradients.weights.shape[0] > 0
    totals = growth.sums.totals[node]
    totals[:] = 0.0
    weight, total_squares = 0.0, 0.0
    for i in range(fields[node, BEGIN], fields[node, END]):
        row = rows[i]
        add_row(totals, gradients.values, row)
        weight += gradients.weights[row] if weighted else 1.0
        total_squares += gradients.squares[row]
    masses[node, WEIGHT], masses[node, SQUARES] = weight, total_squares


@compiled
def set_priority(node, growth):
    """Note the total variance of a node, by which it may be split next, from its sums."""
    keep_apart()
    fields, limits, totals = growth.nodes.fields, growth.limits, growth.sums.totals[node]
    masses = growth.sums.masses[node]
    weight = masses[WEIGHT]
    middle, _ = squares(totals, totals)
    variance = masses[SQUARES] - middle / weight if weight > 0.0 else 0.0
    masses[VARIANCE] = variance
    done = (
        fields[node, N_ROWS] < 2
        or variance <= limits.pure
        or fields[node, DEPTH] >= limits.max_depth
        or weight < 2 * limits.min_weight
    )
    growth.nodes.priority[node] = NO_GAIN if done else variance


@inner
def _weigh(node, growth):
    sum_rows(node, growth)
    set_priority(node, growth)


@inner
def _choose(growth):
    """Choose the node to split next, and the candidates for its split."""
    nodes, limits = growth.nodes, growth.limits
    node = choose_node(nodes, limits.max_leaves, limits.in_turn)
    nodes.control[NODE] = node
    if node >= 0:
        draw_candidates(growth.table, rows_of(node, growth), nodes.seeds[node], growth)


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
def _is_category(c, growth):
    """Whether the column of a candidate has levels."""
    marked = growth.categories.is_category
    return marked.shape[0] > 0 and marked[growth.candidates.columns[c]] != 0


@inner
def try_candidate(thread, c, column, growth):
    """Find the best split by a column, candidate ``c``, or score the drawn one."""
    scratch, found = growth.scratch, growth.candidates.found[:, c]
    own = CutScratch(scratch.starts[thread], scratch.order[thread], scratch.sums[thread])
    min_weight, left_set = growth.limits.min_weight, growth.candidates.left_sets[c]
    tie, missing = tie_of(column.here.weight, growth), column.table.n_bins - 1
    by_level = _is_category(c, growth)
    if growth.limits.random_cuts:
        found[GAIN] = score_split(column, min_weight, left_set, not by_level, own.sums)
    elif by_level:
        levels = _levels_of(scratch.levels, thread)
        found[GAIN] = scan_subsets(column, min_weight, tie, own, levels, left_set)
        found[CUT] = 0.0
    else:
        found[GAIN], cut, missing_left = scan_cuts(column, min_weight, tie, own)
        found[CUT] = cut
        put_cut(cut, missing_left, missing, left_set)
    found[SIDE] = int64(holds(left_set, missing))


@inner
def _weight_on_left(column, left_set):
    """The weight of the rows that go left."""
    table, here, weights = column.table, column.here, column.gradients.weights
    offset, weight = offset_of(table, column.number), 0.0
    for i in range(here.begin, here.end):
        if holds(left_set, bin_of(table, offset, here.rows[i])):
            weight += weights[here.rows[i]] if weights.shape[0] > 0 else 1.0
    return weight


@inner
def _middle(low, high, cut, present):
    """The value halfway between two bins, the lower one where there is none between them."""
    value, following, missing = high[cut], cut + 1, low.shape[0] - 1
    while following < missing and not holds(present, following):
        following += 1
    if following < missing:
        middle = value + (0.5 * low[following] - 0.5 * value)
        if value <= middle < low[following]:
            value = middle
    return value


@inner
def settle_candidate(c, column, growth):
    """Send unseen levels and missing values to the heavier side, and note the value of a cut."""
    candidates, ranges = growth.candidates, growth.ranges
    found, left_set, present = candidates.found[:, c], candidates.left_sets[c], candidates.present
    number = candidates.columns[c]
    _, _, any_missing = find_present(column.table, column.number, column.here, present)
    weight = _weight_on_left(column, left_set)
    heavier = 2.0 * weight >= ALMOST * column.here.weight
    if not any_missing:
        found[SIDE] = int64(heavier)
    if _is_category(c, growth):
        for w in range(SET_WORDS):
            left_set[w] = left_set[w] & present[w] | (~present[w] if heavier else uint64(0))
        found[VALUE] = 0.0
    elif not growth.limits.random_cuts:
        low, high = ranges.low[number], ranges.high[number]
        found[VALUE] = _middle(low, high, int64(found[CUT]), present)


@inner
def note_split(node, c, growth):
    """Note the split of a node by a candidate."""
    fields, candidates, totals = growth.nodes.fields, growth.candidates, growth.sums.totals[node]
    found = candidates.found[:, c]
    fields[node, COLUMN], fields[node, BIN] = candidates.columns[c], int64(found[CUT])
    fields[node, MISSING_LEFT] = int64(found[SIDE])
    growth.sums.values[node] = found[VALUE]
    if _is_category(c, growth):
        left_set = growth.categories.left_sets[node]
        for w in range(left_set.shape[0]):
            left_set[w] = candidates.left_sets[c, w]
    total_squares = 0.0
    for j in range(totals.shape[0]):
        total_squares += totals[j] * totals[j]
    weight = growth.sums.masses[node, WEIGHT]
    growth.nodes.gains[node] = max(found[GAIN] - total_squares / weight, 0.0)


@inner
def _settle(node, growth):
    """Choose among the candidates and note the split; a node without any is not to be split."""
    keep_apart()
    weight = growth.sums.masses[node, WEIGHT]
    best = best_candidate(growth.candidates, tie_of(weight, growth))
    if best < 0:
        growth.nodes.priority[node] = NO_GAIN
        return
    settle_candidate(best, _column_of(best, node, growth), growth)
    note_split(node, best, growth)


@inner
def _open(node, growth):
    """Open the children of a node that was divided, and weigh them."""
    open_children(node, growth.batch.n_left_here[0], growth.batch.n_left[0], growth.nodes)
    left, right = growth.nodes.fields[node, LEFT], growth.nodes.fields[node, RIGHT]
    _weigh(left, growth)
    _weigh(right, growth)


@inner
def _next_step(n_threads, growth):
    """Decide what follows a step, when all of its tasks are done."""
    keep_apart()
    nodes, batch = growth.nodes, growth.batch
    step, node = batch.state[STEP], nodes.control[NODE]
    if step == FLAG and count_left(batch):
        return
    if step == BEGIN_TREE:
        _weigh(node + 1, growth)  # the root; a literal 0 would be a type of its own
    elif step in (FLAG, MOVE):
        _open(node, growth)
    else:
        _settle(node, growth)
        if nodes.priority[node] > NO_GAIN:
            batch.divided[0], batch.state[N_DIVIDED] = node, 1
            cut_rows(n_threads, nodes, batch)
            return
    _choose(growth)
    node = nodes.control[NODE]
    if node < 0:
        batch.state[STEP] = DONE
        return
    n_candidates = growth.candidates.number[0]
    n_numbers = (nodes.fields[node, END] - nodes.fields[node, BEGIN]) * growth.sums.totals.shape[1]
    batch.first_task[1] = n_candidates
    start_step(CANDIDATES, 1, _NANOSECONDS_PER_NUMBER * n_numbers * n_candidates, batch)


@inner
def _do_task(task, threads, growth):
    """Do a task of the current step."""
    keep_apart()
    nodes, batch, buffers = growth.nodes, growth.batch, growth.buffers
    step, node = batch.state[STEP], nodes.control[NODE]
    if step == FLAG:
        flag_part(task, growth.table, nodes, growth.categories, buffers, batch)
    elif step == MOVE:
        move_part(task, nodes, buffers, batch)
    elif step == CANDIDATES:
        try_candidate(threads.number, task, _column_of(task, node, growth), growth)


@inner
def _take_steps(threads, growth):
    """Decide on the next steps and execute them, up to one that is worth sharing."""
    batch = growth.batch
    while True:
        _next_step(threads.n_threads, growth)
        if batch.state[STEP] == DONE:
            finish(threads)
            return
        n_threads, n_waked = n_threads_worth(batch, threads.n_threads)
        if n_threads > 1:
            publish(threads, n_tasks_of(batch), n_waked)
            return
        for task in range(n_tasks_of(batch)):
            _do_task(task, threads, growth)


@compiled
def grow_vector(threads, growth):
    """Grow one tree.

    threads : Threads, growth : VectorGrowth

    Notes
    -----
    Cost O(m d k log(leaves)) for balanced trees, with the number of columns drawn in place of ``d``
    where these are.
    """
    growth, task = by_reference(growth), claim(threads)
    while task >= 0:
        _do_task(task, threads, growth)
        if is_last(threads):
            _take_steps(threads, growth)
        task = claim(threads)
