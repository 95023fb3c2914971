"""The nodes of a growing tree, which of them is split next, and the grown tree as arrays."""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.random_bits import mix
from hilboost.engine.ops.cpu.column_splits import NO_GAIN

# Columns of ``NodeStore.fields``.  COLUMN, BIN, MISSING_LEFT are the best split found so far while
# LEFT is -1, and the node's split after.  The rows of a node are ``rows[ARRAY, BEGIN:END]``, once
# divided those of its left child are in ``rows[LEFT_ARRAY]``; N_ROWS counts those on other machines
# as well.  SLOT is the histogram of an open node.
BEGIN, END, DEPTH, SLOT, COLUMN, BIN, MISSING_LEFT, LEFT, RIGHT, N_ROWS, ARRAY = range(11)
LEFT_ARRAY, N_NODE_FIELDS = 11, 12
# Entries of ``NodeStore.control``: node to split (-1: none), nodes so far; whether the histogram of
# the root is given; how many rows may be summed in children that are not searched, so that all
# leaves have histograms in the end.
NODE, N_NODES, ROOT_GIVEN, SPARE = range(4)
CONTROL_SIZE = 4


class NodeStore(NamedTuple):
    """The table of the nodes, and what the threads agree on."""

    fields: NDArray[np.int64]  # (n_nodes, N_NODE_FIELDS) int64
    gains: NDArray[np.float64]  # (n_nodes,) float64: of the splits
    # (n_nodes,) float64: the open node of the largest is split next; ``NO_GAIN`` where a node is
    # not to be split. May be the array ``gains`` itself.
    priority: NDArray[np.float64]
    control: NDArray[np.int64]  # (CONTROL_SIZE,) int64
    # (n_nodes,) uint64: of the random draws of a node.  The root's is given; the others follow from
    # the path to the node, whatever the order in which nodes are opened.
    seeds: NDArray[np.uint64]


def empty_nodes(n_nodes: int, by_gain: bool) -> NodeStore:
    """Room for so many nodes; the next one is that of the largest gain, or of a priority apart."""
    gains = np.empty(n_nodes)
    return NodeStore(
        np.zeros((n_nodes, N_NODE_FIELDS), dtype=np.int64),
        gains,
        gains if by_gain else np.empty(n_nodes),
        np.zeros(CONTROL_SIZE, dtype=np.int64),
        np.zeros(n_nodes, dtype=np.uint64),
    )


@compiled
def open_root(nodes, n_rows, seed):
    """Make node 0 an open leaf with all rows; the random draws of the tree follow from ``seed``.

    nodes : NodeStore
    """
    fields, control = nodes.fields, nodes.control
    for field in range(fields.shape[1]):
        fields[0, field] = 0
    fields[0, END] = fields[0, N_ROWS] = n_rows
    fields[0, SLOT] = fields[0, LEFT] = fields[0, RIGHT] = -1
    nodes.gains[0] = nodes.priority[0] = NO_GAIN
    for entry in range(control.shape[0]):
        control[entry] = 0
    control[NODE], control[N_NODES] = -1, 1
    nodes.seeds[0] = seed


@compiled
def choose_node(nodes, max_leaves, in_turn):
    """The open node of the largest priority, the first of equals; -1 where growth ends.

    nodes : NodeStore
    in_turn : bool
        Take open nodes as they come: a tree that splits every node it can is the same in any order.
    """
    n_nodes = nodes.control[N_NODES]
    if (n_nodes + 1) // 2 >= max_leaves:
        return -1
    chosen = -1
    first = max(nodes.control[NODE], 0) if in_turn else 0
    for i in range(first, n_nodes):
        here = nodes.priority[i]
        if nodes.fields[i, LEFT] < 0 and here > NO_GAIN:
            if chosen < 0 or here > nodes.priority[chosen]:
                chosen = i
            if in_turn:
                break
    return chosen


@compiled
def open_children(node, n_left_here, n_left, nodes):
    """Note the split of a node: its two children are leaves that hold its rows.

    n_left_here, n_left : int, how many rows go left here, and on all machines; nodes : NodeStore
    """
    fields, left = nodes.fields, nodes.control[N_NODES]
    begin, end = fields[node, BEGIN], fields[node, END]
    for child in (left, left + 1):
        fields[child, DEPTH] = fields[node, DEPTH] + 1
        fields[child, ARRAY] = 1 - fields[node, ARRAY]
        fields[child, SLOT] = -1
        fields[child, LEFT] = -1
        fields[child, RIGHT] = -1
        nodes.gains[child] = NO_GAIN
        nodes.priority[child] = NO_GAIN
    fields[left, ARRAY] = fields[node, LEFT_ARRAY]
    fields[left, BEGIN], fields[left, END] = begin, begin + n_left_here
    fields[left + 1, BEGIN], fields[left + 1, END] = begin + n_left_here, end
    fields[left, N_ROWS] = n_left
    fields[left + 1, N_ROWS] = fields[node, N_ROWS] - n_left
    fields[node, LEFT], fields[node, RIGHT] = left, left + 1
    nodes.seeds[left] = mix(nodes.seeds[node] ^ uint64(0xD1342543DE82EF95))
    nodes.seeds[left + 1] = mix(nodes.seeds[node] ^ uint64(0x9FB21C651E98DF25))
    nodes.control[N_NODES] = left + 2


