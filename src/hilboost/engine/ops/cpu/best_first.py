"""Best-first growth: the open nodes of the largest gains are split next, some of them at a time.

One of them may turn out not to be among the first splits of the tree; then it is a leaf, so that
the size of the batches changes no tree (see :mod:`hilboost.engine.driver`).
"""

from numba import int64

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
    STEP,
    SUM,
    item_of,
)
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.growth import (
    begin_with_root,
    cut_columns,
    keeps_parents,
    open_batch,
)
from hilboost.engine.ops.cpu.histogram import add
from hilboost.engine.ops.cpu.node_histogram import complete_columns, cut_sums
from hilboost.engine.ops.cpu.nodes import LEFT, N_NODES, N_ROWS, RIGHT, SLOT
from hilboost.engine.ops.cpu.partition import count_left, cut_rows
from hilboost.engine.ops.cpu.split_search import (
    best_of_parts,
    scan_scratch,
    search_columns,
    settle_split,
)
from hilboost.engine.ops.cpu.sync import share


@inner
def search_part(task, threads, growth):
    """Search some columns for the best splits of the children of a split, or of the root."""
    keep_apart()
    batch, fields, scratch = growth.batch, growth.nodes.fields, growth.scratch
    item, n_columns = item_of(task, batch), growth.rules.n_values.shape[0]
    first_task = batch.first_task[item]
    n_tasks = batch.first_task[item + 1] - first_task
    first, last = share(n_columns, task - first_task, n_tasks)
    if fields[batch.pairs[item, 1], SLOT] >= 0:
        complete_columns(first, last, item, growth, growth.packed)
    if batch.modes[item] == ONLY_SUMMED:
        return
    small, big = batch.pairs[item, 0], batch.pairs[item, 1]
    for child in range(1 if small == big else 2):
        node = small if child == 0 else big
        gain, column, cut, left = NO_GAIN, int64(0), int64(0), int64(0)
        if fields[node, N_ROWS] >= growth.limits.min_rows:
            drawn, own = scratch.drawn[item, child], scan_scratch(scratch, threads.number)
            gain, column, cut, left = search_columns(first, last, node, drawn, growth, own)
        split = batch.splits[task, child]
        batch.gains[task, child] = gain
        split[0], split[1], split[2] = column, cut, left


@inner
def settle_batch(growth):
    """Settle the best splits that were found."""
    keep_apart()
    batch, scratch = growth.batch, scan_scratch(growth.scratch, int64(0))
    for item in range(batch.state[N_PAIRS]):
        if batch.modes[item] == ONLY_SUMMED:
            continue
        first, last = batch.first_task[item], batch.first_task[item + 1]
        small, big = batch.pairs[item, 0], batch.pairs[item, 1]
        for child in range(1 if small == big else 2):
            node = small if child == 0 else big
            gains, splits = batch.gains[first:last, child], batch.splits[first:last, child]
            settle_split(node, best_of_parts(gains, splits), growth, scratch)


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


@compiled
def choose_batch(max_leaves, room, batch, nodes):
    """Choose the nodes to divide next, and return how many there are.

    batch, nodes : Batch, NodeStore; room : int, how many nodes may be divided, some of them in vain
    """
    keep_apart()
    state = batch.state
    state[N_DIVIDED] = 0
    node = _accept_splits(max_leaves - 1, batch, nodes)
    if node < 0:
        return state[N_DIVIDED]
    n_left, n_divided = max_leaves - 1 - state[N_SPLITS], nodes.control[N_NODES] // 2
    most = min(batch.divided.shape[0], n_left, max(1, 1 + room - n_divided - n_left))
    for i in range(most):
        if i > 0:
            node = _best_open(batch, nodes, True)
        if node < 0:
            break
        batch.divided[i], batch.is_split[node] = node, 1
        state[N_DIVIDED] = i + 1
    for i in range(state[N_DIVIDED]):
        batch.is_split[batch.divided[i]] = 0
    return state[N_DIVIDED]


@inner
def _choose(growth):
    """Choose the nodes to divide next; without histograms of all leaves, none is in vain."""
    nodes, room = growth.nodes, int64(0)
    if keeps_parents(growth):
        room = min(nodes.fields.shape[0] // 2, growth.histograms.slots.shape[0] - 1)
    return choose_batch(growth.limits.max_leaves, room, growth.batch, nodes)


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
def _swap(array, i, j):
    for k in range(array.shape[1]):
        array[i, k], array[j, k] = array[j, k], array[i, k]


@inner
def _renumber(nodes, sums, categories, constraints, batch):
    """Number the nodes in the order in which the tree was split."""
    keep_apart()
    fields, n_nodes = nodes.fields, batch.state[N_TREE]
    place_of, node_at = batch.moves[0], batch.moves[1]
    for node in range(nodes.control[N_NODES]):
        place_of[node] = node_at[node] = node
    for i in range(n_nodes):
        node, other, j = batch.tree[i], node_at[i], place_of[batch.tree[i]]
        place_of[node], place_of[other], node_at[i], node_at[j] = i, j, node, other
        nodes.gains[i], nodes.gains[j] = nodes.gains[j], nodes.gains[i]
        _swap(fields, i, j)
        _swap(sums.totals, i, j)
        _swap(sums.left_totals, i, j)
        if categories is not None and categories.is_category.shape[0] > 0:
            _swap(categories.left_sets, i, j)
        if constraints is not None and constraints.bounds.shape[0] > 0:
            for k in range(constraints.bounds.shape[1]):
                _swap(constraints.bounds[:, k], i, j)
    for i in range(n_nodes):
        if fields[i, LEFT] >= 0:
            fields[i, LEFT] = place_of[fields[i, LEFT]]
            fields[i, RIGHT] = place_of[fields[i, RIGHT]]
    nodes.control[N_NODES] = n_nodes


@inner
def next_step(n_threads, growth):
    """Decide what follows a step, when all of its tasks are done."""
    keep_apart()
    batch = growth.batch
    step = batch.state[STEP]
    if step == FLAG and count_left(batch):
        return
    if step == BEGIN_TREE:
        begin_with_root(growth)
    elif step in (FLAG, MOVE):
        open_batch(growth)
    if step < SUM and batch.state[N_SUMMED] > 0:
        cut_sums(n_threads, growth)
        return
    if step < SEARCH and batch.state[N_PAIRS] > 0:
        cut_columns(batch.state[N_PAIRS], SEARCH, growth)
        return
    if step == SEARCH:
        settle_batch(growth)
    if _choose(growth) > 0:
        cut_rows(n_threads, growth.nodes, batch)
        return
    if batch.divided.shape[0] > 1:
        _undo(growth)
        _renumber(growth.nodes, growth.sums, growth.categories, growth.constraints, batch)
    batch.state[STEP] = DONE