class GrownTree(NamedTuple):
    """A tree without leaf values.

    Attributes
    ----------
    column : (n_nodes,) int32
        0 at leaves, as everything without another meaning there.
    threshold : (n_nodes,) float64
        ``inf`` at leaves, 0 at splits on categories.
    missing_right : (n_nodes,) bool
    child : (n_nodes,) int32
        The left child; a leaf is its own child.
    gain : (n_nodes,) float64
    leaf_number : (n_nodes,) int32
        -1 at inner nodes.
    leaves : (n_leaves,) int64
        Node numbers of the leaves.
    """

    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_right: NDArray[np.bool_]
    child: NDArray[np.int32]
    gain: NDArray[np.float64]
    leaf_number: NDArray[np.int32]
    leaves: NDArray[np.int64]


class GrownTrees(NamedTuple):
    """The trees of one stage after the other."""

    trees: GrownTree  # with a first axis (n_trees,)
    sizes: NDArray[np.int64]  # (n_trees,) int64: numbers of nodes
    depths: NDArray[np.int64]  # (n_trees,) int64
    left_sets: NDArray[np.uint64]  # (n_trees, n_sets, SET_WORDS) uint64
    values: NDArray[np.float64]  # (n_trees, n_leaves, 1) float64


def empty_trees(n_trees: int, n_nodes: int) -> GrownTree:
    """Memory for trees of so many nodes."""
    shape = n_trees, n_nodes
    return GrownTree(
        np.empty(shape, dtype=np.int32),
        np.empty(shape),
        np.empty(shape, dtype=np.bool_),
        np.empty(shape, dtype=np.int32),
        np.empty(shape),
        np.empty(shape, dtype=np.int32),
        np.empty((n_trees, (n_nodes + 1) // 2), dtype=np.int64),
    )


@compiled
def write_tree(nodes, n_nodes, gains, thresholds, is_category, trees, place):
    """Write the nodes of a tree to its place among some trees, and return its depth.

    ``nodes``: (n_nodes or more, N_NODE_FIELDS) int64. ``gains``: (n_nodes or more,) float64, of the
    splits; ignored at leaves. ``thresholds``: (n_nodes or more,) float64, of the splits; ignored at
    leaves. ``is_category``: (d,) uint8, or (0,) without categories.
    """
    depth, n_leaves = np.int64(0), np.int64(0)
    for node in range(n_nodes):
        column, left = nodes[node, COLUMN], nodes[node, LEFT]
        depth = max(depth, nodes[node, DEPTH])
        here = place, node
        if left < 0:
            trees.column[here], trees.threshold[here] = 0, np.inf
            trees.missing_right[here], trees.child[here] = False, node
            trees.gain[here], trees.leaf_number[here] = 0.0, n_leaves
            trees.leaves[place, n_leaves] = node
            n_leaves += 1
            continue
        by_level = is_category.shape[0] > 0 and is_category[column] != 0
        trees.column[here] = column
        trees.threshold[here] = 0.0 if by_level else thresholds[node]
        trees.missing_right[here], trees.child[here] = nodes[node, MISSING_LEFT] == 0, left
        trees.gain[here], trees.leaf_number[here] = gains[node], -1
    return depth


@compiled
def draw_columns(allowed, n_draw, seed, drawn):
    """Mark ``n_draw`` of the allowed columns.

    allowed, drawn : (n_columns,) uint8; seed : uint64, of the node
    """
    keep_apart()
    n_columns = allowed.shape[0]
    left = 0
    for f in range(n_columns):
        left += int64(allowed[f])
    wanted = min(n_draw, left)
    state = seed
    for f in range(n_columns):
        drawn[f] = 0
        if allowed[f]:
            state = mix(state)
            # float(2**-53) * 53 random bits is uniform on [0, 1)
            if (state >> uint64(11)) * 1.1102230246251565e-16 * left < wanted:
                drawn[f] = 1
                wanted -= 1
            left -= 1
